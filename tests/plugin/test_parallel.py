"""With -n: each sample is fed once, the numbers are those of one process, and a dying worker loses one question."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from pytest_himga.xdist import SampleScheduling, check_dist, explicit_dist, unit_of

pytestmark = pytest.mark.timeout(120)  # a hanging run is what some of these are about

TIMES = re.compile(r"^(retrieve|ingest)\s")
ENDS = re.compile(r"^=+ (short test summary info|.* in [0-9.]+s) =+$")


def himga_section(result: pytest.RunResult) -> list[str]:
    """Everything from the misses on that himga prints, without the two lines of times."""
    lines = result.outlines
    first = next(n for n, line in enumerate(lines) if "= himga" in line)
    last = next(n for n, line in enumerate(lines[first:], first) if ENDS.match(line))
    return [line for line in lines[first:last] if not TIMES.match(line)]


def comparable(records: list[dict]) -> list[dict]:
    """The records without what may differ between runs of the same thing."""
    return [{k: v for k, v in record.items() if k not in ("ms", "worker")} for record in records]


@pytest.fixture
def four_samples(story):
    """Four samples of three questions each; one question of each sample is missed."""
    records = []
    for name in ("north", "east", "south", "west"):
        turns = [
            {"speaker": "Ada", "dia_id": f"D1:{n}", "text": f"In the {name} we met {who} by the sea."}
            for n, who in enumerate(("Ida", "Jon", "Kim"), start=1)
        ]
        conversation = {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "9:15 am on 3 March, 2024",
            "session_1": turns,
        }
        asked = ((1, "Who came first to"), (2, "Who came next to"), (4, "Missing in"))
        qa = [
            {"question": f"{text} the {name}?", "answer": "x", "evidence": [f"D1:{n}"], "category": category}
            for n, (category, text) in enumerate(asked, start=1)
        ]
        records.append({"sample_id": name, "conversation": conversation, "qa": qa})
    story.project.write_data("four", records)
    story.memory_does(Missing="miss")
    return story


# -- the same run, however many workers ---------------------------------------------------------------


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_run(four_samples):
    args = ["--himga-min-score=0.6", "-v"]
    alone = four_samples.run(*args, data="four.json")
    records = comparable(four_samples.project.results())
    totals = four_samples.project.run_json()["totals"]
    assert alone.ret == 0
    assert len(himga_section(alone)) > 20
    assert [record["sample"] for record in records] == [
        name for name in ("north", "east", "south", "west") for _ in range(3)
    ]
    for workers in (2, 4):
        (four_samples.path / "fed.txt").unlink()
        (four_samples.path / "asked.txt").unlink()
        result = four_samples.run_apart(f"-n{workers}", *args, data="four.json")
        assert result.ret == 0
        assert sorted(four_samples.fed().values()) == [1, 1, 1, 1]
        assert sorted(four_samples.asked().values()) == [1] * 12
        assert himga_section(result) == himga_section(alone)
        assert comparable(four_samples.project.results()) == records
        assert four_samples.project.run_json()["totals"] == totals
        used = {record["worker"] for record in four_samples.project.results()}
        assert used == {f"gw{n}" for n in range(workers)}
        by_sample = {(record["sample"], record["worker"]) for record in four_samples.project.results()}
        assert len(by_sample) == 4
        result.stdout.fnmatch_lines(
            ["scheduling tests via SampleScheduling", "himga/four::gate PASSED *100%]"]
        )


def test_outcomes_gate_and_last_line_with_workers(story):
    story.memory_does(ferry="miss", hedgehog="raise")
    result = story.run_apart("-n2", "-q", "--himga-min-score=0.5", "--junitxml=junit.xml")
    assert result.ret == 6
    assert result.outlines[-1] == (
        "himga: not measured (exit status 6): 1 question unscored (retrieve() raised ConnectionError: the store is "
        f"offline (35 letters asked)): {story.HEDGEHOG}"
    )
    letters = Counter("".join(re.findall(r"^([.FEsmu]+) +\[", result.stdout.str(), re.MULTILINE)))
    assert letters == {".": 5, "m": 1, "s": 2, "E": 2}  # the second error is the gate's
    text = (story.path / "junit.xml").read_text(encoding="utf-8")
    assert text.count('type="pytest.xfail" message="missed: wrong (evidence)') == 1
    assert text.count("<testcase ") == 10
    shown = [line for line in result.outlines if line.startswith(("  File ", "    File "))]
    assert [line.rpartition(", in ")[2] for line in shown] == ["retrieve", "offline"]


def test_without_xdist_everything_works(story, monkeypatch):
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    story.memory_does(ferry="miss")
    quick = ["-pno:asyncio", "-pno:hypothesispytest"]
    result = story.project.run("-p", "no:xdist", *quick, backend="mem:Memory")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*1 failed, 6 passed, 2 skipped in*"])


# -- --dist -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [["--dist", "each", "-n2"], ["--dist=each", "--tx", "2*popen"]])
def test_dist_each_is_refused(story, args):
    result = story.run_apart(*args)
    assert result.ret == 4
    assert "\n".join(result.errlines).strip() == (
        "ERROR: --dist each runs every question on every worker, and himga counts each question once; "
        "leave --dist out"
    )
    assert not (story.path / ".himga").exists()


def test_another_dist_gets_one_warning_and_right_totals(story):
    story.memory_does(ferry="miss")
    result = story.run_apart("-n2", "--dist", "load")
    warned = [line for line in result.outlines if "samples may be fed once per worker" in line]
    assert warned == [
        "himga: warning: --dist load: samples may be fed once per worker; leave --dist out to keep each sample on one"
    ]
    assert result.ret == 1
    assert story.project.run_json()["totals"]["mini"]["overall"] == pytest.approx(6 / 7)
    assert len(story.project.results()) == 9
    assert max(story.asked().values()) == 1


@pytest.mark.parametrize(
    ("known", "dist"),
    [
        ({"dist": "no", "distload": False}, None),
        ({"dist": "no", "distload": True}, "load"),
        ({"dist": "load", "distload": False}, "load"),
        ({"dist": "worksteal", "distload": False}, "worksteal"),
        ({}, None),
    ],
)
def test_only_what_the_user_wrote_counts_as_a_dist_of_his(known, dist):
    config = SimpleNamespace(known_args_namespace=argparse.Namespace(**known))
    assert explicit_dist(config) == dist
    assert check_dist(config).startswith(f"--dist {dist}: ") is (dist is not None)


# -- a worker that dies -------------------------------------------------------------------------------


def test_a_worker_that_dies_loses_one_question(story):
    story.memory_does(hedgehog="die")
    result = story.run_apart("-n2")
    assert result.ret == 6
    assert max(story.asked().values()) == 1
    assert len(story.asked()) == 9
    records = story.project.results()
    assert Counter(record["verdict"] for record in records) == {"correct": 6, "n/a": 2, "unscored": 1}
    (lost,) = [record for record in records if record["verdict"] == "unscored"]
    assert lost["id"] == story.HEDGEHOG
    assert re.fullmatch(r"worker gw\d died while it was running this question", lost["reason"])
    assert (
        result.outlines[-1]
        == f"himga: not measured (exit status 6): 1 question unscored ({lost['reason']}): {story.HEDGEHOG}"
    )
    result.stdout.fnmatch_lines(
        [
            "*_ ERROR at call of himga/mini/garden::what-is-the-name-of-ben-s-hedgehog-83804f _*",
            f"unscored: {lost['reason']}",
            "note        fed more than once: mini/garden",
            f"UNSCORED {story.HEDGEHOG} - unsc*",
            "*6 passed, 2 skipped, 1 error in*",
        ]
    )


def test_a_memory_that_kills_its_worker_while_it_is_fed(story):
    story.memory_does(ingest="Marigold")
    result = story.run_apart("-n2", "-k", "garden or ferry or repaint")
    assert result.ret == 6
    verdicts = story.verdicts()
    assert verdicts["Which ferry sails on Thursdays?"] == verdicts["What did Dan repaint?"] == "unscored"
    assert list(verdicts.values()).count("correct") == 4
    assert "himga: not measured (exit status 6): 2 questions unscored: " in result.outlines[-1]
    assert story.FERRY in result.outlines[-1]
    assert story.REPAINT in result.outlines[-1]
    assert max(story.asked().values()) == 1


def test_without_restarts_what_was_not_run_is_named(story):
    story.memory_does(hedgehog="die")
    result = story.run_apart("-n2", "--max-worker-restart=0", "--himga-min-score=0.5")
    assert result.ret == 6
    assert re.search(
        r": 1 question unscored \(worker (gw\d) died while it was running this question\): "
        rf"{story.HEDGEHOG}; \d questions not run \(worker \1 died\): {story.COLOUR}, ",
        result.outlines[-1],
    )
    assert len(story.project.results()) == 9
    assert max(story.asked().values()) == 1


def test_one_worker_that_dies_does_not_hang(story):
    # One item of its sample is left, and a worker begins an item only when it knows the next.
    story.memory_does(hedgehog="die", ferry="miss")
    result = story.run_apart("-n1", "-k", "hedgehog or cat or ferry")
    assert result.ret == 1  # a wrong question is proof enough, beside the lost one
    assert story.verdicts() == {
        "What is the name of Ben's hedgehog?": "unscored",
        "What is Ada's cat called?": "n/a",
        "Which ferry sails on Thursdays?": "wrong",
    }
    assert max(story.asked().values()) == 1
    result.stdout.fnmatch_lines(["note        fed more than once: mini/garden"])


def test_stopping_at_the_first_failure_with_workers_keeps_pytests_status(story):
    story.memory_does(tulips="miss", ferry="miss")
    result = story.run_apart("-n2", "-x", "--himga-min-score=0.99", "--himga-gate=verdict,score")
    assert result.ret == 2  # xdist ends such a run as an interrupted one
    assert "::gate" not in result.stdout.str()
    assert story.project.run_json()["exit"] == 2


# -- which items stay together ------------------------------------------------------------------------

SAMPLES = {"himga/mini/garden", "himga/mini/harbour", "himga/other/garden"}


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("himga/mini/garden::how-many-0767e5", "himga/mini/garden"),
        ("himga/other/garden::how-many-0767e5", "himga/other/garden"),
        ("test_own.py::test_it[mini/garden/how-many-0767e5]", "himga/mini/garden"),
        ("tests/test_own.py::TestIt::test_it[mini/harbour/what-1]", "himga/mini/harbour"),
        ("test_own.py::test_it[fast-mini/harbour/what-1]", None),
        ("test_own.py::test_it[mini/harbour/what-1-fast]", "himga/mini/harbour"),
        ("test_own.py::test_it[mini/attic/what-1]", None),
        ("test_own.py::test_it[a/b/c]", None),
        ("test_own.py::test_it", None),
        ("mini/garden/test_own.py::test_it[1]", None),
    ],
)
def test_unit_of(nodeid, unit):
    assert unit_of(nodeid, SAMPLES) == unit


class FakeNode:
    """A worker as the scheduler sees it: it takes indices, and is told when to stop."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.given: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


