"""Profiles of judges: what is read from a file, and what each mistake in one is told."""

from __future__ import annotations

import pytest
from judged_cases import NAMES, case, prompt, shipped

from pytest_himga.errors import SettingsError
from pytest_himga.judge.llm_profile import DEFAULT_PROFILES, load_judge_profile

OWN = """
kind = "judge"
description = "ours"
system = ["Tags end in {fence}.", "{rules}"]
user = ["{question}", "{gold}", { text = "Seen: {evidence}", with = "evidence" }, "{answer}"]
[rules]
default = ["be fair"]
abstention = ["it must say that it does not know"]
temporal = ["to the day"]
"""


def load(tmp_path, text):
    (tmp_path / "ours.toml").write_text(text, encoding="utf-8")
    return load_judge_profile("ours.toml", base=tmp_path, option="--himga-judge-profile=ours.toml")


def test_a_profile_of_ones_own(tmp_path):
    profile = load(tmp_path, OWN)
    assert (profile.name, profile.description) == ("ours", "ours")
    assert profile.sha256 != load(tmp_path, OWN.replace("to the day", "to the hour")).sha256
    assert profile.fields == {"rules", "question", "gold", "evidence", "answer"}
    assert prompt(profile, case(gold="red", category=2), "blue") == (
        "=== system\nTags end in FENCE.\n\n- to the day\n\n"
        "=== user\n<question_FENCE>\nWhat did Priya buy?\n</question_FENCE>\n\n"
        "<gold_FENCE>\nred\n</gold_FENCE>\n\n<answer_FENCE>\nblue\n</answer_FENCE>"
    )


def test_every_family_has_a_profile_and_all_shipped_ones_load():
    assert set(DEFAULT_PROFILES) == {"locomo", "longmemeval", "memorystress"}
    profiles = [shipped(name) for name in NAMES]
    assert set(DEFAULT_PROFILES.values()) < {profile.name for profile in profiles}
    assert len({profile.sha256 for profile in profiles}) == len(NAMES)
    for profile in profiles:
        assert profile.description
        # What is told of tags and replies is one text; only rules and material differ.
        assert profile.system == shipped("strict").system
        text = "".join(piece for rules in profile.rules.values() for rule in rules for piece in rule.pieces)
        assert text.isascii()
        assert "{" not in text


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('kind = "judge"', "", 'kind is missing; write kind = "judge" if this is for a judge'),
        ('"judge"', '"juge"', "kind is 'juge', and a judge needs 'judge'; did you mean judge?"),
        ('"judge"', '"answer"', "this one is for an answerer, take it for --himga-answer-profile"),
        ("description", "descripton", "descripton is unknown; did you mean description?"),
        ('"ours"', "1", "description is 1; write a text"),
        ("system =", 'preprocess = "locomo"\nsystem =', "preprocess is 'locomo'; "),
        ("system =", "preprocess = 3\nsystem =", "preprocess is 3; "),
        ("{rules}", "{rulez}", "system, paragraph 2: {rulez} is no field; did you mean rules?"),
        ("{gold}", "{golden}", "user, paragraph 2: {golden} is no field; did you mean gold?"),
        (
            'with = "evidence"',
            'with = "evidnce"',
            "user, paragraph 3: with = 'evidnce' is no field; did you mean evi",
        ),
        ("[rules]", "[ruled]", "ruled is unknown; did you mean rules?"),
        ("default =", "defalt =", "[rules]: defalt is unknown; did you mean default?"),
        ("temporal =", "temporl =", "[rules]: temporl is unknown; did you mean temporal?"),
        (
            "temporal =",
            "adversarial =",
            "[rules]: adversarial has no rules of its own: where nobody can answer",
        ),
        (
            'default = ["be fair"]',
            "",
            "[rules]: default is missing; write the list of rules for questions of a type",
        ),
        (
            'abstention = ["it must say that it does not know"]',
            "",
            "[rules]: abstention is missing; write the list of rules for questions that nobody can answer",
        ),
        ('["be fair"]', "[]", "[rules]: default: write a list of paragraphs, each a text"),
        ('["be fair"]', '"be fair"', "[rules]: default: write a list of paragraphs, each a text"),
        (
            '["be fair"]',
            '["like {gold}"]',
            "[rules]: default, paragraph 1: a rule shows no fields; name {gold} under",
        ),
        (
            '["be fair"]',
            '[{ text = "look", with = "evidence" }]',
            "[rules]: default: each rule has a condition; write one that always holds",
        ),
        (
            ', "{answer}"',
            ', "{gold}: {answer}"',
            "the judge may not see {answer}; name it in a paragraph of its own",
        ),
        ('"{question}"', '"{question} {date}"', "the judge may not see {question}"),
        (', "{rules}"', "", "the judge may not see {rules}"),
        ('"{gold}", ', "", "the judge may not see {gold}"),
        ("{fence}", "fence", "system does not say what the tags are; explain in a paragraph of its own"),
        ("[rules]", "[rules", "this is no TOML: "),
    ],
)
def test_a_mistake_in_a_profile_is_a_sentence(tmp_path, old, new, told):
    assert old in OWN
    with pytest.raises(SettingsError) as error:
        load(tmp_path, OWN.replace(old, new, 1))
    assert str(error.value).startswith(f"--himga-judge-profile=ours.toml ({tmp_path / 'ours.toml'}): ")
    assert told in str(error.value)


def test_without_a_table_of_rules(tmp_path):
    with pytest.raises(
        SettingsError, match=r"\[rules\] is missing; write a table with default and abstention"
    ):
        load(tmp_path, OWN.split("[rules]")[0])


def test_a_name_that_is_no_profile():
    with pytest.raises(SettingsError, match="did you mean strict"):
        shipped("strikt")
