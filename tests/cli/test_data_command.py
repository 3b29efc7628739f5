"""`himga data list`, `path` and `fetch`: where datasets lie, and how they get there."""

from __future__ import annotations

import gzip
import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest
from chat_records import chat
from loopback import status

from pytest_himga.data.opening import DEMO_PARTS
from pytest_himga.data.published import PUBLISHED


@pytest.fixture
def published(web, monkeypatch):
    """LoCoMo, as if the mirror's file were the published one."""
    ours = replace(PUBLISHED["locomo"], sha256=hashlib.sha256(web.body).hexdigest(), size=len(web.body))
    monkeypatch.setitem(PUBLISHED, "locomo", ours)
    return ours


# -- list --------------------------------------------------------------------------------------------


def rows(out: str) -> list[list[str]]:
    """The cells of each row but the header."""
    lines = out.partition("\n\n")[0].splitlines()
    starts = [lines[0].index(name) for name in ("name", "size", "licence", "sha256", "where")]
    return [
        [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None], strict=True)] for line in lines[1:]
    ]


def test_list_names_our_own_and_the_published_datasets(himga, cache: Path) -> None:
    outcome = himga("data", "list")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.endswith(f"\n\nlooked in {cache} (the cache folder)\n")
    found = rows(outcome.out)
    assert [row[0] for row in found[: len(DEMO_PARTS)]] == list(DEMO_PARTS)
    for row in found[: len(DEMO_PARTS)]:
        assert row[2:4] == ["MIT", "-"]
        assert Path(row[4]).is_file()
    assert found[len(DEMO_PARTS) :] == [
        ["locomo", "2.8 MB", "CC BY-NC 4.0", "79fa87e90f04", "not here"],
        ["longmemeval-oracle (longmemeval-oracle-original)", "15.4 MB", "MIT", "821a2034d219", "not here"],
        ["longmemeval-s (longmemeval)", "277.4 MB", "MIT", "d6f21ea9d60a", "not here"],
        ["longmemeval-m", "2,737.1 MB", "MIT", "9d79e5524794", "not here"],
        ["longmemeval-s-original", "278.0 MB", "MIT", "08d8dad4be43", "not here"],
        ["longmemeval-m-original", "2,745.3 MB", "MIT", "fb5413e3b077", "not here"],
        ["memorystress", "size not known", "Apache-2.0", "no digest is published", "not here"],
    ]


def test_list_shows_what_lies_in_the_data_folders(himga, write, here: Path, monkeypatch) -> None:
    locomo = write("option/locomo10.json", [chat()])
    shadowed = write("option/locomo.json", [chat()])
    mine = write("option/mine.json", [chat()])
    folder = write("variable/chats/one.json", [chat()]).parent
    write("variable/chats/two.json", [chat()])
    hidden = write("variable/mine.json", [chat()])
    for name in ("notes.md", ".hidden.json", "locomo10.json.part"):
        (here / "variable" / name).write_text("{}", encoding="utf-8")
    (here / "variable" / "no-data").mkdir()
    monkeypatch.setenv("HIMGA_DATA_DIR", str(here / "variable"))
    outcome = himga("data", "list", "--data-dir", "option")
    size = f"{locomo.stat().st_size:,} bytes"
    found = [row for row in rows(outcome.out) if str(here) in row[4]]
    assert found == [
        ["locomo", size, "CC BY-NC 4.0", "79fa87e90f04", str(locomo)],
        [str(shadowed), size, "-", "-", str(shadowed)],
        ["mine", size, "-", "-", str(mine)],
        ["chats", f"{2 * locomo.stat().st_size:,} bytes", "-", "-", str(folder)],
        [str(hidden), size, "-", "-", str(hidden)],
    ]
    named = f"{here / 'option'} (--data-dir) and {here / 'variable'} (HIMGA_DATA_DIR) and "
    assert f"\nlooked in {named}" in outcome.out


def test_a_data_folder_that_is_not_there_is_an_empty_one(himga) -> None:
    assert himga("data", "list", "--data-dir", "gone").status == 0


