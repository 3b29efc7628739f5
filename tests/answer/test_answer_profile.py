"""Profiles of the answerer: what the shipped ones say, and what a broken one is told."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_himga.answer.answer_profile import SHIPPED, AnswerProfile, load_answer_profile
from pytest_himga.errors import SettingsError
from pytest_himga.judge.abstention import abstains, read_abstention

GOOD = {
    "kind": '"answer"',
    "user": '["Asked: {question}", "Known: {memories}"]',
}


def load(spec: str, base: Path = Path()) -> AnswerProfile:
    """The profile after ``--himga-answer-profile``."""
    return load_answer_profile(spec, base=base, option=f"--himga-answer-profile={spec}")


def write(folder: Path, **keys: str) -> None:
    """A profile ``ours.toml`` of these keys, whose values are TOML."""
    text = "\n".join(f"{key} = {value}" for key, value in (GOOD | keys).items() if value)
    (folder / "ours.toml").write_text(text + "\n", encoding="utf-8")


@pytest.mark.parametrize("name", SHIPPED)
def test_each_shipped_profile_loads_and_says_what_it_is(name: str) -> None:
    profile = load(name)
    assert (profile.name, profile.marker) == (name, "ANSWER:")
    assert re.fullmatch("[0-9a-f]{64}", profile.sha256)
    assert 40 < len(profile.description) < 120


def test_the_shipped_profiles_are_all_there_are() -> None:
    folder = Path(load_answer_profile.__globals__["__file__"]).parent / "profiles"
    assert sorted(path.stem for path in folder.iterdir()) == sorted(SHIPPED)


def test_what_strict_says_when_it_does_not_know_is_an_abstention_by_rule() -> None:
    system = "\n".join(piece for paragraph in load("strict").system for piece in paragraph.pieces)
    phrase = "Not mentioned in the memories."
    assert f"the whole answer is: {phrase}" in system
    assert abstains(phrase)
    assert read_abstention(phrase, "a cat") == "held"


@pytest.mark.parametrize(
    ("name", "k", "note"),
    [
        ("strict", 10, None),
        ("strict", 200, None),
        ("benchmark", 200, None),
        ("benchmark", 10, "published numbers with this kind of prompt use k 200, this run k 10"),
    ],
)
def test_a_k_that_is_not_the_published_one_is_said(name: str, k: int, note: str | None) -> None:
    assert load(name).note_for(k) == note


def test_a_profile_of_one_s_own_is_named_by_its_file_and_compared_by_its_key(tmp_path: Path) -> None:
    write(tmp_path, published_k="30", marker='"=>"', description='"short"')
    profile = load("ours.toml", tmp_path)
    assert (profile.name, profile.description, profile.marker, profile.system) == ("ours", "short", "=>", ())
    assert profile.note_for(10) == "published numbers with this kind of prompt use k 30, this run k 10"
    assert replace(profile, published_k=None).note_for(10) is None
    messages = profile.messages({"question": "Q?", "memories": "M", "date": None, "profile": None, "k": "1"})
    assert [message.role for message in messages] == ["user"]


def test_its_own_prompt_may_name_all_fields(tmp_path: Path) -> None:
    write(tmp_path, system='["Up to {k}, after {marker}, ends in {fence}.", "On {date}", "Of {profile}"]')
    fields = {"question": "Q?", "memories": "M", "date": None, "profile": "P", "k": "7"}
    first = load("ours.toml", tmp_path).messages(fields)[0]
    texts = [part if isinstance(part, str) else type(part).__name__ for part in first.parts]
    assert "".join(texts) == "Up to 7, after ANSWER:, ends in Mark.\n\nOf Fenced"


def test_no_system_message_is_sent_where_none_of_its_paragraphs_is_left(tmp_path: Path) -> None:
    write(tmp_path, system='["Asked on {date}"]')
    fields = {"question": "Q?", "memories": "M", "date": None, "profile": None, "k": "7"}
    profile = load("ours.toml", tmp_path)
    assert [message.role for message in profile.messages(fields)] == ["user"]
    assert [message.role for message in profile.messages(fields | {"date": "8 May"})] == ["system", "user"]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"kind": ""}, 'it does not say what it is for; write kind = "answer" at its top'),
        (
            {"kind": '"judge"'},
            "this is a profile of kind 'judge', and an answerer needs one of kind \"answer\"",
        ),
        ({"kind": "[1]"}, "this is a profile of kind [1]"),
        ({"users": "1"}, "users is unknown; did you mean user?"),
        ({"user": ""}, "user: write a list of paragraphs, each a text"),
        ({"user": '"{question} {memories}"'}, "user: write a list of paragraphs, each a text"),
        (
            {"user": '["{memories}", "{questoin}"]'},
            "user, paragraph 2: {questoin} is no field; did you mean question?",
        ),
        ({"user": '["{memories}", "{gold}"]'}, "user, paragraph 2: {gold} is no field"),
        (
            {"user": '["{memories}"]'},
            "{question} stands nowhere, so no model would see it; write it into user",
        ),
        ({"user": '["{question}"]'}, "{memories} stands nowhere"),
        (
            {"user": '["{memories}", "On {date}: {question}"]'},
            "{question} stands only in paragraphs that are left out",
        ),
        (
            {"user": '["{question}", { text = "{memories}", with = "profile" }]'},
            "{memories} stands only in paragraphs that are left out",
        ),
        ({"system": "[]"}, "system: write a list of paragraphs, each a text"),
        (
            {"marker": '" "'},
            "marker is ' '; write what the final answer follows, one line of at most 40 characters",
        ),
        ({"marker": '"A\\nB"'}, "marker is 'A\\nB'"),
        ({"marker": f'"{"A" * 41}"'}, "marker is 'AAAA"),
        ({"marker": "7"}, "marker is 7;"),
        ({"description": "7"}, "description is 7; write a text"),
        ({"published_k": "0"}, "published_k is 0; write a whole number from 1"),
        ({"published_k": "true"}, "published_k is True; write a whole number from 1"),
        ({"published_k": "1.5"}, "published_k is 1.5; write a whole number from 1"),
    ],
)
def test_a_broken_profile_is_refused_in_one_sentence(tmp_path: Path, keys: dict, problem: str) -> None:
    write(tmp_path, **keys)
    with pytest.raises(SettingsError) as caught:
        load("ours.toml", tmp_path)
    where = f"--himga-answer-profile=ours.toml ({tmp_path / 'ours.toml'}): "
    assert str(caught.value).startswith(where + problem)
    assert "\n" not in str(caught.value)


def test_an_unknown_profile_names_the_nearest_one() -> None:
    with pytest.raises(SettingsError, match=r"no profile and no file of that name; did you mean strict\?"):
        load("strickt")
