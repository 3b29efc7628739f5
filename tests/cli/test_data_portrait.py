"""`himga data info` and `himga data check` say what is in a dataset and what is wrong with it."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from chat_records import chat
from longmemeval_records import bakery, turn
from memorystress_parts import benchmark

from pytest_himga.data.published import PUBLISHED


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def locomo(write, monkeypatch) -> Path:
    """A file that stands in for the published one of LoCoMo."""
    path = write("data/locomo10.json", [chat()])
    ours = replace(PUBLISHED["locomo"], sha256=sha256(path), size=path.stat().st_size)
    monkeypatch.setitem(PUBLISHED, "locomo", ours)
    monkeypatch.setenv("HIMGA_DATA_DIR", str(path.parent))
    return path


# -- the whole text ----------------------------------------------------------------------------------

CHAT_TYPES = """\
  type           questions  answerable  abstention  unrecoverable
  ---------------------------------------------------------------
  1 multi_hop            1           1           0              0
  2 temporal             1           1           0              0
  3 open_domain          1           1           0              0
  4 single_hop           0           0           0              0
  5 adversarial          1           0           1              0
  ---------------------------------------------------------------
  all                    4           3           1              0
"""


def test_info_on_a_published_dataset(himga, locomo: Path) -> None:
    outcome = himga("data", "info", "locomo")
    assert (outcome.status, outcome.err) == (0, "")
    assert (
        outcome.out
        == f"""\
locomo
  path               {locomo}
  format             locomo
  size               {locomo.stat().st_size:,} bytes
  sha256             {sha256(locomo)} (the published file of locomo)
  licence            CC BY-NC 4.0, for non-commercial use only
  citation           {PUBLISHED["locomo"].citation}
  samples            1
  questions          4
  without an answer  0
  warnings           3
    3 x qa[N].evidence[N]: ... names no turn; it is left out
        sample 'allotment', qa[1].evidence[1]: 'D7:4'
        sample 'allotment', qa[2].evidence[0]: 'D'
        sample 'allotment', qa[2].evidence[1]: 'D1:9'

{CHAT_TYPES}"""
    )


def test_check_on_a_chat_of_one_s_own(himga, write) -> None:
    path = write("chat.json", chat())
    outcome = himga("data", "check", "chat.json")
    assert (outcome.status, outcome.err) == (0, "")
    assert (
        outcome.out
        == f"""\
chat
  path               chat.json
  format             locomo
  size               {path.stat().st_size:,} bytes
  sha256             {sha256(path)} (no published dataset)
  samples            1
  sessions           2
  turns              3, 1 of them blank
  questions          4
  without an answer  0
  evidence groups    4
  without evidence   1 (0 of them abstention)
  warnings           3
    3 x qa[N].evidence[N]: ... names no turn; it is left out
        sample 'allotment', qa[1].evidence[1]: 'D7:4'
        sample 'allotment', qa[2].evidence[0]: 'D'
        sample 'allotment', qa[2].evidence[1]: 'D1:9'

{CHAT_TYPES}
chat: everything can be read; it is no published dataset, so there is no digest to compare with
"""
    )


def histories() -> list[dict]:
    """Three: a good one, one with a blank turn that is marked as evidence, and one that cannot be answered."""
    blank = bakery(question_id="5eed0002", question_type="multi-session", answer=None)
    blank["haystack_sessions"][1][0]["content"] = " "
    nobody = bakery(question_id="5eed0003_abs")
    nobody["haystack_sessions"][1] = [turn("user", "Hello.")]
    nobody["haystack_dates"].reverse()
    return [bakery(), blank, nobody]


HISTORY_TYPES = """\
  type                       questions  answerable  abstention  unrecoverable
  ---------------------------------------------------------------------------
  single_session_user                2           1           1              0
  single_session_assistant           0           0           0              0
  single_session_preference          0           0           0              0
  temporal_reasoning                 0           0           0              0
  knowledge_update                   0           0           0              0
  multi_session                      1           1           0              0
  ---------------------------------------------------------------------------
  all                                3           2           1              0
