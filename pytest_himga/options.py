"""The options of the plugin as one table, and how pytest's parser gets them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import argparse

    import pytest

GATE_MODES = ("verdict", "score", "none")
LABELS = ("locomo", "himga")
SESSION_ORDERS = ("time", "file")
#: The lists of errata that are shipped; a test holds them against the data room.
ERRATA_LISTS = ("locomo-audit",)
#: What may be wrong and let pass: with the data, for ``himga``'s commands too; and with a run.
DATA_ALLOWANCES = ("unverified",)
ALLOWANCES = (*DATA_ALLOWANCES, "judge")
ITEMS = ("on", "off")
DEFAULT_TOP_K = 10
#: Seconds. A retrieve that takes longer is an outage for a CI; feeding a session may call an LLM.
DEFAULT_TIMEOUT = 120.0
LONG_CALL_FACTOR = 5.0


@dataclass(frozen=True)
class Option:
    """One ``--himga-NAME``.

    ``many`` options are lists, ``cli_only`` ones have no environment or ini, a ``switch`` has no value.
    """

    name: str
    metavar: str
    help: str
    many: bool = False
    cli_only: bool = False
    switch: bool = False

    @property
    def flag(self) -> str:
        """``--himga-top-k``."""
        return f"--himga-{self.name}"

    @property
    def ini(self) -> str:
        """``himga_top_k``, which is also the attribute that argparse stores."""
        return f"himga_{self.name.replace('-', '_')}"

    @property
    def variable(self) -> str:
        """``HIMGA_TOP_K``."""
        return self.ini.upper()


OPTIONS = (
    Option(
        "dataset",
        "NAME|PATH|NAME=PATH",
        "benchmark to run: demo, a name found in --himga-data-dir, a file (.json, .json.gz) or a folder",
        many=True,
        cli_only=True,
    ),
    Option(
        "backend",
        "NAME",
        "memory under test: null, full-context, bm25, oracle, an installed backend, "
        "package.module:attribute, or a fixture's name",
    ),
    Option("backend-option", "KEY=VALUE", "passed to the backend's factory if it takes KEY", many=True),
    Option("data-dir", "DIR", "folder that datasets are looked up in"),
    Option(
        "offline",
        "",
        "open no connection: no download, and models' replies from the cache only",
        switch=True,
    ),
    Option(
        "errata",
        "FILE|NAME",
        "questions to leave out or golds to correct: a TOML or JSON file, or a shipped list "
        f"({', '.join(ERRATA_LISTS)})",
        many=True,
    ),
    Option(
        "allow",
        ",".join(ALLOWANCES),
        "go on although: the data are not the published ones (unverified), the judge failed its probe (judge)",
        many=True,
    ),
    Option("samples", "NAME,...", "only these samples", many=True),
    Option("types", "TYPE,...", "only questions of these types", many=True),
    Option("subset", "N|N%", "a stratified subset that stays the same when data is added"),
    Option(
        "locomo-labels",
        "|".join(LABELS),
        "names of LoCoMo's categories: by their content (locomo, default) or upstream HiMGA's table (himga)",
    ),
    Option(
        "session-order",
        "|".join(SESSION_ORDERS),
        "order of LongMemEval's sessions: by their time stamps (time, default) or as in the file",
    ),
    Option("items", "|".join(ITEMS), "off: no built-in items, only your own tests that use himga fixtures"),
    Option("top-k", "K", f"how many recalled things count, at most (default {DEFAULT_TOP_K})"),
    Option(
        "timeout",
        "SECONDS",
        f"limit for one call of the backend, or one attempt at a model's server (default {DEFAULT_TIMEOUT:g}; "
        f"{LONG_CALL_FACTOR:g} times that for ingest_session, settle and reopen, and all attempts of a request)",
    ),
    Option(
        "answerer",
        "NAME",
        "who answers from what was retrieved: none, backend, llm or package.module:attribute "
        "(default: the backend if it answers)",
    ),
    Option(
        "answer-profile",
        "NAME|FILE",
        "prompt of the LLM that answers: strict (default), benchmark, or a TOML file",
    ),
    Option("model", "NAME", "model of the LLM that answers"),
    Option(
        "base-url",
        "URL",
        "its OpenAI-compatible server (default: OPENAI_BASE_URL, else OpenAI); "
        "its key is HIMGA_API_KEY or OPENAI_API_KEY in the environment",
    ),
    Option("model-option", "KEY=VALUE", "a parameter that is sent along, e.g. temperature=0", many=True),
    Option("judge", "NAME", "evidence, lexical, llm or package.module:attribute"),
    Option(
        "judge-profile",
        "NAME|FILE",
        "rules of the LLM that judges: strict, lenient, lenient-evidence, longmemeval, memorystress, or a TOML file "
        "(default: by the dataset)",
    ),
    Option("judge-model", "NAME", "model of the LLM that judges (default: --himga-model)"),
    Option(
        "judge-base-url",
        "URL",
        "its server (default: --himga-base-url); its key is HIMGA_JUDGE_API_KEY, or the other's",
    ),
    Option("judge-model-option", "KEY=VALUE", "a parameter that is sent along", many=True),
    Option("judge-votes", "K", "ask the LLM that judges K times (odd), the majority counts (default 1)"),
    Option(
        "judge-probe",
        "",
        "first try the judge on answers that are known to be right or wrong; no question is asked if it fails",
        switch=True,
    ),
    Option(
        "cache",
        "off|read|refresh|PATH",
        "models' replies: kept in .himga/cache or PATH and never paid twice; off, only read, or all asked anew",
        many=True,
    ),
    Option("gate", "|".join(GATE_MODES), "what decides whether the run passes", many=True),
    Option(
        "min-score", "[DATASET:][NAME=]VALUE", "least score that passes, e.g. 0.7 or temporal=0.5", many=True
    ),
    Option("max-unscored", "N|N%", "unscored questions that are tolerated (default 0)"),
)


def add_options(parser: pytest.Parser) -> None:
    """Put the one ``--help`` group and the ini keys into pytest's parser."""
    group = parser.getgroup("himga", "memory benchmarks (pytest-himga)")
    for option in OPTIONS:
        kinds: dict[str, Any] = {"action": "append" if option.many else "store", "metavar": option.metavar}
        if option.switch:
            kinds = {"action": "store_const", "const": "yes"}
        group.addoption(
            option.flag, default=None, dest=option.ini, help=option.help.replace("%", "%%"), **kinds
        )
        if not option.cli_only:
            kind: Literal["linelist", "string"] = "linelist" if option.many else "string"
            parser.addini(option.ini, f"the same as {option.flag}", kind, default=None)


def only_lists(options: argparse.Namespace) -> bool:
    """Whether pytest shows what there is (``--co``, ``--fixtures-per-test``, ...) and runs nothing."""
    return bool(options.collectonly or options.showfixtures or options.show_fixtures_per_test)


def wants_a_run(options: argparse.Namespace) -> bool:
    """Whether a himga run was asked for at all; all else is silent without it."""
    return bool(getattr(options, "himga_dataset", None))