A = [f"himga/mini/garden::q{n}" for n in range(4)]
B = [f"himga/mini/harbour::q{n}" for n in range(3)]
C = [f"himga/other/garden::q{n}" for n in range(3)]
OWN = ["test_a.py::test_1", "test_a.py::test_2", "test_b.py::test_1"]


def scheduling(collection: list[str], names: tuple[str, ...] = ("gw0", "gw1")):
    """A scheduler that has handed out its first units."""
    option = SimpleNamespace(loadscopereorder=True, tx=["popen"] * len(names), verbose=0)
    config = SimpleNamespace(
        option=option, getvalue=lambda name: getattr(option, name), getoption=lambda name: False
    )
    scheduler = SampleScheduling(config, None, SAMPLES)
    nodes = [FakeNode(name) for name in names]
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, collection)
    scheduler.schedule()
    return scheduler, nodes


def given(node: FakeNode, collection: list[str]) -> list[str]:
    return [collection[index] for index in node.given]


def test_samples_and_modules_are_handed_out_whole():
    items = [*A, *OWN, *B, *C]
    scheduler, (first, second) = scheduling(items)
    assert given(first, items) == A
    assert given(second, items) in (B, [*B, *OWN[:2]], [*B, *C])
    for node in (first, second):
        for index in list(node.given):
            scheduler.mark_test_complete(node, index)
    assert sorted(given(first, items) + given(second, items)) == sorted(items)