"""


def test_info_on_histories_says_that_their_turns_were_not_looked_at(himga, write) -> None:
    path = write("histories.json", histories())
    outcome = himga("data", "info", path)
    assert (outcome.status, outcome.err) == (0, "")
    assert (
        outcome.out
        == f"""\
histories
  path               {path}
  format             longmemeval
  size               {path.stat().st_size:,} bytes
  sha256             {sha256(path)} (no published dataset)
  samples            3
  questions          3
  without an answer  1
  warnings           2; turns were not looked at (--full, or himga data check)
    sample '5eed0002', field answer: missing; only retrieval can be scored
    sample '5eed0002', field haystack_sessions[1][0]: holds the answer and is blank, so it is not fed; it is no evidence

{HISTORY_TYPES}"""
    )


@pytest.mark.parametrize(
    ("order", "line"),
    [
        ("time", "by time stamp"),
        ("file", "as in the file; 1 sample is not in the order of time"),
    ],
)
def test_check_on_histories(order: str, line: str, himga, write) -> None:
    path = write("histories.json", histories())
    packed = path.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    outcome = himga("data", "check", packed, "--session-order", order)
    assert (outcome.status, outcome.err) == (0, "")
    assert (
        outcome.out
        == f"""\
histories
  path               {packed}
  format             longmemeval
  size               {packed.stat().st_size:,} bytes packed, {path.stat().st_size:,} unpacked
  sha256             {sha256(path)} (no published dataset)
  samples            3
  sessions           9
  turns              17, 1 of them blank
  session order      {line}
  questions          3
  without an answer  1
  evidence groups    1
  without evidence   2 (1 of them abstention)
  warnings           2
    sample '5eed0002', field answer: missing; only retrieval can be scored
    sample '5eed0002', field haystack_sessions[1][0]: holds the answer and is blank, so it is not fed; it is no evidence

{HISTORY_TYPES}
histories: everything can be read; it is no published dataset, so there is no digest to compare with
"""
    )


def test_info_in_full_on_a_benchmark(himga, write) -> None:
    data = benchmark()
    data["facts"][0]["recoverable"] = False
    data["stats"] = {"total_facts": 7}
    path = write("memorystress_v1.json", data)
    outcome = himga("data", "info", path, "--full")
    assert (outcome.status, outcome.err) == (0, "")
    published = PUBLISHED["memorystress"]
    assert (
        outcome.out
        == f"""\
memorystress_v1
  path               {path}
  format             memorystress
  size               {path.stat().st_size:,} bytes
  sha256             {sha256(path)} (unverified: no digest of memorystress is published)
  licence            Apache-2.0
  citation           {published.citation}
  note               {published.note}
  samples            1
  sessions           4
  turns              10, 0 of them blank
  questions          4
  without an answer  0
  evidence groups    5
  without evidence   0
  warnings           1
    sample 'main': stats.total_facts is 7, and the file has 2

  type                      questions  answerable  abstention  unrecoverable
  --------------------------------------------------------------------------
  fact_recall                       1           0           0              1
  preference_recall                 0           0           0              0
  contradiction_resolution          1           1           0              0
  temporal_ordering                 0           0           0              0
  cross_agent_recall                1           0           0              1
  cold_start_recall                 1           1           0              0
  single_mention_recall             0           0           0              0
  --------------------------------------------------------------------------
  all                               4           2           0              2
  --------------------------------------------------------------------------
  checkpoint 1                      1           0           0              1
  checkpoint 2                      1           0           0              1
  checkpoint 3                      1           1           0              0
  checkpoint 4                      1           1           0              0
  cross-agent                       1           0           0              1
  cold-start                        1           1           0              0
