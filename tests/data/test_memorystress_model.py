"""The typed container of MemoryStress' format: its fields, its way through JSON, its sentences."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memorystress_parts import benchmark, fact, question, session

from pytest_himga.data import memorystress
from pytest_himga.data.memorystress import (
    BenchmarkData,
    ContradictionChain,
    Fact,
    Question,
    Session,
    load_benchmark,
)
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path

REQUIRED = object()
FORMAT: dict[type, dict[str, object]] = {
    Fact: {
        "fact_id": REQUIRED,
        "content": REQUIRED,
        "category": REQUIRED,
        "phase_planted": REQUIRED,
        "session_planted": REQUIRED,
        "simulated_date": REQUIRED,
        "importance": REQUIRED,
        "mention_count": REQUIRED,
        "mention_sessions": [],
        "contradiction_chain": None,
        "recoverable": True,
        "tags": [],
        "difficulty": "medium",
    },
    ContradictionChain: {
        "chain_id": REQUIRED,
        "original_fact_id": REQUIRED,
        "versions": [],
        "final_ground_truth": "",
        "pattern": "fact_update",
    },
    Session: {
        "session_id": REQUIRED,
        "session_index": REQUIRED,
        "phase": REQUIRED,
        "simulated_date": REQUIRED,
        "topic": REQUIRED,
        "agent_id": REQUIRED,
        "turns": [],
        "planted_fact_ids": [],
        "noise_level": "low",
        "token_count_estimate": 0,
    },
    Question: {
        "question_id": REQUIRED,
        "question": REQUIRED,
        "target_fact_ids": [],
        "target_chain_id": None,
        "answer": "",
        "answer_detail": "",
        "phase_asked": 1,
        "target_fact_phase": 1,
        "age_sessions": 0,
        "age_days": 0,
        "question_type": "fact_recall",
        "scoring_dimensions": [],
        "difficulty": "medium",
        "agent_scope": "agent_a",
        "cold_start": False,
    },
    BenchmarkData: {
        "version": "1.0",
        "phases": {},
        "stats": {},
        "facts": [],
        "contradiction_chains": [],
        "sessions": [],
        "questions": [],
    },
}
MINIMAL: dict[str, dict[str, Any]] = {
    "facts": {
        "fact_id": "F1",
        "content": "c",
        "category": "event",
        "phase_planted": 1,
        "session_planted": "S1",
        "simulated_date": "2024-01-01",
        "importance": 1,
        "mention_count": 1,
    },
    "contradiction_chains": {"chain_id": "C1", "original_fact_id": "F1"},
    "sessions": {
        "session_id": "S1",
        "session_index": 0,
        "phase": 1,
        "simulated_date": "2024-01-01T00:00:00",
        "topic": "t",
        "agent_id": "agent_a",
    },
    "questions": {"question_id": "Q1", "question": "q?"},
}


def write(folder: Path, content: object, name: str = "stress.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


# -- the format --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FORMAT)
def test_the_fields_are_those_of_the_format_in_its_order(kind: Any) -> None:
    def default(one: Any) -> object:
        if one.default_factory is not MISSING:
            return one.default_factory()
        return REQUIRED if one.default is MISSING else one.default

    assert [(one.name, default(one)) for one in fields(kind)] == list(FORMAT[kind].items())


def test_a_record_is_built_directly_and_compared_by_value() -> None:
    first = Question("Q1", "Who?", ["F1"])
    assert first == Question(question_id="Q1", question="Who?", target_fact_ids=["F1"])
    assert first != Question("Q1", "Who?", ["F2"])
    assert first != ContradictionChain("Q1", "Who?")
    first.extra["mood"] = "calm"
    assert first != Question("Q1", "Who?", ["F1"])


def test_what_is_missing_gets_the_default_and_is_written_back() -> None:
    data = BenchmarkData.from_dict({name: [record] for name, record in MINIMAL.items()})
    assert data == BenchmarkData(
        facts=[Fact("F1", "c", "event", 1, "S1", "2024-01-01", 1, 1)],
        contradiction_chains=[ContradictionChain("C1", "F1")],
        sessions=[Session("S1", 0, 1, "2024-01-01T00:00:00", "t", "agent_a")],
        questions=[Question("Q1", "q?")],
    )
    assert data.to_dict()["questions"] == [
        {name: MINIMAL["questions"].get(name, default) for name, default in FORMAT[Question].items()}
    ]


def test_two_records_share_no_default() -> None:
    first, second = Question("Q1", "Who?"), Question("Q2", "Who?")
    first.target_fact_ids.append("F1")
    assert second.target_fact_ids == []


# -- through JSON ------------------------------------------------------------------------------------


def test_unknown_fields_come_through_everywhere(tmp_path: Path) -> None:
    record = benchmark() | {"licence": "Apache-2.0", "made": {"by": ["a", None]}}
    for name in MINIMAL:
        record[name][0] |= {"note": {"de": "über"}, "extra": 1}
    record["sessions"][0]["turns"][0]["tokens"] = 12
    record["contradiction_chains"][0]["versions"][0]["why"] = None
    data = load_benchmark(write(tmp_path, record))
    assert data.extra == {"licence": "Apache-2.0", "made": {"by": ["a", None]}}
    assert data.facts[0].extra == {"note": {"de": "über"}, "extra": 1}
    written = data.to_dict()
    assert {name: written[name] for name in ("licence", "made")} == data.extra
    for name in MINIMAL:
        for before, after in zip(record[name], written[name], strict=True):
            assert after | before == after
    assert BenchmarkData.from_dict(written) == data


def test_a_known_field_is_not_written_over_by_an_unknown_one() -> None:
    one = Question("Q1", "Who?")
    one.extra["question"] = "Where?"
    assert one.to_dict()["question"] == "Who?"


@pytest.mark.parametrize("name", ["stress.json", "stress.json.gz"])
def test_what_is_saved_is_loaded_again(name: str, tmp_path: Path) -> None:
    data = BenchmarkData.from_dict(benchmark() | {"title": "Käse \ud800 \u2028 🐝"})
    data.save(tmp_path / name)
    first = (tmp_path / name).read_bytes()
    assert load_benchmark(str(tmp_path / name)) == data
    data.save(str(tmp_path / name))
    assert (tmp_path / name).read_bytes() == first


def test_a_list_of_one_record_is_a_benchmark_too(tmp_path: Path) -> None:
    assert load_benchmark(write(tmp_path, [benchmark()])) == BenchmarkData.from_dict(benchmark())


def test_what_is_written_shares_nothing_with_the_container() -> None:
    data = BenchmarkData.from_dict(benchmark())
    data.to_dict()["sessions"][0]["turns"][0]["content"] = "changed"
    assert data == BenchmarkData.from_dict(benchmark())


def test_a_number_as_answer_stays_a_number() -> None:
    data = BenchmarkData.from_dict(
        {"questions": [question(1, "How many?", 3, []), question(2, "?", 1.5, [])]}
    )
    assert [one["answer"] for one in data.to_dict()["questions"]] == [3, 1.5]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_KINDS: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(),
    "int": st.integers(),
    "bool": st.booleans(),
    "str | None": st.none() | st.text(),
    "str | int | float": st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    "list[str]": st.lists(st.text(), max_size=3),
    "dict[str, Any]": st.dictionaries(st.text(), _JSON, max_size=3),
    "list[dict[str, Any]]": st.lists(st.dictionaries(st.text(), _JSON, max_size=3), max_size=3),
}
_PARTS = {
    "list[Fact]": Fact,
    "list[ContradictionChain]": ContradictionChain,
    "list[Session]": Session,
    "list[Question]": Question,
}


def records(kind: Any) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects of a kind: required fields, some of the others, and fields that nobody knows."""
    required, optional = {}, {}
    for one in fields(kind):
        part = _PARTS.get(one.type)
        values = st.lists(records(part), max_size=2) if part else _KINDS[one.type]
        needed = one.default is MISSING and one.default_factory is MISSING
        (required if needed else optional)[one.name] = values
    unknown = st.dictionaries(
        st.text().filter(lambda name: name not in {**required, **optional}), _JSON, max_size=2
    )
    known = st.fixed_dictionaries(required, optional=optional)
    return st.builds(lambda some, more: some | more, known, unknown)


