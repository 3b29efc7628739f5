"""What pytest shows of each question: passed, failed, missed, unscored, skipped; and how it reads."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

SCORE = "--himga-min-score=0.5"


def junit(story) -> dict[str, ET.Element]:
    """The test cases of ``junit.xml`` by name, checked to be there once."""
    cases = list(ET.parse(story.path / "junit.xml").getroot().iter("testcase"))
    assert len({case.get("name") for case in cases}) == len(cases)
    return {case.get("name"): case for case in cases}


def section(result: pytest.RunResult, start: str, end: str) -> list[str]:
    """The lines of the output after the first that holds ``start``, up to the next that holds ``end``.

    Of the headings of failures only the name is kept: pytest centres them.
    """
    lines = [line.strip("_ ") if line.startswith("_") else line for line in result.outlines]
    first = next(n for n, line in enumerate(lines) if start in line) + 1
    last = next(n for n, line in enumerate(lines[first:], first) if end in line)
    return lines[first:last]


# -- wrong ------------------------------------------------------------------------------------------


def test_a_wrong_answer_fails_where_no_threshold_is_set(story):
    story.memory_does(ferry="miss")
    result = story.run()
    result.assert_outcomes(passed=6, failed=1, skipped=2)
    result.stdout.fnmatch_lines(["himga: gate verdict (no threshold is set)", "himga/mini/harbour F.s.*"])
    assert result.ret == 1
    assert {r["id"]: r["outcome"] for r in story.project.results() if r["outcome"] != "passed"} == {
        story.FERRY: "failed",
        story.CAT: "skipped",
        story.SAILOR: "skipped",
    }


def test_a_wrong_answer_is_missed_where_a_threshold_decides(story):
    story.memory_does(ferry="miss")
    result = story.run(SCORE, "-rA", "--junitxml=junit.xml")
    result.stdout.fnmatch_lines(["himga/mini/harbour m.s.*", "*7 passed, 2 skipped, 1 missed in*"])
    assert result.ret == 0
    assert "xfailed" not in result.stdout.str()
    missed = junit(story)["which-ferry-sails-on-thursdays-6fd671"]
    (skipped,) = missed
    assert (skipped.tag, skipped.get("type")) == ("skipped", "pytest.xfail")
    assert skipped.get("message") == "missed: wrong (evidence): 0 of 1 evidence turn in the context"
    (record,) = [r for r in story.project.results() if r["id"] == story.FERRY]
    assert (record["verdict"], record["outcome"]) == ("wrong", "missed")


def test_verbose_says_missed_and_why(story, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    story.memory_does(ferry="miss")
    result = story.run(SCORE, "-v")
    result.stdout.fnmatch_lines(
        [f"{story.FERRY} MISSED (missed: wrong (evidence): 0 of 1 evidence turn in the context) *%]"]
    )


def test_a_miss_is_no_failure_for_pytest(story):
    story.memory_does(ferry="miss")
    stopped = story.run(SCORE, "-x", "--maxfail=1")
    assert stopped.ret == 0
    again = story.run(SCORE, "--lf", "-v")
    again.stdout.fnmatch_lines(["*run-last-failure: no previously failed tests, not deselecting items.*"])
    assert again.ret == 0


def test_runxfail_does_not_undo_a_miss(story):
    story.memory_does(ferry="miss")
    result = story.run(SCORE, "--runxfail")
    result.stdout.fnmatch_lines(["*7 passed, 2 skipped, 1 missed in*"])
    assert result.ret == 0


EXPECTED_TO_FAIL = """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if "ferry" in item.name or "repaint" in item.name:
            item.add_marker(pytest.mark.xfail(reason="ticket 12", strict={strict}))