# -- path --------------------------------------------------------------------------------------------


def test_path_prints_the_path_and_nothing_else(himga, write) -> None:
    path = write("data/mine.json", [chat()])
    outcome = himga("data", "path", "mine", "--data-dir=data")
    assert (outcome.status, outcome.out, outcome.err) == (0, f"{path}\n", "")
    outcome = himga("data", "path", "demo")
    assert [Path(line).is_file() for line in outcome.out.splitlines()] == [True] * len(DEMO_PARTS)


@pytest.mark.skipif(os.name == "nt", reason="there paths are text")
def test_a_script_gets_the_bytes_of_the_path(write, start, here: Path) -> None:
    folder = os.fsdecode(b"d\xe4t\xc3\xa4 \x1b[2J")
    path = write(f"{folder}/mine.json", [chat()])
    out, _ = start("data", "path", "mine", "--data-dir", folder).communicate(timeout=20)
    assert out == os.fsencode(path) + b"\n"


@pytest.mark.skipif(os.name == "nt", reason="there are no pseudo terminals")
def test_a_terminal_gets_the_path_escaped(write, start) -> None:
    import pty

    write("d\x1b[2J/mine.json", [chat()])
    reader, terminal = pty.openpty()
    process = start("data", "path", "mine", "--data-dir", "d\x1b[2J", stdout=terminal)
    process.communicate(timeout=20)
    os.close(terminal)
    out = os.read(reader, 4096)
    os.close(reader)
    assert process.returncode == 0
    assert out.endswith(b"/d\\x1b[2J/mine.json\r\n")


def test_path_downloads_nothing(himga, web) -> None:
    outcome = himga("data", "path", "locomo")
    assert outcome.status == 1
    assert outcome.sentence == (
        "himga: locomo: not on this machine; `himga data fetch locomo` downloads it (2.8 MB)"
    )
    assert himga("data", "path", "lokomo").sentence.endswith("did you mean locomo?")
    assert web.asked == []


# -- fetch -------------------------------------------------------------------------------------------


def test_fetch_downloads_verifies_and_prints_the_path(himga, web, published, cache: Path) -> None:
    path = cache / "locomo10.json"
    outcome = himga("data", "fetch", "locomo")
    assert (outcome.status, outcome.out) == (0, f"{path}\n")
    assert path.read_bytes() == web.body
    url = web.root + published.url.partition(".com")[2]
    assert outcome.err.splitlines() == [
        f"locomo: downloading {url} to {path}",
        f"locomo: licence CC BY-NC 4.0, for non-commercial use only. Please cite {published.citation}.",
        "locomo: downloading (0.0 MB)",
        "locomo: 0.0 of 0.0 MB after 0 s",
        f"locomo: verified: its sha256 is {published.sha256}",
    ]
    again = himga("data", "fetch", "locomo")
    assert (again.status, again.out) == (0, f"{path}\n")
    assert again.err == f"locomo: already here, and verified: its sha256 is {published.sha256}\n"
    assert len(web.asked) == 1
    assert himga("data", "path", "locomo").out == f"{path}\n"


def test_fetch_downloads_into_the_folder_that_it_is_given(himga, web, published, here: Path) -> None:
    outcome = himga("data", "fetch", "locomo", "--data-dir", "data/sets")
    assert (outcome.status, outcome.out) == (0, f"{here / 'data/sets/locomo10.json'}\n")
    assert himga("data", "path", "locomo", "--data-dir", "data/sets").status == 0
    assert himga("data", "path", "locomo").status == 1