def test_the_item_during_which_a_worker_died_is_lost_and_the_rest_of_its_sample_comes_next():
    items = [*A, *B, *C]
    scheduler, (first, second) = scheduling(items)
    scheduler.mark_test_complete(first, items.index(A[0]))
    assert scheduler.remove_node(first) == A[1]
    assert next(iter(scheduler.workqueue)) == "himga/mini/garden"
    for index in list(second.given):
        scheduler.mark_test_complete(second, index)
    seen = given(second, items)
    assert A[0] not in seen
    assert A[1] not in seen
    assert sorted(seen) == sorted([*A[2:], *B, *C])
    assert seen.index(A[3]) == seen.index(A[2]) + 1


def test_a_worker_that_died_idle_loses_nothing():
    items = [*A, *B]
    scheduler, (first, second) = scheduling(items)
    for index in list(first.given):
        scheduler.mark_test_complete(first, index)
    assert scheduler.remove_node(first) is None
    assert scheduler.remove_node(second) == B[0]


def test_a_worker_that_dies_on_the_last_item_of_a_sample_leaves_no_empty_unit():
    items = [*A, *B]
    scheduler, (first, _) = scheduling(items)
    for nodeid in A[:3]:
        scheduler.mark_test_complete(first, items.index(nodeid))
    assert scheduler.remove_node(first) == A[3]
    assert "himga/mini/garden" not in scheduler.workqueue
    assert not scheduler.workqueue