@settings(max_examples=50, deadline=None)  # a slow machine is no failure
@given(records(BenchmarkData))
def test_nothing_is_lost_on_the_way_through_json(record: dict[str, Any]) -> None:
    data = BenchmarkData.from_dict(json.loads(json.dumps(record)))
    written = json.loads(json.dumps(data.to_dict()))
    assert BenchmarkData.from_dict(written) == data
    assert written == with_defaults(record, BenchmarkData)


def with_defaults(record: dict[str, Any], kind: type) -> dict[str, Any]:
    """The record with every optional field, all the way down."""
    whole = FORMAT[kind] | record
    for one in fields(kind):
        if part := _PARTS.get(one.type):
            whole[one.name] = [with_defaults(item, part) for item in whole[one.name]]
    return whole


# -- sentences ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "name", "value", "sentence"),
    [
        ("facts", "content", ..., "fact 'F1', field content: missing; expected a text"),
        ("facts", "fact_id", ..., "facts[0], field fact_id: missing; expected a text"),
        ("facts", "fact_id", 7, "facts[0], field fact_id: is 7; expected a text"),
        ("facts", "importance", True, "fact 'F1', field importance: is True; expected a whole number"),
        ("facts", "importance", 2.0, "fact 'F1', field importance: is 2.0; expected a whole number"),
        ("facts", "phase_planted", "1", "fact 'F1', field phase_planted: is '1'; expected a whole number"),
        ("facts", "recoverable", 1, "fact 'F1', field recoverable: is 1; expected true or false"),
        ("facts", "recoverable", None, "fact 'F1', field recoverable: is None; expected true or false"),
        ("facts", "tags", "x", "fact 'F1', field tags: is 'x'; expected a list of texts"),
        ("facts", "tags", ["x", 4], "fact 'F1', field tags[1]: is 4; expected a list of texts"),
        (
            "facts",
            "contradiction_chain",
            3,
            "fact 'F1', field contradiction_chain: is 3; expected a text or null",
        ),
        (
            "contradiction_chains",
            "original_fact_id",
            ...,
            "chain 'C1', field original_fact_id: missing; expected a text",
        ),
        (
            "contradiction_chains",
            "versions",
            ["v1"],
            "chain 'C1', field versions[0]: is 'v1'; expected a list of objects",
        ),
        (
            "sessions",
            "session_index",
            None,
            "session 'S1', field session_index: is None; expected a whole number",
        ),
        ("sessions", "turns", {}, "session 'S1', field turns: is {}; expected a list of objects"),
        ("sessions", "turns", [[]], "session 'S1', field turns[0]: is []; expected a list of objects"),
        ("questions", "question", ["a"], "question 'Q1', field question: is ['a']; expected a text"),
        ("questions", "question_id", ..., "questions[0], field question_id: missing; expected a text"),
        ("questions", "answer", True, "question 'Q1', field answer: is True; expected a text or a number"),
        ("questions", "answer", None, "question 'Q1', field answer: is None; expected a text or a number"),
        (
            "questions",
            "phase_asked",
            "two",
            "question 'Q1', field phase_asked: is 'two'; expected a whole number",
        ),
        ("questions", "cold_start", "no", "question 'Q1', field cold_start: is 'no'; expected true or false"),
    ],
)
def test_a_broken_object_is_one_sentence(
    part: str, name: str, value: object, sentence: str, tmp_path: Path
) -> None:
    broken = MINIMAL[part] | {name: value}
    if value is ...:
        del broken[name]
    path = write(tmp_path, {one: [record] for one, record in MINIMAL.items()} | {part: [broken]})
    with pytest.raises(DatasetError) as caught:
        load_benchmark(path)
    assert str(caught.value) == f"{path}: {sentence}"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"facts": 3}, "field facts: is 3; expected a list of objects"),
        ({"questions": [None]}, "field questions[0]: is None; expected a list of objects"),
        ({"facts": [], "stats": []}, "field stats: is []; expected an object"),
        ({"facts": [], "version": 1}, "field version: is 1; expected a text"),
        (
            {"conversation": {}, "qa": []},
            "is not MemoryStress, which has facts, sessions, questions; the keys found are 'conversation', 'qa'",
        ),
        ({}, "is not MemoryStress, which has facts, sessions, questions; the keys found are none"),
        ([{"facts": []}, {"facts": []}], "holds 2 records; a MemoryStress benchmark is one object"),
    ],
)
def test_a_file_that_is_no_benchmark_is_one_sentence(content: object, sentence: str, tmp_path: Path) -> None:
    path = write(tmp_path, content)
    with pytest.raises(DatasetError) as caught:
        load_benchmark(path)
    assert str(caught.value) == f"{path}: {sentence}"