def test_fetch_does_not_download_to_somewhere_else(himga, web, published, here: Path) -> None:
    (here / "file").write_text("", encoding="utf-8")
    outcome = himga("data", "fetch", "locomo", "--data-dir", "file/sets")
    assert outcome.status == 1
    assert outcome.sentence.startswith(f"himga: locomo: {here / 'file/sets'} cannot be written; ")
    assert web.asked == []


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_here_is_verified_by_its_bytes(packed: bool, himga, web, published, cache: Path) -> None:
    cache.mkdir(parents=True)
    path = cache / ("locomo10.json.gz" if packed else "locomo10.json")
    path.write_bytes(gzip.compress(web.body) if packed else web.body)
    assert himga("data", "fetch", "locomo").err.startswith("locomo: already here, and verified: ")
    body = web.body.replace(b"Ruth", b"Edda")
    path.write_bytes(gzip.compress(body) if packed else body)
    outcome = himga("data", "fetch", "locomo")
    assert outcome.status == 1
    for part in (hashlib.sha256(body).hexdigest(), published.sha256, "--allow=unverified"):
        assert part in outcome.sentence
    accepted = himga("data", "fetch", "locomo", "--allow=unverified")
    assert (accepted.status, accepted.out) == (0, f"{path}\n")
    assert "is not the published file" in accepted.err
    assert web.asked == []


def test_a_folder_under_a_published_name_is_not_the_published_file(himga, write, published) -> None:
    write("data/locomo/one.json", [chat()])
    outcome = himga("data", "fetch", "locomo", "--data-dir", "data")
    assert outcome.status == 1
    assert "is not the published file" in outcome.sentence


def test_one_that_cannot_be_had_does_not_stop_the_others(himga, web, published, cache: Path) -> None:
    web.script = [status(404)]
    outcome = himga("data", "fetch", "longmemeval-oracle", "nix", "locomo", "demo-locomo")
    assert outcome.status == 1
    assert outcome.out.splitlines()[0] == str(cache / "locomo10.json")
    assert len(outcome.out.splitlines()) == 2
    errors = [line for line in outcome.err.splitlines() if line.startswith("himga: ")]
    assert [("404" in line, "'nix'" in line) for line in errors] == [(True, False), (False, True)]


def test_data_of_one_s_own_have_nothing_to_be_verified_with(himga, write) -> None:
    path = write("data/mine.json", [chat()])
    outcome = himga("data", "fetch", "mine", "--data-dir=data")
    assert (outcome.status, outcome.out) == (0, f"{path}\n")
    assert "there is no digest to verify" in outcome.err


def test_fetch_takes_other_data_where_they_are_allowed(himga, web, published, cache: Path) -> None:
    web.body += b" "
    found = hashlib.sha256(web.body).hexdigest()
    refused = himga("data", "fetch", "locomo")
    assert refused.status == 1
    assert f"not the published file, so it was not kept: sha256 {found}" in refused.err
    assert himga("data", "path", "locomo").status == 1
    outcome = himga("data", "fetch", "locomo", "--allow=unverified")
    assert (outcome.status, outcome.out) == (0, f"{cache / 'locomo10.json'}\n")
    assert (
        f"its sha256 is {found}, published is {published.sha256}; accepted by --allow=unverified"
        in outcome.err
    )
    assert "verified: its" not in outcome.err
    assert himga("data", "fetch", "locomo").status == 1  # here, and still not the published file


def test_without_a_published_digest_a_download_says_so(himga, web) -> None:
    web.body = b'{"facts": [], "sessions": [], "questions": []}'
    outcome = himga("data", "fetch", "memorystress")
    assert outcome.status == 0
    digest = hashlib.sha256(web.body).hexdigest()
    assert (
        f"memorystress_v1.json: not verified, as no digest is published; its sha256 is {digest}"
        in outcome.err
    )


@pytest.mark.parametrize("way", ["option", "variable"])
def test_offline_says_how_to_get_it_by_hand(way: str, himga, web, monkeypatch) -> None:
    if way == "variable":
        monkeypatch.setenv("HIMGA_OFFLINE", "1")
    outcome = himga("data", "fetch", "locomo", *(["--offline"] if way == "option" else []))
    assert outcome.status == 1
    for part in ("--offline forbids to download it", "save it as locomo10.json", "79fa87e90f04", web.root):
        assert part in outcome.sentence
    assert "--himga-offline" not in outcome.sentence
    assert web.asked == []