def test_a_new_worker_takes_what_the_dead_one_left():
    scheduler, (first,) = scheduling(A, ("gw0",))
    assert scheduler.remove_node(first) == A[0]
    assert not scheduler.tests_finished
    heir = FakeNode("gw1")
    scheduler.add_node(heir)
    scheduler.add_node_collection(heir, A)
    scheduler.schedule()
    assert given(heir, A) == A[1:]
    for index in list(heir.given):
        scheduler.mark_test_complete(heir, index)
    assert heir.shutting_down
    assert scheduler.tests_finished


def test_an_unknown_worker_is_a_key_error_as_in_xdist():
    scheduler, _ = scheduling(A)
    with pytest.raises(KeyError):
        scheduler.remove_node(FakeNode("gw9"))


class Simulation:
    """Workers that run what they are given, as xdist's do: the last item only once they are told to stop."""

    def __init__(self, collection: list[str], workers: int) -> None:
        self.collection = collection
        self.scheduler, self.nodes = scheduling(collection, tuple(f"gw{n}" for n in range(workers)))
        self.ran: list[str] = []
        self.lost: list[str] = []
        self.heard()

    def busy(self) -> list[FakeNode]:
        return [node for node in self.nodes if len(node.given) > (0 if node.shutting_down else 1)]

    def finish_one(self, node: FakeNode) -> None:
        index = node.given.pop(0)
        self.ran.append(self.collection[index])
        self.scheduler.mark_test_complete(node, index)
        self.heard()

    def die(self, node: FakeNode) -> None:
        self.nodes.remove(node)
        self.lost.append(self.scheduler.remove_node(node))
        heir = FakeNode(f"{node.gateway.id}x")
        self.nodes.append(heir)
        self.scheduler.add_node(heir)
        self.scheduler.add_node_collection(heir, self.collection)
        self.scheduler.schedule()
        self.heard()

    def heard(self) -> None:
        """What xdist does after each event."""
        if self.scheduler.tests_finished:
            for node in self.scheduler.nodes:
                node.shutdown()


@settings(max_examples=80, deadline=None)
@for_all(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    own=st.integers(0, 3),
    workers=st.integers(1, 3),
    data=st.data(),
)
def test_whoever_dies_each_item_runs_once_or_is_lost_once_and_nothing_hangs(sizes, own, workers, data):
    names = ["mini/garden", "mini/harbour", "other/garden", "other/attic", "third/x"]
    collection = [
        f"himga/{name}::q{n}" for name, size in zip(names, sizes, strict=False) for n in range(size)
    ]
    collection += [f"test_own.py::test_{n}" for n in range(own)]
    run = Simulation(collection, workers)
    deaths = data.draw(st.integers(0, 4))
    while busy := run.busy():
        node = data.draw(st.sampled_from(busy))
        if len(run.lost) < deaths and data.draw(st.booleans()):
            run.die(node)
        else:
            run.finish_one(node)
    assert Counter(run.ran + run.lost) == Counter(collection)