def test_the_file_itself_is_read_like_any_other(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"facts": [', encoding="utf-8")
    with pytest.raises(DatasetError, match=r"broken\.json: the JSON ends too early"):
        load_benchmark(broken)
    with pytest.raises(DatasetError, match="there is no such file"):
        load_benchmark(tmp_path / "absent.json")


def test_without_a_file_the_sentence_says_what_the_data_are() -> None:
    with pytest.raises(
        DatasetError, match=r"^MemoryStress data: fact 'F1', field content: is 1; expected a text"
    ):
        BenchmarkData.from_dict({"facts": [fact("F1", "x", "S1") | {"content": 1}]})
    with pytest.raises(
        DatasetError, match=r"^MemoryStress data: session, field session_id: is 1; expected a text"
    ):
        Session.from_dict(session(1, 1, "agent_a", []) | {"session_id": 1})


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"stress\.json: cannot be written \(No such file or directory\)"):
        BenchmarkData().save(tmp_path / "absent" / "stress.json")


# -- the package -------------------------------------------------------------------------------------


def test_the_generator_is_there_and_comes_only_when_it_is_asked_for() -> None:
    code = (
        "import sys\n"
        "from pytest_himga.data import memorystress\n"
        "print('pytest_himga.data.memorystress.generator' in sys.modules)\n"
        "print(callable(memorystress.generate))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
    assert set(memorystress.__all__) >= {"BenchmarkData", "generate", "load_benchmark", "load_memorystress"}
    with pytest.raises(AttributeError, match="has no attribute 'generat'"):
        _ = memorystress.generat