"""
    )


# -- which data they are -----------------------------------------------------------------------------


def test_the_published_bytes_are_known_under_any_name(himga, locomo: Path) -> None:
    other = locomo.with_name("renamed.json")
    locomo.rename(other)
    outcome = himga("data", "check", other)
    assert outcome.status == 0
    assert f"{sha256(other)} (the published file of locomo)" in outcome.out
    assert outcome.out.endswith("\nrenamed: everything can be read; the digest is that of locomo\n")


@pytest.mark.parametrize("spec", ["locomo", "data/locomo10.json"])
def test_check_refuses_other_data_under_a_published_name_or_file_name(spec: str, himga, locomo: Path) -> None:
    other = chat() | {"sample_id": "another"}
    locomo.write_text(json.dumps([other]), encoding="utf-8")
    published = PUBLISHED["locomo"].sha256
    outcome = himga("data", "check", spec)
    assert outcome.status == 1
    assert f"{sha256(locomo)} (not the published file of locomo; its sha256 is {published})" in outcome.out
    assert outcome.err.count("\n") == 1
    for part in (sha256(locomo), published, "--allow=unverified"):
        assert part in outcome.err
    accepted = himga("data", "check", spec, "--allow", "unverified")
    assert accepted.status == 0
    assert "is not the published file" in accepted.err
    assert accepted.out.endswith(": everything can be read; it is not the published file of locomo\n")


def test_info_shows_other_data_and_fails_only_where_a_run_would(himga, locomo: Path, monkeypatch) -> None:
    locomo.write_text(json.dumps([chat() | {"sample_id": "another"}]), encoding="utf-8")
    for spec, status in (("locomo", 1), ("data/locomo10.json", 0), ("mine=data/locomo10.json", 0)):
        outcome = himga("data", "info", spec)
        assert (outcome.status, bool(outcome.err)) == (status, bool(status))
        assert CHAT_TYPES in outcome.out
    assert "(no published dataset)" in outcome.out
    # The other value is for runs, and stands where a shell sets both.
    for allowed, status in (("unverified", 0), ("judge,unverified", 0), ("judge", 1)):
        monkeypatch.setenv("HIMGA_ALLOW", allowed)
        assert himga("data", "info", "locomo").status == status


def test_without_a_published_digest_a_check_says_so(himga, write) -> None:
    outcome = himga("data", "check", write("memorystress_v1.json", benchmark()))
    assert outcome.status == 0
    assert outcome.out.endswith(
        ": everything can be read; no digest of memorystress is published to compare with\n"
    )
    assert "is not verified: no digest of it is published" in outcome.err


@pytest.mark.parametrize("verb", ["info", "check"])
@pytest.mark.parametrize("name", ["longmemeval", "mine=longmemeval"])
def test_nothing_is_downloaded(verb: str, name: str, himga, web) -> None:
    outcome = himga("data", verb, name)
    assert outcome.status == 1
    assert outcome.sentence == (
        "himga: longmemeval: not on this machine; `himga data fetch longmemeval` downloads it (277.4 MB)"
    )
    assert web.asked == []


def test_the_demo_is_all_its_parts(himga) -> None:
    outcome = himga("data", "check", "demo")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.count("\n  licence            MIT; part of this package\n") == 3
    assert outcome.out.count(": everything can be read; ") == 3


def test_labels_of_locomo_can_be_those_of_upstream(himga, write, monkeypatch) -> None:
    path = write("chat.json", chat())
    assert "  1 single_hop   " in himga("data", "info", path, "--locomo-labels=himga").out
    monkeypatch.setenv("HIMGA_LOCOMO_LABELS", "himga")
    assert "  1 single_hop   " in himga("data", "check", path).out


# -- what can be wrong -------------------------------------------------------------------------------


def test_a_check_finds_what_an_index_cannot_tell(himga, write) -> None:
    broken = bakery(question_id="5eed0009")
    broken["haystack_sessions"][2][1] = {"role": "user", "content": 7}
    path = write("histories.json", [bakery(), broken])
    assert himga("data", "info", path).status == 0
    outcome = himga("data", "check", path)
    assert outcome.status == 1
    assert outcome.sentence == (
        f"himga: {path}: sample '5eed0009', field haystack_sessions[2][1].content: is 7; expected a text"
    )


def test_a_check_believes_the_bytes_and_not_what_is_kept_of_them(himga, write) -> None:
    path = write("chat.json", [chat()])
    old = path.stat().st_mtime_ns - 10**9
    os.utime(path, ns=(old, old))  # long ago, so that its index is kept
    before = sha256(path)
    assert himga("data", "check", path).status == 0
    with path.open("r+b") as file:
        file.write(path.read_bytes().replace(b"allotment", b"ALLOTMENT"))
    os.utime(path, ns=(old, old))
    assert before in himga("data", "info", path).out
    outcome = himga("data", "check", path)
    assert outcome.status == 1
    assert sha256(path) in outcome.out
    assert before in outcome.err
    assert "touch" in outcome.err
    path.touch()
    assert himga("data", "check", path).status == 0


@pytest.mark.parametrize("verb", ["info", "check"])
@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("cut.json", b'[{"conversation": ', "ends too early"),
        ("page.json", b"<html></html>", "is not JSON"),
        ("packed.json.gz", gzip.compress(b"[]" * 50, mtime=0)[:-9], "the gzip data end too early"),
        ("empty.json", b"[]", "holds no record"),
        ("other.json", b'[{"id": 1}]', "no known format"),
        ("letters.json", b'[{"conversation": {}, "qa": [], "a": "\xff"}]', "is not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    verb: str, name: str, data: bytes, problem: str, himga, here: Path
) -> None:
    path = here / name
    path.write_bytes(data)
    outcome = himga("data", verb, path)
    assert outcome.status == 1
    assert outcome.sentence.startswith(f"himga: {path}: ")
    assert problem in outcome.sentence


def test_what_is_not_there_is_one_sentence(himga, here: Path) -> None:
    assert himga("data", "check", "./gone.json").sentence == (
        "himga: gone.json: there is no such file or folder; check the path"
    )
    assert "did you mean locomo?" in himga("data", "info", "lokomo").sentence


def test_nothing_is_left_in_the_cache_but_the_index(himga, write, tmp_path: Path) -> None:
    path = write("chat.json", [chat()])
    packed = path.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    himga("data", "info", packed)
    before = {file.name for file in (tmp_path / "cache").rglob("*")}
    himga("data", "check", packed)
    assert {file.name for file in (tmp_path / "cache").rglob("*")} == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_check_without_room_to_unpack_is_one_sentence(himga, write, monkeypatch, tmp_path: Path) -> None:
    packed = write("chat.json", [chat()]).with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(packed.with_suffix("").read_bytes()))
    himga("data", "info", packed)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "0.json").symlink_to("/dev/full")
    monkeypatch.setattr("pytest_himga.commands.data_census.scratch_folder", lambda: nullcontext(scratch))
    assert himga("data", "check", packed).sentence == (
        f"himga: {packed}: cannot be unpacked into {tmp_path} (No space left on device); free space there"
    )


def test_a_terminal_sees_how_far_a_check_is(himga, write, monkeypatch) -> None:
    path = write("histories.json", histories())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    err = himga("data", "check", path).err
    assert err.startswith("\rhistories: 0.0 of 0.0 MB (")
    assert "(100 %)" in err


def test_a_folder_is_one_dataset(himga, write, here: Path) -> None:
    for number in range(2):
        write(f"chats/{number}.json", chat() | {"sample_id": f"s{number}"})
    outcome = himga("data", "check", "chats")
    assert outcome.status == 0
    size = sum(file.stat().st_size for file in (here / "chats").iterdir())
    pairs = json.dumps([(file, sha256(here / "chats" / file)) for file in ("0.json", "1.json")])
    for line in (
        f"  size               {size:,} bytes in 2 files",
        f"  sha256             {hashlib.sha256(pairs.encode()).hexdigest()} (no published dataset)",
        "    6 x qa[N].evidence[N]: ... names no turn; it is left out",
        "        0.json: sample 's0', qa[1].evidence[1]: 'D7:4'",
        "        and 1 more",
    ):
        assert f"{line}\n" in outcome.out
