"""``himga data``: the datasets of this machine and the published ones, found, fetched, described, checked.

Only ``fetch`` opens a socket. The options are those of pytest without ``himga-``, and ``HIMGA_DATA_DIR``,
``HIMGA_OFFLINE``, ``HIMGA_ALLOW``, ``HIMGA_LOCOMO_LABELS`` and ``HIMGA_SESSION_ORDER`` count here too; an
ini file does not, since there is none.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_himga.commands.output import complain, say, say_path, tell
from pytest_himga.errors import DatasetError, HimgaError, SettingsError, nearest
from pytest_himga.options import DATA_ALLOWANCES, LABELS, SESSION_ORDERS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

_SWITCH = ("yes", "true", "on", "1", "no", "false", "off", "0")
_ON = _SWITCH[:4]


# -- the table ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verb:
    """One word behind ``himga data``; ``many`` of its targets are taken one after another."""

    name: str
    help: str
    run: Callable[[argparse.Namespace], int]
    target: str = ""
    many: bool = False
    options: tuple[str, ...] = ("data-dir",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their options."""
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", dest="verb", required=True)
    for verb in VERBS:
        one = verbs.add_parser(
            verb.name,
            help=verb.help,
            description=f"{verb.help[0].upper()}{verb.help[1:]}.",
            allow_abbrev=False,
        )
        if verb.target:
            one.add_argument("targets", metavar=verb.target, nargs="+" if verb.many else 1)
        for name in verb.options:
            one.add_argument(f"--{name}", **_OPTIONS[name])
        one.set_defaults(run=verb.run)


_OPTIONS: dict[str, dict[str, Any]] = {
    "data-dir": {"metavar": "DIR", "help": "folder to look in first, and to download into"},
    "offline": {
        "action": "store_const",
        "const": "yes",
        "help": "download nothing, say how to get it by hand",
    },
    "allow": {"choices": DATA_ALLOWANCES, "help": "accept data that are not the published ones"},
    "locomo-labels": {"choices": LABELS, "help": "names of LoCoMo's categories, as for pytest"},
    "session-order": {
        "choices": SESSION_ORDERS,
        "help": "order of LongMemEval's sessions, as for pytest; `file` counts the histories that are not sorted",
    },
    "full": {"action": "store_true", "help": "also decode every sample: sessions, turns, evidence"},
}


def _chosen(arguments: argparse.Namespace, name: str, known: tuple[str, ...]) -> str | None:
    """The value of an option: that of the command line, else that of the environment."""
    value = getattr(arguments, name.replace("-", "_"), None)
    if value is not None:
        return str(value)
    variable = f"HIMGA_{name.replace('-', '_').upper()}"
    given = os.environ.get(variable, "").strip()
    if given and given.lower() not in known:
        raise SettingsError(f"{variable}={given} is unknown; {nearest(given, known)}")
    return given.lower() or None


def _data_dir(arguments: argparse.Namespace) -> Path | None:
    if not arguments.data_dir:
        return None
    try:
        return Path(arguments.data_dir).expanduser().absolute()
    except RuntimeError:  # ~somebody, who has no home here
        return Path(arguments.data_dir).absolute()


def _unverified_is_fine(arguments: argparse.Namespace) -> bool:
    from pytest_himga.commands.source import CommandSource

    return "unverified" in CommandSource(arguments, os.environ).choices("allow", DATA_ALLOWANCES)


def _for_each(names: list[str], act: Callable[[str], None]) -> int:
    """Do it with each of them, whatever becomes of the others."""
    failed = False
    for name in names:
        try:
            act(name)
        except SettingsError:
            raise
        except HimgaError as error:
            failed = True
            complain(str(error))
    return int(failed)


# -- the verbs ---------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> int:
    from pytest_himga.commands.data_finding import listed
    from pytest_himga.commands.data_lines import table
    from pytest_himga.data.store import Store

    store = Store(_data_dir(arguments))
    for line in table(("name", "size", "licence", "sha256", "where"), listed(store)):
        say(line)
    say()
    say(f"looked in {' and '.join(f'{folder} ({label})' for folder, label in store.places.items())}")
    return 0


def _path(arguments: argparse.Namespace) -> int:
    from pytest_himga.commands.data_finding import parts_of, whereabouts
    from pytest_himga.data.store import Store

    store = Store(_data_dir(arguments))
    for name in parts_of(arguments.targets):
        say_path(whereabouts(name, store))
    return 0


def _fetch(arguments: argparse.Namespace) -> int:
    from pytest_himga.commands.data_fetching import Fetching
    from pytest_himga.commands.data_finding import parts_of

    fetching = Fetching(
        _data_dir(arguments),
        offline=_chosen(arguments, "offline", _SWITCH) in _ON,
        allow_unverified=_unverified_is_fine(arguments),
    )
    return _for_each(parts_of(arguments.targets), lambda name: say_path(fetching.path_of(name)))


def _info(arguments: argparse.Namespace) -> int:
    from pytest_himga.commands.data_census import history_of
    from pytest_himga.commands.data_finding import open_here, parts_of
    from pytest_himga.commands.data_lines import portrait

    labels = _chosen(arguments, "locomo-labels", LABELS)
    for number, spec in enumerate(parts_of(arguments.targets)):
        here = open_here(spec, _data_dir(arguments), labels=labels)
        if number:
            say()
        history, warnings = history_of(here.dataset) if arguments.full else (None, here.dataset.warnings)
        for line in portrait(here, here.dataset.sha256, warnings, history):
            say(line)
        if here.by_name:  # a run would not take it either
            here.check(here.dataset.sha256, _unverified_is_fine(arguments))
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from pytest_himga.commands.data_census import read_everything
    from pytest_himga.commands.data_finding import open_here, parts_of
    from pytest_himga.commands.data_lines import portrait, verdict

    labels = _chosen(arguments, "locomo-labels", LABELS)
    order = _chosen(arguments, "session-order", SESSION_ORDERS)
    for number, spec in enumerate(parts_of(arguments.targets)):
        here = open_here(spec, _data_dir(arguments), labels=labels, order=order)
        found, history = read_everything(here.dataset)
        if number:
            say()
        for line in portrait(here, found.sha256, found.warnings, history):
            say(line)
        if found.sha256 != here.dataset.sha256:
            raise DatasetError(
                f"{here.dataset.path}: its bytes are not those that its index was made of (sha256 "
                f"{here.dataset.sha256}), although size and time stamp are the same; give it a new time stamp "
                "(touch), so that runs read it again"
            )
        note = here.check(found.sha256, _unverified_is_fine(arguments))
        if note:
            tell(note)
        say()
        say(verdict(here, found.sha256))
    return 0


VERBS = (
    Verb("list", "list the published datasets and what lies in the data folders", _list),
    Verb(
        "fetch",
        "download what is not here, verify it, and print where it lies",
        _fetch,
        target="NAME",
        many=True,
        options=("data-dir", "offline", "allow"),
    ),
    Verb("path", "print where a dataset lies, and nothing else; downloads nothing", _path, target="NAME"),
    Verb(
        "info",
        "say what is in a dataset, by its index",
        _info,
        target="NAME|PATH",
        options=("data-dir", "allow", "locomo-labels", "full"),
    ),
    Verb(
        "check",
        "read a dataset to its last turn, recompute its digest, and say what is wrong with it",
        _check,
        target="NAME|PATH",
        options=("data-dir", "allow", "locomo-labels", "session-order"),
    ),
)
