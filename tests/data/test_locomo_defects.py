"""LoCoMo records with one thing wrong each: mended with a warning, or one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_himga.data import EvidenceRef, Message, QAPair, QuestionType, Sample, Session, load_locomo
from pytest_himga.data.identity import uid_of
from pytest_himga.data.locomo import type_labels
from pytest_himga.errors import DatasetError, DatasetWarning

Record = dict[str, Any]
Write = Callable[..., Path]


def load(path: Path) -> tuple[list[Sample], list[str]]:
    """The samples, and what was said of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        samples = load_locomo(path)
    assert all(issubclass(warning.category, DatasetWarning) for warning in caught)
    return samples, [str(warning.message) for warning in caught]


def put(record: Any, path: Sequence[str | int], value: object) -> None:
    """``record[a][b] = value`` for the path (a, b); ``...`` takes the field away."""
    *way, last = path
    for step in way:
        record = record[step]
    if value is ...:
        del record[last]
    else:
        record[last] = value


# -- a good record -----------------------------------------------------------------------------------


def test_a_good_record_is_taken_over_whole(record: Record, write: Write) -> None:
    samples, said = load(write([record]))
    first, second = "1:56 pm on 8 May, 2023", "12:09 am on 3 June, 2023"
    assert said == []
    assert samples == [
        Sample(
            sample_id="boat",
            dataset="locomo",
            sessions=[
                Session(
                    "1",
                    [
                        Message("Ines", "I bought the green boat.", "D1:1", first),
                        Message("Olaf", "The one with the leak?", "D1:2", first),
                    ],
                    first,
                ),
                Session(
                    "2",
                    [
                        Message("Olaf", "How is the boat?", "D2:1", second),
                        Message("Ines", "It floats now.", "D2:2", second),
                    ],
                    second,
                ),
            ],
            qa_pairs=[
                QAPair(
                    "0",
                    "Who bought a boat?",
                    "Ines",
                    QuestionType.SINGLE_HOP,
                    EvidenceRef(turn_ids=["D1:1"], groups=[["D1:1"]]),
                    record["qa"][0],
                    uid=uid_of("Who bought a boat?", 4, 0),
                ),
                QAPair(
                    "1",
                    "What colour is Olaf's boat?",
                    "green",
                    QuestionType.ADVERSARIAL,
                    EvidenceRef(turn_ids=["D1:1"], groups=[["D1:1"]]),
                    record["qa"][1],
                    expects_abstention=True,
                    trap="green",
                    gold=None,
                    uid=uid_of("What colour is Olaf's boat?", 5, 0),
                ),
            ],
            speaker_a="Ines",
            speaker_b="Olaf",
            raw={key: record[key] for key in ("event_summary", "observation", "session_summary")},
        )
    ]


def test_one_record_and_a_path_as_text_do_too(record: Record, write: Write) -> None:
    assert load_locomo(str(write(record))) == load_locomo(write([record], "list.json"))


def test_a_sample_without_an_id_is_called_by_its_number(record: Record, write: Write) -> None:
    nameless = {key: value for key, value in record.items() if key != "sample_id"}
    samples, _ = load(
        write([record, nameless, {**nameless, "sample_id": None}, {**nameless, "sample_id": 26}])
    )
    assert [sample.sample_id for sample in samples] == ["boat", "1", "2", "26"]


# -- sessions ----------------------------------------------------------------------------------------


def test_sessions_come_by_number_and_only_those_with_turns(record: Record, write: Write) -> None:
    conversation = record["conversation"]
    conversation["session_10"] = [{"speaker": "Ines", "dia_id": "D10:1", "text": "Ahoy."}]
    conversation["session_10_date_time"] = "9:00 am on 1 July, 2023"
    conversation["session_11_date_time"] = "not even a date"  # an orphan: no turns stand under it
    record["conversation"] = dict(reversed(conversation.items()))
    (sample,), said = load(write([record]))
    assert [session.session_id for session in sample.sessions] == ["1", "2", "10"]
    assert said == []


def test_a_session_without_messages_is_left_out_aloud(record: Record, write: Write) -> None:
    record["conversation"]["session_2"] = []
    path = write([record])
    (sample,), said = load(path)
    assert [session.session_id for session in sample.sessions] == ["1"]
    assert said == [
        f"{path}: sample 'boat', field conversation.session_2: the session has no messages; it is left out"
    ]


