"""Datasets as a user meets them: fetched, refused, verified, several in one run, with errata and orders."""

from __future__ import annotations

import json
import socket

import pytest
from loopback import Web, cut_after, status

from pytest_himga.data.memorystress import generate

#: LongMemEval's shape. In the file the newer session stands first.
ODD_ORDER = [
    {
        "question_id": "0a1b2c3d",
        "question_type": "knowledge-update",
        "question": "Where do I keep the spare key?",
        "answer": "in the blue teapot",
        "question_date": "2023/05/30 (Tue) 10:00",
        "haystack_dates": ["2023/05/20 (Sat) 22:16", "2023/05/20 (Sat) 17:45"],
        "haystack_session_ids": ["answer_1", "answer_2"],
        "haystack_sessions": [
            [{"role": "user", "content": "The spare key is in the blue teapot now.", "has_answer": True}],
            [
                {
                    "role": "user",
                    "content": "I put the spare key under the mat by the door.",
                    "has_answer": True,
                }
            ],
        ],
        "answer_session_ids": ["answer_1", "answer_2"],
    },
    {
        "question_id": "0a1b2c3e_abs",
        "question_type": "multi-session",
        "question": "What is my parrot called?",
        "answer": "You did not mention a parrot.",
        "question_date": "2023/05/30 (Tue) 10:00",
        "haystack_dates": ["2023/05/21 (Sun) 08:00"],
        "haystack_session_ids": ["answer_3_abs"],
        "haystack_sessions": [[{"role": "user", "content": "My budgie is called Olive, like the tree."}]],
        "answer_session_ids": ["answer_3_abs"],
    },
]

ORDER = '''
class Memory:
    """Answers with what it heard last; writes down what it was fed and when it was asked."""

    def reset(self):
        self.heard = []

    def ingest(self, message, session):
        self.heard.append(message)

    def retrieve(self, query, date=None):
        with open("seen.txt", "a", encoding="utf-8") as file:
            file.write(f"{date}: {[(m.turn_id, m.content.split()[-2]) for m in self.heard]}\\n")
        return []
'''


@pytest.fixture
def stress():
    """Answerable data in MemoryStress's format, as bytes."""
    return json.dumps(generate(3, 12, 30, 14).to_dict()).encode()


@pytest.fixture
def web(monkeypatch, stress):
    """A mirror on loopback that has MemoryStress's file, and a data folder to download into."""
    with Web(stress) as server:
        monkeypatch.setenv("HIMGA_DATA_MIRROR", server.root)
        yield server


# -- fetching ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_published_dataset_is_fetched_once_by_the_controller_and_used_ever_after(project, web, monkeypatch):
    monkeypatch.setenv("HIMGA_DATA_DIR", str(project.path / "data"))

    first = project.run_apart("-n2", "--himga-gate=none", data="memorystress", backend="oracle")
    again = project.run_apart("--himga-gate=none", data="memorystress", backend="oracle")

    assert first.ret == again.ret == 0
    assert len(web.asked) == 1
    assert web.asked[0].path.endswith("/singularityjason/memorystress/resolve/main/memorystress_v1.json")
    said = first.stderr.str()
    assert "licence Apache-2.0" in said
    assert "Please cite OMEGA Memory (2026)" in said
    assert "licence" not in again.stderr.str()
    assert (project.path / "data" / "memorystress_v1.json").read_bytes() == web.body
    assert "(UNVERIFIED)" in again.stdout.str()
    assert "no digest of it is published" in " ".join(again.stdout.str().split())
    assert len(project.results()) == 14
    assert {record["verdict"] for record in project.results()} == {"correct"}


def test_a_download_that_breaks_off_goes_on_where_it_was(project, web, monkeypatch):
    monkeypatch.setenv("HIMGA_DATA_DIR", str(project.path / "data"))
    web.script = [cut_after(1000)]

    result = project.run("--himga-gate=none", "--co", "-q", data="memorystress")

    assert result.ret == 0
    assert web.ranges == ["", "bytes=1000-"]
    assert (project.path / "data" / "memorystress_v1.json").read_bytes() == web.body


def test_a_file_that_is_not_there_is_one_sentence_with_the_way_to_get_it_by_hand(project, web, monkeypatch):
    monkeypatch.setenv("HIMGA_DATA_DIR", str(project.path / "data"))
    web.script = [status(404, b"no")]

    result = project.run(data="memorystress")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (error,) = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert "404" in error
    assert "memorystress_v1.json" in error
    assert "Traceback" not in result.stderr.str()


def test_other_bytes_than_the_published_ones_are_refused_with_both_digests(project, web, monkeypatch):
    monkeypatch.setenv("HIMGA_DATA_DIR", str(project.path / "data"))

    result = project.run(data="locomo")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (error,) = [line for line in result.errlines if line.startswith("ERROR: ")]
    assert "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4" in error
    assert not (project.path / "data" / "locomo10.json").exists()


