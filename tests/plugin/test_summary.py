"""The numbers at the end of a run, word for word; the notes and the hint; memories that answer."""

from __future__ import annotations

import re

import pytest

from pytest_himga import __version__


def summary(result: pytest.RunResult) -> list[str]:
    """The lines of the section ``himga``, with every time as ``#``."""
    lines = result.outlines
    first = next(n for n, line in enumerate(lines) if line.strip("=") == " himga ") + 1
    last = next(n for n, line in enumerate(lines[first:], first) if line.startswith("="))
    return [re.sub(r"[\d.]+ m?s\b", "#", line) for line in lines[first:last]]


def facts(result: pytest.RunResult, label: str) -> list[str]:
    """The texts beside a label below the table of the summary, each on one line."""
    found: list[str] = []
    ours = False
    lines = summary(result)
    for line in lines[lines.index("") :]:
        if line.startswith(label.ljust(12)):
            found.append(line[12:])
            ours = True
        elif ours and line.startswith(" " * 12):
            found[-1] += f" {line.strip()}"
        else:
            ours = False
    return found


def test_the_whole_summary(project):
    result = project.run("-pno:hypothesispytest")
    sha256 = project.run_json()["datasets"][0]["sha256"][:12]
    version = project.run_json()["backend"]["version"]
    assert version.startswith("bm25s ")
    text = "\n".join(summary(result))
    provenance = text[text.index("provenance") : text.index("\n\ngate")]
    assert " ".join(provenance.split()) == (
        f"provenance mini sha256 {sha256}, 9 items, 2 samples, backend bm25 {version}, judge evidence, k 10, "
        f"pytest-himga {__version__}"
    )
    assert text.replace(provenance, "provenance  ...") == (
        "mini           n  correct   score  95% interval  unscored  missed  n/a\n"
        "----------------------------------------------------------------------\n"
        "1 multi_hop    1        1  1.0000   0.207-1.000         0       0    0\n"
        "2 temporal     1        1  1.0000   0.207-1.000         0       0    0\n"
        "3 open_domain  1        -       -             -         0       -    1\n"
        "4 single_hop   5        4  0.8000   0.376-0.964         0       1    0\n"
        "----------------------------------------------------------------------\n"
        "overall        8        6  0.8571   0.487-0.974         0       1    1\n"
        "abstention     1        -       -             -         0       -    1\n"
        "all            9        6  0.8571   0.487-0.974         0       1    2\n"
        "\n"
        "n/a         1: the dataset names no evidence for this question; 1: unanswerable:\n"
        "            there is no evidence to find\n"
        "retrieval       @1      @3      @5     @10\n"
        "  recall    0.7857  0.8571  0.8571  0.8571\n"
        "  hit       0.8571  0.8571  0.8571  0.8571\n"
        "  nDCG      0.8571  0.8571  0.8571  0.8571\n"
        "  session   0.7857  0.8571  0.8571  0.8571\n"
        "  MRR       0.8571\n"
        "  questions      7\n"
        "scores      mean score 0.8571 (7 questions)\n"
        "context     103 characters, ~26 tokens (characters / 4); empty 1 of 9\n"
        "retrieve    p50 #, p95 #\n"
        "ingest      # a sample, at most #\n"
        "provenance  ...\n"
        "\n"
        "gate        verdict (no threshold is set)\n"
        "hint        to fail a run that scores below this one, add --himga-min-score=0.85"
    )


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_no_line_is_wider_than_the_terminal_or_than_100(story, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    story.memory_does(ferry="miss")
    result = story.run("--himga-min-score=0.5")
    lines = summary(result)
    assert max(map(len, lines)) <= min(columns, 100)
    assert any("overall" in line for line in lines)


@pytest.mark.parametrize("backend", ["null", "full-context", "oracle", "bm25"])
def test_the_controls_score_what_they_must(project, backend):
    project.run("-pno:hypothesispytest", backend=backend)
    totals = project.run_json()["totals"]["mini"]
    expected = {"null": 0.0, "full-context": 1.0, "oracle": 1.0, "bm25": 6 / 7}[backend]
    assert totals["overall"] == pytest.approx(expected)
    # Text without ids cannot be scored as retrieval; nothing at all can: it found none.
    retrieval = None if backend == "full-context" else pytest.approx(expected)
    assert totals["recall@10"] == retrieval


def test_two_datasets_have_a_table_each_and_a_joint_hint(story):
    story.memory_does(ferry="miss")
    result = story.run(data="mini.json,other=mini.json")
    assert [line.split()[0] for line in summary(result) if "95% interval" in line] == ["mini", "other"]
    assert facts(result, "hint") == [
        "to fail a run that scores below this one, add --himga-min-score=mini:0.85,other:0.85"
    ]


# -- the hint ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [["ferry"], ["ferry", "hedgehog"], ["ferry", "hedgehog", "repaint"], []])
def test_the_hint_names_a_threshold_that_this_run_passes(story, wrong):
    story.memory_does(**dict.fromkeys(wrong, "miss"))
    (hint,) = facts(story.run(), "hint")
    option = re.search(r"--himga-min-score=\S+", hint).group()
    again = story.run(option)
    assert again.ret == 0
    assert facts(again, "hint") == []
    value = option.rpartition("=")[2]
    higher = story.run(option.replace(value, f"{float(value) + 0.01:.2f}"))
    assert higher.ret == (1 if float(value) < 1 else 4)


def test_nothing_to_hold_is_said_so(story):
    result = story.run(backend="null")
    assert facts(result, "hint") == [
        "nothing above 0 was measured that a gate could hold; one is set with, say, --himga-min-score=0.70"
    ]


@pytest.mark.parametrize(
    "args", [["--himga-min-score=0.1"], ["--himga-gate=verdict"], ["-k", "harbour"], ["-x"]]
)
def test_no_hint_where_a_gate_was_asked_for_or_the_run_was_not_whole(story, args):
    story.memory_does(hedgehog="miss")
    assert facts(story.run(*args), "hint") == []


# -- notes ------------------------------------------------------------------------------------------


GREEDY = """
from mem import Memory

class Greedy(Memory):
    def retrieve(self, query):
        return super().retrieve(query) * 3
"""


def test_a_list_longer_than_k_is_cut_with_one_note_a_run(story):
    story.project.write("greedy.py", GREEDY)
    result = story.run("--himga-top-k=4", backend="greedy:Greedy")
    assert facts(result, "note") == [
        "retrieve() returned up to 15 things; only the first 4 count (--himga-top-k)"
    ]
    assert all(len(record["recalled"]) == 4 for record in story.project.results())
    assert {record["k"] for record in story.project.results()} == {4}


@pytest.mark.parametrize(
    ("samples", "told"),
    [(["one", "two"], "2 blank turns were not fed"), (["one"], "1 blank turn was not fed")],
)
def test_blank_turns_are_counted_and_not_fed(story, samples, told):
    turns = [
        {"speaker": "Ada", "dia_id": f"D1:{n}", "text": text}
        for n, text in enumerate(["The kite is blue.", "  ", "So it is."], start=1)
    ]
    conversation = {
        "speaker_a": "Ada",
        "speaker_b": "Ben",
        "session_1_date_time": "9:15 am on 3 March, 2024",
        "session_1": turns,
    }
    qa = [{"question": f"Kite {n}?", "answer": "blue", "evidence": ["D1:1"], "category": 4} for n in range(3)]
    records = [{"sample_id": name, "conversation": conversation, "qa": qa} for name in samples]
    story.project.write_data("blank", records)
    result = story.run(data="blank.json")
    assert facts(result, "note") == [told]
    assert result.ret == 0


def test_a_sample_that_is_fed_again_is_named(story):
    story.project.write(
        "conftest.py",
        "import pytest\nfrom mem import Memory\nlives = []\n\n@pytest.fixture(scope='session')\n"
        "def remembered():\n    return Memory\n\n"
        "def pytest_runtest_teardown(item):\n    if 'hedgehog' in item.name:\n"
        "        item.config.pluginmanager.getplugin('himga-items')._run.engine.release('himga/mini/garden')\n",
    )
    result = story.run(backend="remembered")
    assert facts(result, "note") == ["fed more than once: mini/garden"]
    assert max(story.fed().values()) == 2
    assert result.ret == 0


# -- memories that answer ---------------------------------------------------------------------------


def test_a_memory_that_answers_is_judged_by_its_answers(story):
    story.memory_does(
        tulips="Twelve... I mean 12 tulips.",
        hedgehog="Her name is Bramble",
        colour="purple",
        cat="Bramble",
        ferry="the Marigold",
        repaint="Dan repainted the lighthouse door.",
        sailor="Perhaps, he is patient",
        hue="a shade of red",
    )
    # "tulips" is also in two other questions, so the first word that fits decides: 12 is wrong for both.
    result = story.run(backend="mem:Answering")
    result.stdout.fnmatch_lines(["himga: backend mem:Answering, judge lexical, k 10"])
    assert story.verdicts() == {
        "How many tulips did Ada plant?": "correct",
        "What is the name of Ben's hedgehog?": "correct",
        "Which colour were the tulips beside the pump?": "wrong",
        "When did the tulips come up?": "wrong",
        "What is Ada's cat called?": "wrong",
        "Which ferry sails on Thursdays?": "correct",
        "What did Dan repaint?": "correct",
        "Would Dan make a good sailor?": "correct",
        "What hue will the entrance of the beacon get?": "wrong",
    }
    assert result.ret == 1
    lines = summary(result)
    table = [line.split() for line in lines[: lines.index("")]]
    rows = {" ".join(words[:-7]): words[-7:] for words in table if len(words) > 7}
    assert rows["overall"][:3] == ["8", "5", "0.6250"]
    assert rows["abstention"][:3] == ["1", "0", "0.0000"]
    assert rows["all"][:3] == ["9", "5", "0.5556"]
    assert facts(result, "abstention") == ["held 0, fell for the trap 1, other 0"]
    assert facts(result, "refused") == ["0.0000 of the answerable questions (0 of 8)"]
    assert facts(result, "scores")[0].startswith("F1 0.")
    run = story.project.run_json()
    assert (run["answerer"], run["judge"]) == ("backend", "lexical")
    assert run["totals"]["mini"]["f1"] == run["totals"]["mini"]["mean-score"] > 0
    assert {r["abstention"] for r in story.project.results()} == {None, "fell"}


@pytest.mark.parametrize(
    ("answer", "how", "score"),
    [
        ("I don't know, it was never mentioned.", "held 1, fell for the trap 0, other 0", "1.0000"),
        ("Bramble", "held 0, fell for the trap 1, other 0", "0.0000"),
        ("Whiskers, of course.", "held 0, fell for the trap 0, other 1", "0.0000"),
    ],
)
def test_how_an_unanswerable_question_was_met(story, answer, how, score):
    story.memory_does(cat=answer)
    result = story.run(backend="mem:Answering")
    assert facts(result, "abstention") == [how]
    assert any(line.split()[:4] == ["abstention", "1", score[0], score] for line in summary(result))


def test_a_memory_that_always_refuses_holds_and_is_shown_to_refuse(story):
    result = story.run("--himga-gate=none", backend="mem:Answering")
    assert facts(result, "refused") == ["1.0000 of the answerable questions (8 of 8)"]
    totals = story.project.run_json()["totals"]["mini"]
    assert (totals["overall"], totals["abstention"], totals["false-refusal"]) == (0.0, 1.0, 1.0)
    assert totals["all"] == pytest.approx(1 / 9)


def test_an_answering_memory_can_still_be_judged_by_its_evidence(story):
    result = story.run("--himga-judge=evidence", backend="mem:Answering")
    assert result.ret == 0
    assert {record["judge"] for record in story.project.results()} == {"evidence"}
    assert {record["answer"] for record in story.project.results()} == {"I don't know."}


def test_thresholds_on_what_answers_measure(story):
    story.memory_does(ferry="Marigold")
    f1 = story.run("--himga-min-score=f1=0.1", backend="mem:Answering")
    assert f1.ret == 0
    held = story.run("--himga-min-score=abstention=1", backend="mem:Answering")
    assert held.ret == 0
    everything = story.run("--himga-min-score=all=0.23", backend="mem:Answering")
    assert everything.ret == 1
    result = story.run("--himga-min-score=false-refusal=0.5", backend="mem:Answering")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*false-refusal is better the lower it is*"])