def test_a_session_without_a_date_is_kept_aloud(record: Record, write: Write) -> None:
    del record["conversation"]["session_2_date_time"]
    path = write([record])
    (sample,), said = load(path)
    assert sample.sessions[1].date_str is None
    assert {message.date_str for message in sample.sessions[1].messages} == {None}
    assert said == [
        (
            f"{path}: sample 'boat', field conversation.session_2_date_time: missing; "
            "the session is fed without a date"
        )
    ]


@pytest.mark.parametrize(
    ("turn", "content"),
    [
        ({"text": "Look!", "blip_caption": "a boat on a lake"}, "[Image: a boat on a lake] Look!"),
        ({"text": "", "blip_caption": "a boat on a lake"}, "[Image: a boat on a lake]"),
        ({"text": " \n", "blip_caption": " a boat "}, "[Image: a boat]"),
        ({"text": "\nLook!\n", "blip_caption": "a boat"}, "[Image: a boat] \nLook!\n"),
        ({"text": "Look!", "blip_caption": ""}, "Look!"),
        ({"text": "Look!", "blip_caption": None}, "Look!"),
        ({"text": "", "img_url": ["somewhere"]}, ""),
        ({"text": "Look!\u200b", "query": "green boat", "re-download": True}, "Look!\u200b"),
    ],
)
def test_a_caption_stands_before_the_text(turn: Record, content: str, record: Record, write: Write) -> None:
    record["conversation"]["session_2"][1] = {"speaker": "Ines", "dia_id": "D2:2", **turn}
    (sample,), said = load(write([record]))
    assert sample.sessions[1].messages[1].content == content
    assert said == []


def test_the_annotators_query_never_leaves(record: Record, write: Write) -> None:
    record["conversation"]["session_1"][0] |= {"query": "SECRET", "blip_caption": "a boat"}
    (sample,), _ = load(write([record]))
    assert "SECRET" not in repr(sample)


# -- questions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "turn_ids", "lost"),
    [
        (["D1:1", "D2:1"], ["D1:1", "D2:1"], []),
        (["D2:1", "D1:1"], ["D2:1", "D1:1"], []),  # not in order, and kept so
        (["D1:1; D2:2"], ["D1:1", "D2:2"], []),
        (["D1:1 D1:2 D2:1"], ["D1:1", "D1:2", "D2:1"], []),
        (["D:2:1"], ["D2:1"], []),
        (["D2:01", "D02:1"], ["D2:1"], []),
        (["D 2:1"], ["D2:1"], []),
        (["D1:1", "D1:1"], ["D1:1"], []),
        ("D1:1", ["D1:1"], []),
        ([], [], []),
        (None, [], []),
        (["D1:1", "D", "D2:1"], ["D1:1", "D2:1"], [(1, "'D'")]),
        (["D1:9"], [], [(0, "'D1:9'")]),
        (["D1:1; D9:1"], ["D1:1"], [(0, "'D9:1'")]),
        (["", 7], [], [(0, "''"), (1, "7")]),
        ({"turn": 1}, [], [(0, "{'turn': 1}")]),
    ],
)
def test_evidence_is_read_leniently(
    evidence: object, turn_ids: list[str], lost: list[tuple[int, str]], record: Record, write: Write
) -> None:
    record["qa"][0]["evidence"] = evidence
    path = write([record])
    (sample,), said = load(path)
    assert sample.qa_pairs[0].evidence == EvidenceRef(turn_ids=turn_ids, groups=[[t] for t in turn_ids])
    assert sample.qa_pairs[0].raw["evidence"] == evidence
    assert said == [
        f"{path}: sample 'boat', field qa[0].evidence[{position}]: {value} names no turn; it is left out"
        for position, value in lost
    ]


def test_evidence_may_be_absent(record: Record, write: Write) -> None:
    del record["qa"][0]["evidence"]
    (sample,), said = load(write([record]))
    assert sample.qa_pairs[0].evidence == EvidenceRef()
    assert said == []


@pytest.mark.parametrize(("raw", "text"), [(2022, "2022"), (1.5, "1.5"), (" a ", " a "), ("2; 3", "2; 3")])
def test_an_answer_is_always_text_and_literal(raw: object, text: str, record: Record, write: Write) -> None:
    record["qa"][0]["answer"] = raw
    (sample,), _ = load(write([record]))
    assert (sample.qa_pairs[0].answer, sample.qa_pairs[0].gold) == (text, text)


