"""What a person reads about a wrong, missed or unscored question: whole texts, and the 25 lines."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.report.failure import MOST_LINES, EvidenceTurn, failure_text, headline
from pytest_himga.score.record import Record

KETCH = EvidenceTurn("D1:3", "Ann", "We sold the ketch last week.", "1:56 pm on 8 May, 2023", found=True)
DINGHY = EvidenceTurn(
    "D2:1",
    "Ann",
    "The dinghy is ours now! The children named it Pudding.",
    "9:10 am on 2 June, 2023",
    found=False,
)


def record(**changes: object) -> Record:
    plain = {
        "id": "himga/demo-locomo/ann-and-bob::what-became-of-anns-boats-1a2b3c",
        "dataset": "demo",
        "sample": "ann-and-bob",
        "uid": "what-became-of-anns-boats-1a2b3c",
        "type": "multi_hop",
        "expects_abstention": False,
        "verdict": "wrong",
        "score": 0.5,
        "reason": "1 of 2 evidence turns in the context",
        "judge": "evidence",
        "question": "What became of Ann's boats?",
        "gold": "She sold the ketch and bought a dinghy",
        "trap": None,
        "context_chars": 60,
    }
    return Record(**{**plain, **changes})  # type: ignore[arg-type] - a table of plain values


def text_of(record: Record, turns: tuple[EvidenceTurn, ...] = (), excerpt: str = "", **more: object) -> str:
    known = {"question_date": None, **more}
    return failure_text(record, evidence_turns=turns, excerpt=excerpt, **known)  # type: ignore[arg-type] - as above


class TestWholeTexts:
    def test_a_memory_that_brought_back_half_of_the_evidence(self) -> None:
        text = failure_text(
            record(),
            question_date="9:10 am on 2 June, 2023",
            evidence_turns=[KETCH, DINGHY],
            excerpt="Ann: We sold the ketch last week.\n\nBob: Boats are expensive.",
        )
        assert text.split("\n") == [
            "wrong (evidence): 1 of 2 evidence turns in the context",
            "question    What became of Ann's boats?",
            "type        multi_hop",
            "date        9:10 am on 2 June, 2023",
            "gold        She sold the ketch and bought a dinghy",
            "answer      (nothing produced one)",
            "verdict     wrong by evidence, score 0.5: 1 of 2 evidence turns in the context",
            "evidence    found      D1:3 (1:56 pm on 8 May, 2023) Ann: We sold the ketch last week.",
            "            not found  D2:1 (9:10 am on 2 June, 2023) Ann: The dinghy is ours now! The children",
            "                       named it Pudding.",
            "retrieved   60 characters:",
            "  Ann: We sold the ketch last week.",
            "  Bob: Boats are expensive.",
        ]

    def test_a_memory_that_fell_for_the_trap(self) -> None:
        fallen = record(
            type="adversarial",
            expects_abstention=True,
            gold=None,
            trap="Pudding",
            question="What did Bob name his dinghy?",
            answer="Bob named it Pudding.",
            judge="lexical",
            score=0.0,
            abstention="fell",
            reason="the answer holds the trap",
            context_chars=59,
        )
        text = text_of(fallen, (DINGHY,), "Ann: The dinghy is ours now! The children named it Pudding.")
        assert text.split("\n") == [
            "wrong (lexical): the answer holds the trap",
            "question    What did Bob name his dinghy?",
            "type        adversarial",
            "expects     no answer (unanswerable); trap: Pudding",
            "answer      Bob named it Pudding.",
            "verdict     wrong by lexical, score 0, fell for the trap: the answer holds the trap",
            "evidence    not found  D2:1 (9:10 am on 2 June, 2023) Ann: The dinghy is ours now! The children",
            "                       named it Pudding.",
            "retrieved   59 characters:",
            "  Ann: The dinghy is ours now! The children named it Pudding.",
        ]

    def test_a_wrong_answer_that_the_gate_tolerates(self) -> None:
        missed = record(
            outcome="missed",
            judge="lexical",
            answer="They sank.\nBoth of them.",
            score=1 / 3,
            reason="F1 0.33 is below 0.5",
            votes=["wrong", "correct", "wrong"],
        )
        text = text_of(missed, excerpt="Bob: I had a dream about sinking boats.", width=60)
        assert text.split("\n") == [
            "wrong (lexical): F1 0.33 is below 0.5",
            "question    What became of Ann's boats?",
            "type        multi_hop",
            "gold        She sold the ketch and bought a dinghy",
            "answer      They sank. Both of them.",
            "verdict     wrong by lexical, score 0.333, votes: 2 wrong",
            "            and 1 correct, tolerated by the gate: F1 0.33 is",
            "            below 0.5",
            "retrieved   60 characters:",
            "  Bob: I had a dream about sinking boats.",
            "  ...",
        ]

    @pytest.mark.parametrize(
        ("votes", "reason", "verdict"),
        [
            ("c", "by rule", "wrong by llm:strict, score 0: by rule"),
            ("cwc", "2 of 3 votes: by rule", "wrong by llm:strict, score 0: 2 of 3 votes: by rule"),
            ("wcw", "it says", "wrong by llm:strict, score 0, votes: 2 wrong and 1 correct: it says"),
        ],
    )
    def test_how_the_votes_went_is_told_once(self, votes: str, reason: str, verdict: str) -> None:
        words = {"c": "correct", "w": "wrong"}
        said = record(judge="llm:strict", score=0.0, reason=reason, votes=[words[vote] for vote in votes])
        assert f"verdict     {verdict}" in text_of(said, excerpt="").split("\n")

    def test_a_backend_that_raised(self) -> None:
        broken = record(
            verdict="unscored",
            stage="retrieve",
            score=None,
            reason="RuntimeError: boom",
            context_chars=None,
        )
        details = (
            "Traceback (most recent call last):\n"
            '  File "/project/mymem/store.py", line 31, in retrieve\n'
            "    return self.index.find(query)\n"
            '  File "/project/mymem/index.py", line 7, in find\n'
            '\traise RuntimeError("boom")\n'
            "RuntimeError: boom\n"
        )
        assert text_of(broken, (KETCH, DINGHY), details=details).split("\n") == [
            "unscored at retrieve: RuntimeError: boom",
            "question    What became of Ann's boats?",
            "type        multi_hop",
            "gold        She sold the ketch and bought a dinghy",
            "answer      (nothing produced one)",
            "verdict     unscored at retrieve: RuntimeError: boom",
            "evidence    D1:3 (1:56 pm on 8 May, 2023) Ann: We sold the ketch last week.",
            (
                "            D2:1 (9:10 am on 2 June, 2023) Ann: "
                "The dinghy is ours now! The children named it Pud..."
            ),
            "traceback",
            "  Traceback (most recent call last):",
            '    File "/project/mymem/store.py", line 31, in retrieve',
            "      return self.index.find(query)",
            '    File "/project/mymem/index.py", line 7, in find',
            '      raise RuntimeError("boom")',
            "  RuntimeError: boom",
        ]

    def test_a_memory_that_knew_nothing(self) -> None:
        empty = record(
            score=0.0, reason="0 of 2 evidence turns in the context", context_chars=0, answer=" \n"
        )
        assert text_of(empty).split("\n") == [
            "wrong (evidence): 0 of 2 evidence turns in the context",
            "question    What became of Ann's boats?",
            "type        multi_hop",
            "gold        She sold the ketch and bought a dinghy",
            "answer      (blank)",
            "verdict     wrong by evidence, score 0: 0 of 2 evidence turns in the context",
            "retrieved   nothing",
        ]


class TestHeadline:
    @pytest.mark.parametrize(
        ("changes", "line"),
        [
            ({}, "wrong (evidence): 1 of 2 evidence turns in the context"),
            ({"outcome": "missed"}, "wrong (evidence): 1 of 2 evidence turns in the context"),
            (
                {"verdict": "unscored", "stage": "ingest", "reason": "KeyError: 'a'\nb"},
                "unscored at ingest: KeyError: 'a' b",
            ),
            ({"verdict": "unscored", "reason": "no verdict"}, "unscored (evidence): no verdict"),
            ({"verdict": "unscored", "stage": "judge", "reason": ""}, "unscored at judge"),
            ({"reason": " "}, "wrong (evidence)"),
            ({"reason": "", "abstention": "fell"}, "wrong (evidence): fell for the trap"),
            ({"reason": "", "judge": ""}, "wrong"),
            ({"reason": "\x1b[2Jgone\ud800"}, r"wrong (evidence): \x1b[2Jgone\ud800"),
        ],
    )
    def test_says_verdict_and_cause(self, changes: dict[str, object], line: str) -> None:
        assert headline(record(**changes)) == line
        assert text_of(record(**changes)).split("\n")[0] == line

    def test_is_cut_to_the_width(self) -> None:
        line = headline(record(reason="word " * 1000), width=60)
        assert len(line) <= 60
        assert line.endswith("word...")


class TestEvidence:
    @staticmethod
    def rows(count: int, *, found: int, **changes: object) -> list[str]:
        turns = tuple(
            EvidenceTurn(f"D{n}:1", "Ann", f"fact {n}", None, found=n <= found) for n in range(1, count + 1)
        )
        text = text_of(record(**changes), turns)
        return [line[12:] for line in text.split("\n") if line.startswith(("evidence", " " * 12))]

    def test_as_many_as_fit_stand_in_their_order(self) -> None:
        assert self.rows(5, found=2) == [
            "found      D1:1 Ann: fact 1",
            "found      D2:1 Ann: fact 2",
            "not found  D3:1 Ann: fact 3",
            "not found  D4:1 Ann: fact 4",
            "not found  D5:1 Ann: fact 5",
        ]

    @pytest.mark.parametrize(("count", "rest"), [(19, 15), (500, 496)])
    def test_more_are_summed_up_and_those_not_found_come_first(self, count: int, rest: int) -> None:
        assert self.rows(count, found=count - 3) == [
            f"not found  D{count - 2}:1 Ann: fact {count - 2}",
            f"not found  D{count - 1}:1 Ann: fact {count - 1}",
            f"not found  D{count}:1 Ann: fact {count}",
            "found      D1:1 Ann: fact 1",
            f"+ {rest} more, {rest} found",
        ]

    def test_nothing_is_called_missing_if_the_memory_was_never_asked(self) -> None:
        rows = self.rows(6, found=0, verdict="unscored", stage="ingest", context_chars=None)
        assert rows[0] == "D1:1 Ann: fact 1"
        assert rows[-1] == "+ 2 more"

    def test_a_narrow_line_leaves_out_the_date_and_is_cut(self) -> None:
        text = text_of(record(), (KETCH, DINGHY, DINGHY), width=50)
        assert "            not found  D2:1 Ann: The dinghy is..." in text.split("\n")
        assert "2023" not in text


class TestRetrieved:
    @staticmethod
    def part(text: str) -> list[str]:
        lines = text.split("\n")
        return lines[next(n for n, line in enumerate(lines) if line.startswith("retrieved")) :]

    def test_as_many_lines_as_fit(self) -> None:
        excerpt = "\n".join(f"{n} {'long turn ' * 20}" for n in range(100))
        text = text_of(record(context_chars=12345), (KETCH, DINGHY), excerpt)
        head, *rows, last = self.part(text)
        assert len(text.split("\n")) == MOST_LINES
        assert head == "retrieved   12,345 characters:"
        assert [row.split()[0] for row in rows] == [str(n) for n in range(len(rows))]
        assert all(row.endswith("...") and len(row) <= 100 for row in rows)
        assert last == "  ..."

    def test_one_long_text_is_wrapped(self) -> None:
        text = text_of(record(context_chars=5000), excerpt="one summary of all " * 260)
        rows = self.part(text)[1:]
        assert len(text.split("\n")) in {MOST_LINES - 1, MOST_LINES}
        assert all(80 < len(row) <= 100 for row in rows)
        assert rows[-1].endswith("...")

    def test_an_excerpt_is_known_for_one(self) -> None:
        assert self.part(text_of(record(context_chars=5000), excerpt="only the start")) == [
            "retrieved   5,000 characters:",
            "  only the start",
            "  ...",
        ]

    @pytest.mark.parametrize(
        ("changes", "excerpt", "line"),
        [
            ({"context_chars": 0}, "", "retrieved   nothing"),
            ({"context_chars": None}, "", "retrieved   nothing"),
            ({"context_chars": None, "verdict": "unscored"}, "", "retrieved   (not measured)"),
            ({"context_chars": 0, "verdict": "unscored"}, "", "retrieved   nothing"),
            ({"context_chars": 3}, " \n ", "retrieved   3 characters, blank"),
            ({"context_chars": 9}, "", "retrieved   9 characters, not shown"),
            ({"context_chars": None}, "x", "retrieved   1 character:"),
        ],
    )
    def test_what_is_said_of_little(self, changes: dict[str, object], excerpt: str, line: str) -> None:
        assert self.part(text_of(record(**changes), excerpt=excerpt))[0] == line


class TestTraceback:
    UNSCORED = record(verdict="unscored", stage="ingest", reason="ValueError: no", context_chars=None)

    def test_the_end_of_a_long_one_is_shown(self) -> None:
        details = "\n".join(f"  line {n}" for n in range(5000)) + "\nValueError: no\n"
        lines = text_of(self.UNSCORED, details=details).split("\n")
        assert len(lines) == MOST_LINES
        assert "traceback   its last lines:" in lines
        assert lines[-2:] == ["    line 4999", "  ValueError: no"]

    def test_a_long_path_keeps_its_line_number(self) -> None:
        details = f'  File "/{"very/" * 40}long/mem.py", line 31, in retrieve\nValueError: no'
        row = text_of(self.UNSCORED, details=details).split("\n")[-2]
        assert row.startswith('    File "/very/')
        assert row.endswith('long/mem.py", line 31, in retrieve')
        assert len(row) == 100

    def test_it_takes_the_place_of_what_was_retrieved(self) -> None:
        text = text_of(self.UNSCORED, excerpt="Ann: hello", details="ValueError: no")
        assert "retrieved" not in text
        assert "hello" not in text

    def test_a_scored_question_shows_none(self) -> None:
        text = text_of(record(), excerpt="Ann: hello", details="ValueError: no")
        assert "traceback" not in text
        assert "  Ann: hello" in text.split("\n")


HOSTILE = st.one_of(
    st.text(st.characters(exclude_categories=[]), max_size=60),
    st.sampled_from(
        [
            "x" * 100_000,
            "word " * 20_000,
            "\n" * 1_000,
            "\x1b[2J\x1b[31m",
            "\x00",
            "\ud800",
            "\u202eevil\u2066",
            "\r\x85",
        ]
    ),
    st.lists(
        st.sampled_from(["a b", "\n", "\r", "\u2028", "\x0c", "\t", "\x9b31m", "\udfff", "記憶"]), max_size=80
    ).map("".join),
)
TEXT_FIELDS = ("question", "type", "reason", "judge", "trap", "stage", "outcome", "abstention")
HOSTILE_TURNS = st.builds(EvidenceTurn, HOSTILE, HOSTILE, HOSTILE, st.none() | HOSTILE, st.booleans())


@settings(deadline=None, max_examples=60)  # a slow disk or machine is no failure
@given(
    texts=st.fixed_dictionaries(dict.fromkeys(TEXT_FIELDS, HOSTILE)),
    verdict=st.sampled_from(["wrong", "unscored", "unscored", "n/a", "\x1b[2J\n"]),
    expects_abstention=st.booleans(),
    maybe=st.tuples(*[st.none() | HOSTILE] * 3),
    numbers=st.tuples(st.none() | st.floats(0, 1), st.none() | st.integers(0, 10**9)),
    votes=st.lists(HOSTILE, max_size=4),
    turns=st.lists(HOSTILE_TURNS, max_size=8),
    excerpt=HOSTILE,
    details=HOSTILE,
    width=st.integers(-5, 200),
)
def test_no_text_breaks_the_lines_or_the_terminal(
    texts, verdict, expects_abstention, maybe, numbers, votes, turns, excerpt, details, width
) -> None:
    gold, answer, question_date = maybe
    score, context_chars = numbers
    text = failure_text(
        record(
            **texts,
            verdict=verdict,
            expects_abstention=expects_abstention,
            gold=gold,
            answer=answer,
            score=score,
            context_chars=context_chars,
            votes=votes,
        ),
        question_date=question_date,
        evidence_turns=turns,
        excerpt=excerpt,
        details=details,
        width=width,
    )
    lines = text.splitlines()
    assert lines == text.split("\n")
    assert 6 <= len(lines) <= MOST_LINES
    assert all(line.strip() and len(line) <= max(width, 40) for line in lines)
    assert not {unicodedata.category(character) for character in text.replace("\n", "")} & {
        "Cc",
        "Cs",
        "Zl",
        "Zp",
    }
    assert not set(text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
    assert text.encode("utf-8")