def test_offline_opens_no_socket_and_says_how_to_get_the_file(project, web, monkeypatch):
    monkeypatch.setenv("HIMGA_DATA_DIR", str(project.path / "data"))

    def refuse(*args, **kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    result = project.run("--himga-offline", data="longmemeval-m")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (error,) = [line for line in result.errlines if line.strip()]
    for part in ("longmemeval_m_cleaned.json", "2,737.1 MB", "9d79e5524794", str(project.path / "data")):
        assert part in error
    assert web.asked == []


def test_data_of_another_digest_go_through_when_allowed_and_the_run_is_marked(project, monkeypatch):
    data = project.path / "data"
    data.mkdir()
    (project.path / "mini.json").rename(data / "locomo10.json")
    monkeypatch.setenv("HIMGA_DATA_DIR", str(data))

    refused = project.run("--himga-gate=none", data="locomo")
    allowed = project.run("--himga-gate=none", "--himga-allow=unverified", data="locomo")

    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert allowed.ret == 0
    assert "(UNVERIFIED)" in allowed.stdout.str()
    assert "accepted by --himga-allow=unverified" in project.run_json()["datasets"][0]["unverified"]
    assert project.run_json()["settings"]["allow"] == ["unverified"]


# -- several -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_three_formats_in_one_run(project, stress):
    (project.path / "stress.json").write_bytes(stress)
    project.write_data("odd", ODD_ORDER)

    result = project.run_apart(
        "-n2", "--himga-gate=none", data="mini.json,odd.json,stress.json", backend="oracle"
    )

    assert result.ret == 0
    by_dataset = {
        name: {r["verdict"] for r in project.results() if r["dataset"] == name}
        for name in ("mini", "odd", "stress")
    }
    assert by_dataset == {"mini": {"correct", "n/a"}, "odd": {"correct", "n/a"}, "stress": {"correct"}}
    entries = project.run_json()["datasets"]
    assert [(entry["name"], entry["family"], entry["session_order"]) for entry in entries] == [
        ("mini", "locomo", None),
        ("odd", "longmemeval", "time"),
        ("stress", "memorystress", None),
    ]


# -- the order of sessions ---------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "last"), [(None, "teapot"), ("time", "teapot"), ("file", "the")])
def test_the_order_of_the_sessions_is_a_choice_that_the_run_names(project, order, last):
    project.write_data("odd", ODD_ORDER)
    project.write("mem.py", ORDER)
    options = [f"--himga-session-order={order}"] if order else []

    result = project.run(
        "--himga-gate=none", "--himga-samples=0a1b2c3d", *options, data="odd.json", backend="mem:Memory"
    )

    (seen,) = (project.path / "seen.txt").read_text(encoding="utf-8").splitlines()
    date, _, heard = seen.partition(": ")
    assert date == "2023/05/30 (Tue) 10:00"
    assert heard.startswith("[('D1:1', ")
    assert heard.endswith("('D2:1', 'teapot')]" if last == "teapot" else "('D2:1', 'the')]")
    assert project.run_json()["datasets"][0]["session_order"] == (order or "time")
    assert ("session order file" in result.stdout.str()) == (order == "file")


def test_an_abstention_question_is_a_group_of_its_own_and_not_a_type(project):
    project.write_data("odd", ODD_ORDER)

    project.run("--himga-gate=none", data="odd.json", backend="oracle")

    answerable, unanswerable = project.results()
    assert (unanswerable["expects_abstention"], unanswerable["verdict"]) == (True, "n/a")
    assert unanswerable["type"] == "multi_session"
    totals = project.run_json()["totals"]["odd"]
    assert (totals["overall"], totals["abstention"], totals["multi_session"]) == (1.0, None, None)
    assert answerable["evidence"] == ["D2:1", "D1:1"] or answerable["evidence"] == ["D1:1", "D2:1"]


# -- errata ------------------------------------------------------------------------------------------

ERRATA = """
source = "https://example.org/audit"
question = [
  { id = "garden/0", exclude = true, reason = "nobody counted" },
  { id = "harbour/0", exclude = true, reason = "wrong citation", only = "evidence" },
]
"""


def test_errata_leave_questions_out_and_both_scores_are_shown(project):
    project.write("audit.toml", ERRATA)

    project.run("--himga-gate=none", data="mini.json", backend="bm25")
    before = {record["id"]: record for record in project.results()}
    result = project.run("--himga-gate=none", "--himga-errata=audit.toml", data="mini.json", backend="bm25")
    after = {record["id"]: record for record in project.results()}

    assert list(after) == list(before)
    assert [record["verdict"] for record in after.values()] == [r["verdict"] for r in before.values()]
    excluded = [record for record in after.values() if record["errata"]]
    assert [(record["sample"], record["errata"]) for record in excluded] == [
        ("garden", {"excluded": "nobody counted"}),
        ("harbour", {"excluded": "wrong citation"}),
    ]
    totals = project.run_json()["totals"]["mini"]
    assert totals["as-published"] == pytest.approx(6 / 7)
    assert totals["overall"] == pytest.approx(4 / 5)
    assert "as published" in result.stdout.str()
    (entry,) = project.run_json()["datasets"]
    assert [one["name"] for one in entry["errata"]] == ["audit"]


def test_a_wrong_citation_counts_where_answers_are_judged(project):
    project.write("audit.toml", ERRATA)
    project.write(
        "mem.py",
        "class Memory:\n"
        "    def reset(self): pass\n"
        "    def ingest(self, message): pass\n"
        "    def retrieve(self, query): return []\n"
        "    def answer(self, question): return 'Marigold'\n",
    )

    project.run("--himga-gate=none", "--himga-errata=audit.toml", data="mini.json", backend="mem:Memory")

    assert [record["sample"] for record in project.results() if record["errata"]] == ["garden"]


def test_a_corrected_gold_is_judged_and_the_published_one_beside_it(project):
    project.write(
        "audit.toml",
        'source = "s"\nquestion = [{ id = "harbour/0", gold = "Dandelion", reason = "another ferry" }]\n',
    )
    project.write(
        "mem.py",
        "class Memory:\n"
        "    def reset(self): pass\n"
        "    def ingest(self, message): pass\n"
        "    def retrieve(self, query): return []\n"
        "    def answer(self, question): return 'Dandelion'\n",
    )

    project.run("--himga-gate=none", "--himga-errata=audit.toml", data="mini.json", backend="mem:Memory")

    (record,) = [record for record in project.results() if record["errata"]]
    assert (record["gold"], record["verdict"]) == ("Dandelion", "correct")
    assert record["errata"] == {"gold": "Marigold", "verdict": "wrong", "score": 0.0}
    totals = project.run_json()["totals"]["mini"]
    assert totals["overall"] > totals["as-published"]


@pytest.mark.slow
def test_a_lost_question_that_errata_exclude_stays_excluded(project):
    project.write("audit.toml", ERRATA)
    project.write(
        "mem.py",
        "import os\n"
        "class Memory:\n"
        "    def reset(self): pass\n"
        "    def ingest(self, message): pass\n"
        "    def retrieve(self, query):\n"
        "        if 'tulips did Ada' in query: os._exit(1)\n"
        "        return []\n",
    )

    project.run_apart(
        "-n1", "--himga-gate=none", "--himga-errata=audit.toml", data="mini.json", backend="mem:Memory"
    )

    (lost,) = [record for record in project.results() if record["outcome"] == "unscored"]
    assert (lost["verdict"], lost["errata"]) == ("unscored", {"excluded": "nobody counted"})


FORGETS = (
    "class Memory:\n"
    "    def reset(self): pass\n"
    "    def ingest(self, message): pass\n"
    "    def retrieve(self, query): return []\n"
)


def test_a_question_that_errata_leave_out_fails_no_run(project):
    """Under ``verdict`` too: it is known to be wrong, so missing it says nothing of the memory."""
    project.write("audit.toml", ERRATA)
    project.write("mem.py", FORGETS)
    left_out = ("himga/mini/garden::how-many-tulips*", "himga/mini/harbour::which-ferry*")
    parts = ("--himga-errata=audit.toml", "-k", "tulips-did or ferry")

    result = project.run(*parts, data="mini.json", backend="mem:Memory")
    assert result.ret == 0
    assert {record["outcome"] for record in project.results()} == {"missed"}
    reasons = ("nobody counted", "wrong citation")
    result.stdout.fnmatch_lines(
        [
            f"MISSED {nodeid} - wrong (evidence): *; left out by errata ({why})"
            for nodeid, why in zip(left_out, reasons, strict=True)
        ]
    )

    in_full = project.run(*parts, "-vv", data="mini.json", backend="mem:Memory")
    in_full.stdout.fnmatch_lines(["verdict     wrong by evidence*left out by errata (nobody counted): *"])
    assert "tolerated by the gate" not in in_full.stdout.str()

    whole = project.run("--himga-errata=audit.toml", data="mini.json", backend="mem:Memory")
    assert whole.ret == 1
    outcomes = [record["outcome"] for record in project.results() if record["verdict"] == "wrong"]
    assert outcomes.count("missed") == 2
    assert set(outcomes) == {"missed", "failed"}


def test_errata_that_fit_no_dataset_are_refused_before_any_work(project):
    project.write("audit.toml", 'sha256 = "0123"\n' + ERRATA)

    result = project.run("--himga-errata=audit.toml", data="mini.json")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (error,) = [line for line in result.errlines if line.strip()]
    assert error.startswith(
        "ERROR: The errata audit are about data of sha256 0123, and the run has mini (sha256 "
    )
    assert not (project.path / ".himga").exists()