def test_a_question_without_an_answer_is_kept_aloud(record: Record, write: Write) -> None:
    del record["qa"][0]["answer"]
    path = write([record])
    (sample,), said = load(path)
    assert sample.qa_pairs[0].answer == ""
    assert not sample.qa_pairs[0].expects_abstention
    assert said == [f"{path}: sample 'boat', field qa[0].answer: missing; only retrieval can be scored"]


@pytest.mark.parametrize(
    ("fields", "answer", "gold", "trap", "abstain"),
    [
        ({"adversarial_answer": "green"}, "green", None, "green", True),
        ({"adversarial_answer": "Yes", "answer": "No"}, "Yes", "No", "Yes", False),
        ({"adversarial_answer": 3, "answer": None}, "3", None, "3", True),
        ({"adversarial_answer": "green", "answer": ""}, "green", None, "green", True),
        ({"answer": "No"}, "No", "No", None, False),
        ({}, "", None, None, True),
    ],
)
def test_category_five_holds_a_trap_and_sometimes_a_gold(
    fields: Record,
    answer: str,
    gold: str | None,
    trap: str | None,
    abstain: bool,
    record: Record,
    write: Write,
) -> None:
    record["qa"] = [{"question": "Is it Olaf's?", "evidence": [], "category": 5, **fields}]
    (sample,), said = load(write([record]))
    (pair,) = sample.qa_pairs
    assert (pair.answer, pair.gold, pair.trap, pair.expects_abstention) == (answer, gold, trap, abstain)
    assert said == []


def test_an_adversarial_answer_means_nothing_elsewhere(record: Record, write: Write) -> None:
    record["qa"][0]["adversarial_answer"] = "Olaf"
    (sample,), _ = load(write([record]))
    assert (sample.qa_pairs[0].gold, sample.qa_pairs[0].trap) == ("Ines", None)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ("locomo", ["multi_hop", "temporal", "open_domain", "single_hop", "adversarial"]),
        ("himga", ["single_hop", "temporal", "multi_hop", "open_domain", "adversarial"]),
    ],
)
def test_labels_name_the_categories_and_touch_no_uid(
    labels: str, names: list[str], record: Record, write: Write
) -> None:
    record["qa"] = [{"question": "Same?", "answer": "x", "evidence": [], "category": n} for n in range(1, 6)]
    (sample,) = load_locomo(write([record]), labels=labels)
    assert [pair.question_type.value for pair in sample.qa_pairs] == names
    assert [pair.uid for pair in sample.qa_pairs] == [uid_of("Same?", n, 0) for n in range(1, 6)]
    assert list(type_labels(labels).items()) == [(name, f"{n} {name}") for n, name in enumerate(names, 1)]


def test_unknown_labels_are_refused(record: Record, write: Write) -> None:
    with pytest.raises(DatasetError, match=r"^There are no LoCoMo labels 'himgo'; did you mean himga\?$"):
        load_locomo(write([record]), labels="himgo")


def test_a_category_may_be_a_number_in_text(record: Record, write: Write) -> None:
    record["qa"][0]["category"] = "4"
    (sample,), _ = load(write([record]))
    assert sample.qa_pairs[0].question_type is QuestionType.SINGLE_HOP
    assert sample.qa_pairs[0].uid == uid_of("Who bought a boat?", 4, 0)


def test_twins_stay_two_and_a_type_tells_questions_apart(record: Record, write: Write) -> None:
    ask = {"question": "Who?", "answer": "Ines", "evidence": []}
    record["qa"] = [{**ask, "category": 4}, {**ask, "category": 1}, {**ask, "category": 4}]
    (sample,), _ = load(write([record]))
    assert [pair.uid for pair in sample.qa_pairs] == [
        uid_of("Who?", 4, 0),
        uid_of("Who?", 1, 0),
        uid_of("Who?", 4, 1),
    ]


# -- sentences ---------------------------------------------------------------------------------------

TURN = ("conversation", "session_1", 1)
TURN_FIELD = "conversation.session_1[1]"


