"""Errata: which questions a list leaves out or corrects, and every way in which a list can be wrong."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files

import pytest

from pytest_himga.data.errata import SHIPPED, apply_errata, read_errata
from pytest_himga.data.identity import uid_of
from pytest_himga.data.opening import open_dataset
from pytest_himga.errors import DatasetError
from pytest_himga.options import ERRATA_LISTS

BOAT = """
source = "https://example.org/audit"
question = [
  { id = "boat/0", gold = "Olaf", reason = "she only looked at it" },
  { id = "boat/1", exclude = true, reason = "no such boat", source = "a letter" },
]
"""


@pytest.fixture
def dataset(record, write):
    record["qa"].append({**record["qa"][0], "question": "Who sold it?"})
    return open_dataset(f"mine={write([record])}")


@pytest.fixture
def listed(tmp_path):
    """A list from its text."""

    def make(text=BOAT, name="boats.toml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return read_errata(name, tmp_path)

    return make


def test_a_list_excludes_and_corrects_and_touches_nothing_else(dataset, listed):
    before = [(case.id, case.question) for case in dataset.cases()]
    apply_errata([listed()], [dataset])
    corrected, excluded, other = dataset.cases()
    assert (corrected.brief.gold, corrected.question.gold) == ("Olaf", "Olaf")
    assert corrected.as_published().question == before[0][1]
    assert corrected.erratum.source == "https://example.org/audit"
    assert (excluded.erratum.exclude, excluded.erratum.reason, excluded.erratum.source) == (
        True,
        "no such boat",
        "a letter",
    )
    assert (excluded.question, other.question, other.erratum) == (before[1][1], before[2][1], None)
    assert [case.id for case in dataset.cases()] == [nodeid for nodeid, _ in before]


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("how", ["boat/0", "boat/{uid}", "himga/mine/boat::{uid}"])
def test_a_question_is_named_by_number_uid_or_node_id_in_toml_or_json(dataset, listed, how, as_json):
    uid = uid_of("Who bought a boat?", 4, 0)
    content = {"source": "s", "question": [{"id": how.format(uid=uid), "exclude": True, "reason": "r"}]}
    if as_json:
        one = listed(json.dumps(content), "boats.json")
    else:
        one = listed(
            f'source = "s"\nquestion = [{{ id = "{how.format(uid=uid)}", exclude = true, reason = "r" }}]'
        )
    apply_errata([one], [dataset])
    assert [bool(case.erratum) for case in dataset.cases()] == [True, False, False]


def test_the_digest_of_the_list_tells_one_version_from_another(listed, dataset):
    one, other = listed(), listed(BOAT.replace("no such boat", "no boat"), "other.toml")
    assert (one.name, other.name) == ("boats", "other")
    assert one.sha256 != other.sha256
    apply_errata([one], [dataset])
    assert dataset.errata.as_json() == [{"name": "boats", "sha256": one.sha256}]
    assert dataset.errata.label == f"boats {one.sha256[:12]}"


def test_where_two_lists_meet_leaving_out_beats_correcting(listed, dataset):
    corrects = listed()
    excludes = listed(
        'source = "s"\nquestion = [{ id = "boat/0", exclude = true, reason = "hopeless" }]', "x.toml"
    )
    for order in ([corrects, excludes], [excludes, corrects]):
        dataset.errata = None
        apply_errata(order, [dataset])
        assert dataset.cases()[0].erratum.reason == "hopeless"
        assert len(dataset.errata.lists) == 2


def test_two_lists_that_correct_one_question_otherwise_are_refused(listed, dataset):
    other = listed('source = "s"\nquestion = [{ id = "boat/0", gold = "Ida", reason = "r" }]', "x.toml")
    with pytest.raises(DatasetError, match="The errata x correct boat/0 otherwise than another list does"):
        apply_errata([listed(), other], [dataset])


def test_a_list_is_only_about_the_data_that_it_names(listed, dataset, record, write):
    another = open_dataset(f"other={write([{**record, 'sample_id': 'raft'}], 'raft.json')}")
    for head in (f'sha256 = "{dataset.sha256}"', 'dataset = "mine"'):
        dataset.errata = another.errata = None
        apply_errata([listed(head + BOAT)], [another, dataset])
        assert another.errata is None
        assert dataset.errata is not None
    with pytest.raises(DatasetError) as caught:
        apply_errata([listed('sha256 = "abc"' + BOAT)], [dataset])
    assert str(caught.value) == (
        f"The errata boats are about data of sha256 abc, and the run has mine (sha256 {dataset.sha256})"
    )
    with pytest.raises(DatasetError, match=r"are about the dataset kitchen, and the run has mine"):
        apply_errata([listed('dataset = "kitchen"' + BOAT)], [dataset])


def test_a_question_that_is_nowhere_is_named(listed, dataset):
    ids = ["boat/0", "boat/7", "raft/0", "boat/8", "boat/9"]
    rows = ", ".join(f'{{ id = "{one}", exclude = true, reason = "r" }}' for one in ids)
    with pytest.raises(DatasetError) as caught:
        apply_errata([listed(f'source = "s"\nquestion = [{rows}]')], [dataset])
    assert str(caught.value) == (
        "The errata boats name questions that mine has not: boat/7, raft/0, boat/8 and 1 more"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("question = [", "cannot be read as .toml ("),
        ("", "has no questions; write a list `question` of tables with id and reason"),
        ("question = []", "has no questions"),
        ("question = 3", "has no questions"),
        ('questions = ["x"]', "questions is no key of an errata list; did you mean question?"),
        ("source = 1\nquestion = [3]", "source is 1; expected a text"),
        ("question = [3]", "question[0] is 3; expected a table with id and reason"),
        ('question = [{ id = "a/0", exclude = true }]', "question[0].reason is None; expected a text"),
        ('question = [{ exclude = true, reason = "r" }]', "question[0].id is None; expected a text"),
        (
            'question = [{ id = "a/0", exclude = true, reason = "r" }]',
            "question[0].source is ''; expected a text",
        ),
        ('question = [{ id = "a/0", exlude = true }]', "exlude is no key of an entry; did you mean exclude?"),
        (
            'source = "s"\nquestion = [{ id = "a/0", reason = "r" }]',
            "question[0] (a/0): write either exclude = true, or a corrected gold",
        ),
        (
            'source = "s"\nquestion = [{ id = "a/0", reason = "r", exclude = true, gold = "x" }]',
            "write either",
        ),
        (
            'source = "s"\nquestion = [{ id = "a/0", reason = "r", exclude = false, gold = "x" }]',
            "write either",
        ),
        (
            'source = "s"\nquestion = [{ id = "a/0", reason = "r", gold = 3 }]',
            "question[0].gold is 3; expected a text",
        ),
        (
            'source = "s"\nquestion = [{ id = "a/0", reason = "r", exclude = true, only = "judge" }]',
            "question[0].only is 'judge'; the one choice is \"evidence\"",
        ),
        (
            (
                'source = "s"\nquestion = [{ id = "a/0", exclude = true, reason = "r" }, '
                '{ id = "a/0", gold = "x", reason = "r" }]'
            ),
            "question[1]: a/0 is there twice; keep one",
        ),
    ],
)
def test_a_broken_list_is_one_sentence_with_its_place(listed, tmp_path, text, said):
    with pytest.raises(DatasetError) as caught:
        listed(text)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "boats.toml"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "end"),
    [
        ("locomo-adit", "did you mean locomo-audit?"),
        ("~nobody-of-that-name/list.toml", "known: locomo-audit"),
        ("nul\0byte.toml", "known: locomo-audit"),
        (".", "known: locomo-audit"),
        ("/dev/zero", "known: locomo-audit"),
    ],
)
def test_a_list_that_is_nowhere(tmp_path, spec, end):
    with pytest.raises(DatasetError) as caught:
        read_errata(spec, tmp_path)
    assert str(caught.value) == (
        f"--himga-errata={spec}: there is no such file, and no shipped list of that name; {end}"
    )


@pytest.mark.parametrize("name", ["list.toml", "list.json"])
def test_a_list_that_is_nested_beyond_reason_is_one_sentence(tmp_path, name):
    content = "[" * 100_000 if name.endswith(".json") else "question = " + "[" * 100_000
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DatasetError, match=rf"{name}: cannot be read as \.\w+ \(.*\); mend the file"):
        read_errata(name, tmp_path)


@pytest.mark.parametrize("name", ["list.toml", "list.json"])
def test_a_byte_order_mark_is_passed_over(tmp_path, name):
    entry = {"id": "boat/0", "exclude": True, "reason": "r", "source": "s"}
    text = json.dumps({"question": [entry]})
    if name.endswith(".toml"):
        text = 'question = [{ id = "boat/0", exclude = true, reason = "r", source = "s" }]'
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert list(read_errata(name, tmp_path).entries) == ["boat/0"]


# -- the shipped list --------------------------------------------------------------------------------


def test_the_shipped_lists_are_those_that_the_option_names():
    assert tuple(SHIPPED) == ERRATA_LISTS


def test_the_audit_of_locomo_has_ids_classes_and_sources_and_only_excludes():
    audit = read_errata("locomo-audit")
    assert all(
        erratum.exclude and erratum.source.startswith("https://") for erratum in audit.entries.values()
    )
    reasons = [erratum.reason for erratum in audit.entries.values() if not erratum.only_evidence]
    assert {reason: reasons.count(reason) for reason in reasons} == {
        "hallucinated fact": 33,
        "temporal error": 26,
        "wrong speaker or ambiguous": 37,
        "incomplete answer": 3,
    }
    assert sum(erratum.only_evidence for erratum in audit.entries.values()) == 57
    text = (files("pytest_himga.data") / SHIPPED["locomo-audit"]).read_text(encoding="utf-8")
    assert {key for entry in tomllib.loads(text)["question"] for key in entry} == {
        "id",
        "exclude",
        "reason",
        "only",
    }


def test_the_audit_fits_the_official_file_and_no_other(real_locomo, dataset):
    official = open_dataset(f"locomo={real_locomo}")
    audit = read_errata("locomo-audit")
    apply_errata([audit], [official])
    assert len(official.errata.by_question) == len(audit.entries) == 156
    categories = [case.question.raw["category"] for case in official.cases() if case.erratum]
    assert set(categories) <= {1, 2, 3, 4}
    with pytest.raises(DatasetError, match="The errata locomo-audit are about data of sha256 79fa87"):
        apply_errata([audit], [dataset])
