"""Profiles: prompts in TOML files, cut into paragraphs that are left out where they do not apply."""

from __future__ import annotations

import hashlib
import json
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.errors import SettingsError
from pytest_himga.llm.profile import Paragraph, fill, paragraphs_of, read_profile
from pytest_himga.llm.prompt import Fenced, Mark

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_himga.llm.prompt import Part

KNOWN = {"question", "answer", "answer_detail", "date"}
STRICT = '# our rules\nask = ["Question: {question}"]\n'


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package with the profiles strict and lenient."""
    name = "package_with_profiles"
    profiles = tmp_path / "lib" / name / "profiles"
    profiles.mkdir(parents=True)
    (profiles.parent / "__init__.py").write_text("", encoding="utf-8")
    (profiles / "strict.toml").write_text(STRICT, encoding="utf-8")
    (profiles / "lenient.toml").write_text('ask = ["{answer}"]\n', encoding="utf-8")
    (profiles / "notes.txt").write_text("no profile", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path / "lib")
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def sent(*paragraphs: object, trusted: tuple[str, ...] = (), **fields: str | None) -> tuple[Part, ...]:
    """The parts that these paragraphs of a profile become."""
    read = paragraphs_of(list(paragraphs), known=KNOWN, where="profile, ask")
    return fill(read, fields, trusted=trusted)


# -- paragraphs ----------------------------------------------------------------------------------------


def test_a_field_is_fenced_under_its_own_name_and_paragraphs_are_parted_by_a_blank_line() -> None:
    assert sent("Judge {answer} now.", "{question}", answer="12", question="How many?") == (
        "Judge ",
        Fenced("answer", "12"),
        " now.",
        "\n\n",
        Fenced("question", "How many?"),
    )


def test_a_trusted_field_is_plain_text_and_the_fence_is_a_mark() -> None:
    assert sent("Asked on {date}; tags end in {fence}.", date="2024-03-05", trusted=("date",)) == (
        "Asked on ",
        "2024-03-05",
        "; tags end in ",
        Mark.FENCE,
        ".",
    )


@pytest.mark.parametrize("date", [None, "2024-03-05"])
@pytest.mark.parametrize("detail", [None, "", "about the pump"])
def test_a_paragraph_is_left_out_if_it_needs_what_is_not_there(date: str | None, detail: str | None) -> None:
    parts = sent(
        "Start.",
        "Asked on {date}.",
        {"text": "Detail counts.", "with": "answer_detail"},
        {"text": "{date} and detail.", "with": "answer_detail"},
        "End.",
        date=date,
        answer_detail=detail,
        trusted=("date",),
    )
    expected = ["Start."]
    expected += [f"Asked on {date}."] if date is not None else []
    expected += ["Detail counts."] if detail is not None else []
    expected += [f"{date} and detail."] if date is not None and detail is not None else []
    assert "".join(parts) == "\n\n".join([*expected, "End."])


def test_a_prompt_of_which_nothing_is_left_is_empty() -> None:
    assert sent("{date}", {"text": "x", "with": "answer"}) == ()


def test_the_first_paragraph_that_stays_has_no_blank_line_before_it() -> None:
    assert sent("{date}", "First.", "{answer}", "Second.") == ("First.", "\n\n", "Second.")


@pytest.mark.parametrize(
    "text",
    [
        'Reply with {"verdict": "correct"} or {"verdict": "wrong"}.',
        "An empty one: {}; a number: {0}; twice: {{}}; {a-b}; {two words}; }{",
        "$HOME %(answer)s",
    ],
)
def test_braces_that_are_no_fields_stay_as_they_are(text: str) -> None:
    assert "".join(sent(text)) == text


def test_double_braces_around_a_name_hold_a_field_too() -> None:
    assert sent("{{answer}}", answer="12") == ("{", Fenced("answer", "12"), "}")


def test_blanks_inside_the_braces_change_nothing() -> None:
    assert sent("{ answer }", answer="12") == (Fenced("answer", "12"),)


def test_space_around_a_paragraph_is_cut_and_inside_it_stays() -> None:
    assert sent("\n  One\n\n   two. \n") == ("One\n\n   two.",)


ANY_TEXT = st.text(st.sampled_from("{}_ abefnq") | st.characters(exclude_categories=()), max_size=20)


@given(ANY_TEXT, ANY_TEXT)
def test_what_is_put_in_is_never_looked_at_again(answer: str, date: str) -> None:
    hostile = answer + "{question}{fence}{answer}{date}"
    parts = sent("A: {answer} on {date}.", answer=hostile, date=f"{{answer}}{date}", trusted=("date",))
    assert parts == ("A: ", Fenced("answer", hostile), " on ", f"{{answer}}{date}", ".")


def test_a_paragraph_names_its_fields() -> None:
    [paragraph] = paragraphs_of(["{question}: {answer} ({fence})"], known=KNOWN, where="x")
    assert paragraph.fields == ("question", "answer", "fence")
    assert paragraph == Paragraph(("", "question", ": ", "answer", " (", "fence", ")"))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("Judge.", "profile, ask: write a list of paragraphs, each a text"),
        ([], "profile, ask: write a list of paragraphs, each a text"),
        ({"text": "x"}, "profile, ask: write a list of paragraphs, each a text"),
        (None, "profile, ask: write a list of paragraphs, each a text"),
        (["One.", 2], 'profile, ask, paragraph 2: write a text, or { text = "...", with = "a field" }'),
        (["  \n"], 'profile, ask, paragraph 1: write a text, or { text = "...", with = "a field" }'),
        (
            [{"with": "date"}],
            'profile, ask, paragraph 1: write a text, or { text = "...", with = "a field" }',
        ),
        ([["x"]], 'profile, ask, paragraph 1: write a text, or { text = "...", with = "a field" }'),
        ([{"txt": "x"}], "profile, ask, paragraph 1: txt is unknown; did you mean text?"),
        ([{"text": "x", "z": 1, "b": 2}], "profile, ask, paragraph 1: b is unknown; known: text, with"),
        (["Of {anser}."], "profile, ask, paragraph 1: {anser} is no field; did you mean answer?"),
        (["Of {Answer}."], "paragraph 1: {Answer} is no field; did you mean answer?"),
        (["{gold}"], "{gold} is no field; known: answer, answer_detail, date, fence, question"),
        ([{"text": "x", "with": "dat"}], "paragraph 1: with = 'dat' is no field; did you mean date?"),
        ([{"text": "x", "with": "fence"}], "with = 'fence' is no field; known: "),
        ([{"text": "x", "with": ["date"]}], "with = ['date'] is no field; did you mean date?"),
        ([{"text": "x", "with": True}], "with = True is no field; known: "),
    ],
)
def test_what_is_no_paragraph_is_an_error_that_says_where_and_what_to_write(value: object, says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        paragraphs_of(value, known=KNOWN, where="profile, ask")
    assert says in str(caught.value)


# -- files ---------------------------------------------------------------------------------------------


def test_a_shipped_profile_is_read_by_its_name(package: str, tmp_path: Path) -> None:
    profile = read_profile("strict", package=package, base=tmp_path, option="--himga-judge-profile=strict")
    assert (profile.name, profile.where) == ("strict", "--himga-judge-profile=strict")
    assert profile.data == {"ask": ["Question: {question}"]}
    assert profile.sha256 == hashlib.sha256(json.dumps(profile.data).encode()).hexdigest()


def test_a_file_is_read_relative_to_where_it_was_named(package: str, tmp_path: Path) -> None:
    (tmp_path / "judges").mkdir()
    (tmp_path / "judges" / "ours.toml").write_text(STRICT, encoding="utf-8")
    option = "--himga-judge-profile=judges/ours.toml"
    relative = read_profile("judges/ours.toml", package=package, base=tmp_path, option=option)
    absolute = read_profile(
        str(tmp_path / "judges" / "ours.toml"), package=package, base=tmp_path / "else", option=option
    )
    assert relative == absolute
    assert (relative.name, relative.where) == ("ours", f"{option} ({tmp_path / 'judges' / 'ours.toml'})")


def test_a_file_beside_does_not_hide_a_shipped_profile_of_its_name(package: str, tmp_path: Path) -> None:
    (tmp_path / "strict").write_text("ask = ['mine']", encoding="utf-8")
    named = read_profile("strict", package=package, base=tmp_path, option="x")
    pathed = read_profile("./strict", package=package, base=tmp_path, option="x")
    assert named.data != pathed.data == {"ask": ["mine"]}


@pytest.mark.parametrize("other", [STRICT.replace("\n", "\r\n"), "\ufeff" + STRICT], ids=["CRLF", "BOM"])
def test_an_editor_on_windows_changes_no_fingerprint(other: str, package: str, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_bytes(other.encode("utf-8"))
    shipped = read_profile("strict", package=package, base=tmp_path, option="x")
    written = read_profile("other.toml", package=package, base=tmp_path, option="x")
    assert (written.sha256, written.data) == (shipped.sha256, shipped.data)


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("Question", "The question", True),
        ("our rules", "their rules", False),
        ("ask =", 'description = "for people"\nask =', False),
        ("ask =", 'other = "for the model"\nask =', True),
    ],
    ids=["a word of the prompt", "a comment", "the description", "another key"],
)
def test_the_fingerprint_is_that_of_what_a_model_is_told(
    old: str, new: str, counts: bool, package: str, tmp_path: Path
) -> None:
    (tmp_path / "other.toml").write_text(STRICT.replace(old, new), encoding="utf-8")
    shipped = read_profile("strict", package=package, base=tmp_path, option="x")
    other = read_profile("other.toml", package=package, base=tmp_path, option="x")
    assert (other.sha256 != shipped.sha256) == counts


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("strickt", "no profile and no file of that name; did you mean strict?, or a path to a .toml file"),
        ("notes", "no profile and no file of that name; known: lenient, strict, or a path"),
        ("gone/ours.toml", "no profile and no file of that name; known: lenient, strict"),
        ("", "no profile and no file of that name"),
        ("lib", "no profile and no file of that name"),
        ("~nobody-of-that-name/x.toml", "cannot be read: Could not determine home directory"),
        ("Judge the answer kindly. " * 200, "cannot be read: "),
        ("a\0b", "no profile and no file of that name"),
    ],
)
def test_a_profile_that_is_not_there_is_an_error_that_names_the_nearest(
    spec: str, says: str, package: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as caught:
        read_profile(spec, package=package, base=tmp_path, option="--himga-judge-profile=...")
    assert str(caught.value).startswith("--himga-judge-profile=...: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"ask = [", b"\xff\xfe", b'{"ask": []}', b"a = " + b"[" * 20_000],
    ids=["cut off", "no UTF-8", "JSON", "deep"],
)
def test_a_file_that_is_no_toml_is_an_error_that_names_it(
    content: bytes, package: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        read_profile("bad.toml", package=package, base=tmp_path, option="--himga-judge-profile=bad.toml")
    assert str(caught.value).startswith(f"--himga-judge-profile=bad.toml ({path}): this is no TOML: ")