"""


@pytest.mark.parametrize("gate", ["--himga-gate=verdict", SCORE])
def test_the_users_own_xfail_marks_stand(story, gate):
    story.memory_does(ferry="miss")
    story.project.write("conftest.py", EXPECTED_TO_FAIL.format(strict=False))
    result = story.run(gate, "-rxX")
    result.stdout.fnmatch_lines(
        [f"XFAIL {story.FERRY}* - ticket 12", f"XPASS {story.REPAINT}* - ticket 12", "*1 xfailed, 1 xpassed*"]
    )
    assert "missed" not in result.outlines[-1]
    assert result.ret == 0


def test_a_strict_xfail_that_passes_fails(story):
    story.project.write("conftest.py", EXPECTED_TO_FAIL.format(strict=True))
    result = story.run(SCORE)
    assert "2 failed" in result.outlines[-1]
    assert result.ret == 1


# -- unscored and n/a -------------------------------------------------------------------------------


def test_an_unscored_question_is_an_error(story):
    story.memory_does(hedgehog="raise")
    result = story.run("-v", "--junitxml=junit.xml")
    result.stdout.fnmatch_lines([f"{story.HEDGEHOG} UNSCORED *%]", "*6 passed, 2 skipped, 1 error in*"])
    assert result.ret == 6
    (problem,) = junit(story)["what-is-the-name-of-ben-s-hedgehog-83804f"]
    assert problem.tag in ("failure", "error")
    assert problem.get("message").startswith("unscored at retrieve: retrieve() raised ConnectionError")


@pytest.mark.parametrize("nothing", ["0", "00", "0.0%"])
def test_an_allowance_of_nothing_tolerates_nothing_however_it_is_written(story, nothing):
    story.memory_does(hedgehog="raise")
    result = story.run(f"--himga-max-unscored={nothing}")
    result.assert_outcomes(passed=6, skipped=2, errors=1)
    assert result.ret == 6


def test_an_unscored_question_within_the_allowance_is_skipped_as_unscored(story):
    story.memory_does(hedgehog="raise")
    result = story.run("-v", "--himga-max-unscored=1", "--junitxml=junit.xml")
    result.stdout.fnmatch_lines([f"{story.HEDGEHOG} UNSCORED *%]", "*6 passed, 2 skipped, 1 unscored in*"])
    assert result.ret == 0
    (skipped,) = junit(story)["what-is-the-name-of-ben-s-hedgehog-83804f"]
    assert (skipped.tag, skipped.get("type")) == ("skipped", "pytest.skip")
    assert "the store is offline" in skipped.get("message")


def test_a_question_that_the_judge_does_not_apply_to_is_skipped_with_its_reason(story):
    result = story.run("-rs")
    result.stdout.fnmatch_lines(
        [
            "SKIPPED [[]1[]] himga/mini: n/a: unanswerable: there is no evidence to find",
            "SKIPPED [[]1[]] himga/mini: n/a: the dataset names no evidence for this question",
            "*7 passed, 2 skipped in*",
        ]
    )
    assert result.ret == 0


def test_a_question_whose_fixture_fails_is_unscored_not_wrong(story):
    story.project.write(
        "conftest.py",
        "import pytest\n\n@pytest.fixture(scope='module')\ndef broken():\n    raise OSError('no disk')\n",
    )
    result = story.run(backend="broken")
    assert "9 errors" in result.outlines[-2]
    assert result.ret == 6
    assert {(r["verdict"], r["reason"]) for r in story.project.results()} == {
        ("unscored", "its setup failed: OSError: no disk")
    }


# -- the failure text -------------------------------------------------------------------------------


def test_a_wrong_item_in_full(project):
    result = project.run("-pno:hypothesispytest")
    assert section(result, " FAILURES ", "= himga =") == [
        "himga/mini/harbour::what-hue-will-the-entrance-of-the-beacon-4ca38e",
        "wrong (evidence): 0 of 1 evidence turn in the context",
        "question    What hue will the entrance of the beacon get?",
        "type        single_hop",
        "date        12:05 am on 1 June, 2024",
        "gold        green",
        "answer      (nothing produced one)",
        "verdict     wrong by evidence, score 0: 0 of 1 evidence turn in the context",
        "evidence    not found  D1:2 (12:05 am on 1 June, 2024) Dan: Then I shall repaint the lighthouse door",
        "                       in green until then.",
        "retrieved   nothing",
    ]


PARTIAL = """
from pytest_himga import Recalled

class Partial:
    turns = []
    def reset(self):
        self.turns = []
    def ingest(self, message):
        self.turns.append(message)
    def retrieve(self, query):
        return [Recalled(f"{m.role}: {m.content}", turn_ids=[m.turn_id]) for m in self.turns[:2]]