@pytest.mark.parametrize(
    ("where", "value", "field", "problem"),
    [
        (["conversation"], ..., "conversation", "missing; expected an object"),
        (["conversation"], [], "conversation", "is []; expected an object"),
        (["qa"], ..., "qa", "missing; expected a list"),
        (["qa"], {"a": 1}, "qa", "is {'a': 1}; expected a list"),
        (["conversation", "speaker_a"], 5, "conversation.speaker_a", "is 5; expected a text"),
        (["conversation", "session_1"], "hi", "conversation.session_1", "is 'hi'; expected a list"),
        (["conversation", "session_1"], None, "conversation.session_1", "missing; expected a list"),
        (
            ["conversation", "session_01"],
            [],
            "conversation.session_01",
            "is session 1 again, after session_1; rename one",
        ),
        (
            ["conversation", "session_1_date_time"],
            "last Tuesday",
            "conversation.session_1_date_time",
            "'last Tuesday' is not a date; expected one like '1:56 pm on 8 May, 2023'",
        ),
        (
            ["conversation", "session_1_date_time"],
            20230508,
            "conversation.session_1_date_time",
            "is 20230508; expected a text",
        ),
        (TURN, "hello", TURN_FIELD, "is 'hello'; expected an object"),
        ((*TURN, "speaker"), ..., f"{TURN_FIELD}.speaker", "missing; expected a text"),
        ((*TURN, "speaker"), " ", f"{TURN_FIELD}.speaker", "is ' '; expected a text that is not blank"),
        ((*TURN, "dia_id"), ..., f"{TURN_FIELD}.dia_id", "missing; expected a text"),
        ((*TURN, "dia_id"), 12, f"{TURN_FIELD}.dia_id", "is 12; expected a text"),
        (
            (*TURN, "dia_id"),
            "D1:1",
            f"{TURN_FIELD}.dia_id",
            "'D1:1' is used by an earlier turn; make it unique",
        ),
        ((*TURN, "text"), ..., f"{TURN_FIELD}.text", "missing; expected a text"),
        ((*TURN, "text"), ["a"], f"{TURN_FIELD}.text", "is ['a']; expected a text"),
        ((*TURN, "blip_caption"), 3, f"{TURN_FIELD}.blip_caption", "is 3; expected a text"),
        (["qa", 1], "who?", "qa[1]", "is 'who?'; expected an object"),
        (["qa", 1, "question"], ..., "qa[1].question", "missing; expected a text"),
        (["qa", 1, "question"], "", "qa[1].question", "is ''; expected a text that is not blank"),
        (["qa", 1, "question"], 7, "qa[1].question", "is 7; expected a text"),
        (["qa", 1, "category"], ..., "qa[1].category", "missing; expected a number"),
        *(
            (
                ["qa", 1, "category"],
                bad,
                "qa[1].category",
                f"{bad!r} is not a category of LoCoMo; expected 1 to 5",
            )
            for bad in (6, 0, -1, True, 4.0, "four", "", [4])
        ),
        (["qa", 0, "answer"], ["a"], "qa[0].answer", "is ['a']; expected a text or a number"),
        (["qa", 0, "answer"], True, "qa[0].answer", "is True; expected a text or a number"),
        (
            ["qa", 1, "adversarial_answer"],
            {},
            "qa[1].adversarial_answer",
            "is {}; expected a text or a number",
        ),
    ],
)
def test_a_broken_record_is_one_sentence(
    where: Sequence[str | int], value: object, field: str, problem: str, record: Record, write: Write
) -> None:
    put(record, where, value)
    path = write([record])
    with pytest.raises(DatasetError) as caught:
        load_locomo(path)
    assert str(caught.value) == f"{path}: sample 'boat', field {field}: {problem}"


@pytest.mark.parametrize("bad", [["a"], " ", True])
def test_a_broken_sample_id_is_found_by_its_number(bad: object, record: Record, write: Write) -> None:
    path = write([record, {**record, "sample_id": bad}])
    with pytest.raises(DatasetError) as caught:
        load_locomo(path)
    assert str(caught.value) == (
        f"{path}: sample '1', field sample_id: is {bad!r}; expected a text, or nothing"
    )


def test_two_samples_of_one_id_name_both_files(record: Record, write: Write, tmp_path: Path) -> None:
    first, second = write(record, "d/a.json"), write(record, "d/b.json")
    with pytest.raises(DatasetError) as caught:
        load_locomo(tmp_path / "d")
    assert str(caught.value) == (
        f"{second}: sample 'boat', field sample_id: a sample of this id stands in {first} already; rename one"
    )


def test_an_error_in_a_folder_names_the_file(record: Record, write: Write, tmp_path: Path) -> None:
    write(record, "d/a.json")
    path = write({**record, "sample_id": "other", "qa": 1}, "d/b.json")
    with pytest.raises(DatasetError) as caught:
        load_locomo(tmp_path / "d")
    assert str(caught.value) == f"{path}: sample 'other', field qa: is 1; expected a list"
