"""What the plugin's own tests share: a small project to run pytest on, and where the real data lies."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Indexes and datasets are looked for in a folder of this session, not in the developer's own cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


REAL_DATA = Path(os.environ.get("HIMGA_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))


def turn(ref: str, speaker: str, text: str, caption: str | None = None) -> dict:
    """One turn in LoCoMo's format."""
    return {"speaker": speaker, "dia_id": ref, "text": text} | ({"blip_caption": caption} if caption else {})


def question(text: str, answer: object, evidence: list[str], category: int = 4) -> dict:
    """One question in LoCoMo's format; of category 5, with its answer as the trap."""
    key = "adversarial_answer" if category == 5 else "answer"
    return {"question": text, key: answer, "evidence": evidence, "category": category}


def mini_records() -> list[dict]:
    """Two conversations, nine questions: of seven bm25 finds the evidence of six, two are n/a for it."""
    garden = {
        "sample_id": "garden",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "9:15 am on 3 March, 2024",
            "session_1": [
                turn("D1:1", "Ada", "I planted twelve tulips beside the old pump this morning."),
                turn("D1:2", "Ben", "My hedgehog Bramble watched the whole thing from her box."),
                turn("D1:3", "Ada", "Good."),
            ],
            "session_2_date_time": "6:40 pm on 21 April, 2024",
            "session_2": [
                turn("D2:1", "Ben", "The tulips came up purple, although the packet promised yellow."),
                turn("D2:2", "Ada", "Look at this.", "a wheelbarrow full of muddy potatoes"),
            ],
        },
        "qa": [
            question("How many tulips did Ada plant?", 12, ["D1:1"]),
            question("What is the name of Ben's hedgehog?", "Bramble", ["D1:2"]),
            question("Which colour were the tulips beside the pump?", "purple", ["D1:1", "D2:1"], 1),
            question("When did the tulips come up?", "21 April 2024", ["D2:1"], 2),
            question("What is Ada's cat called?", "Bramble", ["D1:2"], 5),
        ],
    }
    harbour = {
        "sample_id": "harbour",
        "conversation": {
            "speaker_a": "Cleo",
            "speaker_b": "Dan",
            "session_1_date_time": "12:05 am on 1 June, 2024",
            "session_1": [
                turn("D1:1", "Cleo", "The ferry Marigold sails at dawn on Thursdays only."),
                turn("D1:2", "Dan", "Then I shall repaint the lighthouse door in green until then."),
            ],
        },
        "qa": [
            question("Which ferry sails on Thursdays?", "Marigold", ["D1:1"]),
            question("What did Dan repaint?", "the lighthouse door", ["D1:2"]),
            question("Would Dan make a good sailor?", "Perhaps; he is patient", [], 3),
            question("What hue will the entrance of the beacon get?", "green", ["D1:2"]),
        ],
    }
    return [garden, harbour]


class Project:
    """A user's project in a temporary folder, with the dataset ``mini.json`` in it.

    ``run`` runs pytest in this process, ``run_apart`` in one of its own (needed with ``-n``, for exit
    statuses of a crash, and where modules must be fresh).
    """

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.write_data("mini", mini_records())
        pytester.makeini("[pytest]\npythonpath = .\nasyncio_default_fixture_loop_scope = function\n")

    def write_data(self, name: str, records: object) -> Path:
        """Write a dataset file."""
        path = self.path / f"{name}.json"
        path.write_text(json.dumps(records), encoding="utf-8")
        return path

    def write(self, name: str, text: str) -> Path:
        """Write a module of the project."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        # Python takes bytecode of the same second and size for that of the text that was there before.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()
        return path

    def run(self, *args: str, data: str = "mini.json", backend: str = "bm25") -> pytest.RunResult:
        """Pytest with a dataset and a backend, in this process."""
        return self.pytester.runpytest_inprocess(*self._args(args, data, backend))

    def run_apart(self, *args: str, data: str = "mini.json", backend: str = "bm25") -> pytest.RunResult:
        """Pytest with a dataset and a backend, in a process of its own."""
        return self.pytester.runpytest_subprocess(*self._args(args, data, backend))

    def results(self) -> list[dict]:
        """The lines of the newest run's ``results.jsonl``."""
        lines = (self._newest_run() / "results.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def run_json(self) -> dict:
        """The newest run's ``run.json``."""
        return json.loads((self._newest_run() / "run.json").read_text(encoding="utf-8"))

    def _newest_run(self) -> Path:
        # Not by name: two runs of one second are told apart by chance alone.
        return max((self.path / ".himga" / "runs").iterdir(), key=lambda folder: folder.stat().st_mtime_ns)

    @staticmethod
    def _args(args: tuple[str, ...], data: str, backend: str) -> list[str]:
        return [f"--himga-dataset={data}", f"--himga-backend={backend}", "-p", "no:randomly", *args]


@pytest.fixture(scope="session")
def _imported_once() -> None:
    """Before pytester notes which modules to forget after a run: what no process can import twice (numpy),
    and what would take half the time of every run (hypothesis, whose plugin imports it for its summary; ours).
    """
    for name in (
        "bm25s",
        "Stemmer",
        "nltk.stem.porter",
        "regex",
        "msgspec.json",
        "filelock",
        "platformdirs",
        "hypothesis",
        "hypothesis.internal.observability",
        "pytest_himga.controller",
        "pytest_himga.display",
        "pytest_himga.engine.engine",
        "pytest_himga.gate_items",
        "pytest_himga.judge.lexical",
        "pytest_himga.memory.bm25",
        "pytest_himga.outcomes",
        "pytest_himga.probing",
        "pytest_himga.xdist",
        "_pytest.stepwise",
        "openai",
        "aiohttp",
        "pytest_himga.llm.openai_chat",
        "pytest_himga.llm.connection",
    ):
        importlib.import_module(name)


@pytest.fixture
def project(_imported_once: None, pytester: pytest.Pytester) -> Project:
    """A user's project, see ``Project``."""
    return Project(pytester)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No HIMGA_ variable of the developer's shell, and no CI or colour setting, reaches a test."""
    for name in list(os.environ):
        if name.startswith(("HIMGA_", "OPENAI_")) and not name.startswith("HIMGA_TEST_"):
            monkeypatch.delenv(name)
    # A download that nobody expects finds no server.
    monkeypatch.setenv("HIMGA_DATA_MIRROR", "http://127.0.0.1:9")
    shell = ("CI", "BUILD_NUMBER", "FORCE_COLOR", "PY_COLORS", "PYTEST_ADDOPTS", "COLUMNS")
    # A run in this process would else take itself for a worker of ours.
    xdist = ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID")
    for name in (*shell, *xdist):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def real_locomo() -> Path:
    """The official LoCoMo file, where it is."""
    path = REAL_DATA / "locomo10.json"
    if not path.is_file():
        pytest.skip(f"the real LoCoMo file is not there: {path}")
    return path