"""


@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_in_line_style_a_wrong_item_is_one_line_that_names_it(story, workers):
    story.memory_does(ferry="miss")
    result = story.run("--tb=line", *workers)
    shown = section(result, "= FAILURES =", "= himga =")
    lines = [line for line in shown if not line.startswith("[gw")]  # pytest itself names the worker
    assert len(lines) == 1
    assert "ferry" in lines[0].split(": ")[0]
    assert lines[0].endswith(": wrong (evidence): 0 of 1 evidence turn in the context")


def test_a_half_found_item_tells_which_evidence_is_missing_and_what_came_instead(story):
    story.project.write("half.py", PARTIAL)
    result = story.run("-k", "colour", backend="half:Partial")
    assert section(result, " FAILURES ", "= himga =") == [
        "himga/mini/garden::which-colour-were-the-tulips-beside-the--0cdbc0",
        "wrong (evidence): 1 of 2 evidence turns in the context",
        "question    Which colour were the tulips beside the pump?",
        "type        multi_hop",
        "date        6:40 pm on 21 April, 2024",
        "gold        purple",
        "answer      (nothing produced one)",
        "verdict     wrong by evidence, score 0.5: 1 of 2 evidence turns in the context",
        "evidence    found      D1:1 (9:15 am on 3 March, 2024) Ada: I planted twelve tulips beside the old",
        "                       pump this morning.",
        "            not found  D2:1 (6:40 pm on 21 April, 2024) Ben: The tulips came up purple, although the",
        "                       packet promised yellow.",
        "retrieved   125 characters:",
        "  Ada: I planted twelve tulips beside the old pump this morning.",
        "  Ben: My hedgehog Bramble watched the whole thing from her box.",
    ]


def test_an_item_that_fell_for_the_trap_in_full(story):
    story.memory_does(cat="Her cat is called Bramble.")
    result = story.run("-k", "cat", backend="mem:Answering")
    text = section(result, " FAILURES ", "= himga =")
    assert text[:9] == [
        "himga/mini/garden::what-is-ada-s-cat-called-5fcadd",
        "wrong (lexical): fell for the trap",
        "question    What is Ada's cat called?",
        "type        adversarial",
        "date        6:40 pm on 21 April, 2024",
        "expects     no answer (unanswerable); trap: Bramble",
        "answer      Her cat is called Bramble.",
        "verdict     wrong by lexical, score 0, fell for the trap: fell for the trap",
        "evidence    found      D1:2 (9:15 am on 3 March, 2024) Ben: My hedgehog Bramble watched the whole",
    ]


def test_an_unscored_item_shows_the_backends_own_traceback_and_no_frame_of_ours(story):
    story.memory_does(hedgehog="raise")
    result = story.run("-k", "hedgehog")
    text = section(result, " ERRORS ", "= himga =")
    mem = story.path / "mem.py"
    source = mem.read_text(encoding="utf-8").splitlines()
    calls, raises = (
        1 + source.index(line)
        for line in (
            "            offline(query)",
            next(line for line in source if "raise ConnectionError" in line),
        )
    )
    assert text[0] == "ERROR at call of himga/mini/garden::what-is-the-name-of-ben-s-hedgehog-83804f"
    assert text[1:8] == [
        "unscored at retrieve: retrieve() raised ConnectionError: the store is offline (35 letters asked)",
        "question    What is the name of Ben's hedgehog?",
        "type        single_hop",
        "date        6:40 pm on 21 April, 2024",
        "gold        Bramble",
        "answer      (nothing produced one)",
        "verdict     unscored at retrieve: retrieve() raised ConnectionError: the store is offline (35",
    ]
    shown = text[text.index("traceback") + 1 :]
    frames = [line.strip() for line in shown if line.lstrip().startswith("File ")]
    assert [frame.rsplit(", ", 2)[1:] for frame in frames] == [
        [f"line {calls}", "in retrieve"],
        [f"line {raises}", "in offline"],
    ]
    assert all(
        frame.endswith(f'mem.py", line {n}, in {name}')
        for frame, n, name in ((frames[0], calls, "retrieve"), (frames[1], raises, "offline"))
    )
    assert shown[-1] == "  ConnectionError: the store is offline (35 letters asked)"
    assert len(text) - 1 <= 25


LONG = """
class Rambling:
    def reset(self): pass
    def ingest(self, message): pass
    def retrieve(self, query):
        return "\\n".join(f"line {n} " + "blah " * 60 for n in range(500))
    def answer(self, question):
        return "\\x1b[31mno idea\\x1b[0m \\ud800 \\x00 " + "and so on " * 400
"""


def test_however_long_or_dirty_the_texts_a_failure_is_25_clean_lines(story):
    story.project.write("long.py", LONG)
    result = story.run("-k", "colour", backend="long:Rambling")
    text = section(result, " FAILURES ", "= himga =")[1:]
    assert len(text) == 25
    assert max(map(len, text)) <= 100
    assert not any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for line in text for letter in line)
    assert r"\x1b[31mno idea\x1b[0m \ud800 \x00" in "\n".join(text)
    assert result.ret == 1


# -- many failures ----------------------------------------------------------------------------------


@pytest.fixture
def many(story):
    """Twelve questions that all go wrong, and a user's own test that fails too."""
    from_mini = {
        "session_1_date_time": "9:15 am on 3 March, 2024",
        "session_1": [{"speaker": "Ada", "dia_id": "D1:1", "text": "We counted the boats again today."}],
        "speaker_a": "Ada",
        "speaker_b": "Ben",
    }
    qa = [{"question": f"Boat {n}?", "answer": "one", "evidence": ["D1:1"], "category": 4} for n in range(12)]
    story.project.write_data("many", [{"sample_id": "quay", "conversation": from_mini, "qa": qa}])
    story.memory_does(Boat="miss")
    return story


def shown_in_full(result: pytest.RunResult) -> int:
    return sum(line.startswith("question    Boat") for line in result.outlines)


def test_the_first_ten_failures_are_shown_in_full_and_the_rest_in_one_line_each(many):
    many.project.write("test_own.py", "def test_own():\n    assert not 'mine'\n")
    result = many.run(data="many.json")
    assert shown_in_full(result) == 10
    result.stdout.fnmatch_lines(
        [
            "*assert not 'mine'*",
            "2 more failures have one line each in the short summary; -v shows all in full",
        ]
    )
    assert sum(line.startswith("FAILED himga/many/quay::boat-") for line in result.outlines) == 12
    assert "13 failed" in result.outlines[-1]


def test_verbose_shows_all_failures_in_full(many):
    result = many.run("-v", data="many.json")
    assert shown_in_full(result) == 12
    assert "more failures" not in result.stdout.str()


@pytest.mark.parametrize(
    ("flags", "lines", "whole"),
    [([], 10, 0), (["-q"], 10, 0), (["-v"], 12, 0), (["-rA"], 12, 0), (["-rm"], 12, 0), (["-vv"], 12, 12)],
)
def test_misses_are_listed(many, flags, lines, whole):
    result = many.run("--himga-min-score=0", *flags, data="many.json")
    assert result.ret == 0
    section(result, "= himga: missed =", "= himga =")
    listed = [line for line in result.outlines if line.startswith("MISSED himga/many/quay::boat-")]
    assert len(listed) == lines
    assert all(line.endswith(" - wrong (evidence): 0 of 1 evidence turn in the context") for line in listed)
    assert shown_in_full(result) == whole
    assert ("2 more; -v lists all, -vv shows them in full" in result.outlines) is (lines < 12)


@pytest.mark.parametrize("ci", [False, True])
def test_the_short_summary_has_one_line_for_each_failure(story, monkeypatch, ci):
    if ci:
        monkeypatch.setenv("CI", "true")
    story.memory_does(ferry="miss", hedgehog="raise")
    result = story.run()
    lines = section(result, "short test summary info", "failed")
    if ci:
        offline = (
            "unscored at retrieve: retrieve() raised ConnectionError: the store is offline (35 letters asked)"
        )
        assert lines == [
            f"FAILED {story.FERRY} - wrong (evidence): 0 of 1 evidence turn in the context",
            f"UNSCORED {story.HEDGEHOG} - {offline}",
        ]
    else:
        assert [line.partition(" - ")[0] for line in lines] == [
            f"FAILED {story.FERRY}",
            f"UNSCORED {story.HEDGEHOG}",
        ]
        assert all(len(line) <= 80 for line in lines)
