"""A dataset is found where it lies, fetched where it does not, and never taken for another."""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.data import published as catalog
from pytest_himga.data import store as store_module
from pytest_himga.data.progress import terminal_progress
from pytest_himga.data.published import PUBLISHED
from pytest_himga.data.store import Store, check_digest, is_plain_name
from pytest_himga.errors import DatasetError, SettingsError, UnknownDataset

if TYPE_CHECKING:
    from loopback import Web

LOCOMO = PUBLISHED["locomo"]
BODY = b'[{"made": "up"}]'
STRESS = b'{"facts": [], "sessions": [], "questions": []}'
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def folders(tmp_path: Path, cache: Path) -> tuple[Path, Path, Path]:
    """The three places: of the option, of the variable, and the cache."""
    places = (tmp_path / "option", tmp_path / "variable", cache)
    for place in places:
        place.mkdir(parents=True)
    return places


@pytest.fixture
def store(folders: tuple[Path, Path, Path]) -> Store:
    return Store(folders[0], {"HIMGA_DATA_DIR": str(folders[1])})


def put(folder: Path, name: str) -> Path:
    """A file, or a folder with a file in it if the name ends with a slash."""
    path = folder / name
    if name.endswith("/"):
        path.mkdir()
        (path / "part.json").write_bytes(BODY)
    else:
        path.write_bytes(BODY)
    return path


# -- finding -----------------------------------------------------------------------------------------


def test_the_option_s_folder_comes_before_the_variable_s_and_the_cache(
    store: Store, folders: tuple[Path, Path, Path]
) -> None:
    assert store.find("locomo") is None
    for folder in reversed(folders):
        file = put(folder, "locomo10.json")
        assert store.find("locomo") == file
    assert list(store.places.values()) == ["--himga-data-dir", "HIMGA_DATA_DIR", "the cache folder"]


@pytest.mark.parametrize(
    ("name", "in_order"),
    [
        ("locomo", ["locomo10.json", "locomo10.json.gz", "locomo.json", "locomo.json.gz", "locomo/"]),
        (
            "longmemeval",
            [
                "longmemeval_s_cleaned.json",
                "longmemeval_s_cleaned.json.gz",
                "longmemeval.json",
                "longmemeval.json.gz",
                "longmemeval-s.json",
                "longmemeval-s.json.gz",
                "longmemeval/",
                "longmemeval-s/",
            ],
        ),
        ("longmemeval-s", ["longmemeval_s_cleaned.json", "longmemeval-s.json", "longmemeval.json"]),
        ("longmemeval-s-original", ["longmemeval_s.json", "longmemeval_s.json.gz", "longmemeval_s"]),
        ("chats", ["chats.json", "chats.json.gz", "chats/"]),
        ("my chats 2", ["my chats 2.json", "my chats 2/"]),
        ("грядка", ["грядка.json"]),
    ],
)
def test_the_published_file_comes_first_then_the_name_then_a_folder(
    store: Store, folders: tuple[Path, Path, Path], name: str, in_order: list[str]
) -> None:
    for candidate in reversed(in_order):
        path = put(folders[1], candidate)
        assert store.find(name) == path


def test_a_place_is_searched_whole_before_the_next_one(
    store: Store, folders: tuple[Path, Path, Path]
) -> None:
    put(folders[2], "locomo10.json")
    folder = put(folders[0], "locomo/")
    assert store.find("locomo") == folder


def test_the_cleaned_and_the_original_file_are_not_taken_for_each_other(
    store: Store, folders: tuple[Path, Path, Path]
) -> None:
    put(folders[1], "longmemeval_s.json")
    assert store.find("longmemeval-s") is None
    assert store.find("longmemeval") is None
    assert store.find("longmemeval-s-original") is not None


def test_half_a_download_is_not_found(store: Store, folders: tuple[Path, Path, Path]) -> None:
    for suffix in (".part", ".part.meta", ".lock"):
        put(folders[2], f"locomo10.json{suffix}")
    assert store.find("locomo") is None
    put(folders[2], "chats")  # a file without a suffix is no folder
    assert store.find("chats") is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../secret",
        "..\\secret",
        "a/../../secret",
        "/etc/passwd",
        "C:secret",
        "C:\\secret",
        "\\\\host\\share",
        "secret\0",
        "secret\n",
        ".secret",
        ".. ",
        " secret",
        "secret.",
        "...",
        "NUL",
        "con.json",
        "~/secret",
        "secret:stream",
    ],
)
def test_a_name_cannot_lead_out_of_the_folder(tmp_path: Path, cache: Path, name: str) -> None:
    for file in ("secret.json", "etc.json"):
        put(tmp_path, file)
    put(tmp_path, "secret/")
    (tmp_path / "inner").mkdir()
    looked_up: list[Path] = []
    store = Store(tmp_path / "inner", {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "exists", lambda path: bool(looked_up.append(path)))
        assert store.find(name) is None
    assert looked_up == []
    with pytest.raises(UnknownDataset) as caught:
        store.obtain(name, offline=True)
    assert "\n" not in str(caught.value)
    assert "it is no name that a file in a folder could have" in str(caught.value)


@given(st.text(max_size=30))
def test_whatever_is_looked_up_lies_in_the_folder(name: str) -> None:
    folder = os.path.join(os.sep, "data")  # noqa: PTH118 - as text: pathlib would tidy up what is tested
    if is_plain_name(name):
        path = os.path.normpath(os.path.join(folder, name))  # noqa: PTH118 - as above
        assert os.path.dirname(path) == folder  # noqa: PTH120 - as above
        assert os.path.basename(path) == name  # noqa: PTH119 - as above


def test_a_name_that_no_disk_can_hold_is_not_there(store: Store) -> None:
    assert store.find("a" * 5000) is None
    assert store.find("half a pair \ud800") is None


def test_places_that_cannot_be_looked_at_have_nothing(tmp_path: Path, cache: Path) -> None:
    put(tmp_path, "file")
    store = Store(tmp_path / "file", {"HIMGA_DATA_DIR": str(tmp_path / "missing")})
    assert store.find("locomo") is None


def test_one_folder_named_twice_is_looked_at_once(tmp_path: Path, cache: Path) -> None:
    store = Store(tmp_path, {"HIMGA_DATA_DIR": f" {tmp_path} "})
    assert store.places == {tmp_path: "HIMGA_DATA_DIR", cache: "the cache folder"}


def test_the_variable_may_name_the_home(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert tmp_path / "sets" in Store(None, {"HIMGA_DATA_DIR": "~/sets"}).places
    assert Store(None, {"HIMGA_DATA_DIR": "~nobody-of-that-name/x"}).find("locomo") is None


def test_the_cache_is_the_platform_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = store_module.cache_folder()
    assert folder is not None
    assert folder.parts[-2:] == ("pytest-himga", "datasets")
    if sys.platform == "linux":
        assert folder == tmp_path / "pytest-himga" / "datasets"


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_a, **_k: Path("~/.cache/pytest-himga"))
    store = Store(None, {})
    assert store.places == {}
    with pytest.raises(DatasetError, match="HIMGA_DATA_DIR is not set, and this user has no cache folder"):
        store.place_for(LOCOMO)
    with pytest.raises(UnknownDataset, match=r"no folder is set \(HIMGA_DATA_DIR\)"):
        store.obtain("chats")
    with pytest.raises(DatasetError, match="a folder that HIMGA_DATA_DIR names"):
        store.obtain("locomo", offline=True)


# -- where a download goes ---------------------------------------------------------------------------


def test_a_download_goes_where_the_variable_says(store: Store, folders: tuple[Path, Path, Path]) -> None:
    assert store.place_for(LOCOMO) == folders[1] / "locomo10.json"


def test_a_folder_that_is_not_there_yet_will_do(tmp_path: Path, cache: Path) -> None:
    store = Store(None, {"HIMGA_DATA_DIR": str(tmp_path / "to" / "come")})
    assert store.place_for(LOCOMO) == tmp_path / "to" / "come" / "locomo10.json"


def test_without_the_variable_it_goes_into_the_cache(tmp_path: Path, cache: Path) -> None:
    assert Store(tmp_path, {}).place_for(LOCOMO) == cache / "locomo10.json"
    assert Store(tmp_path, {"HIMGA_DATA_DIR": "  "}).place_for(LOCOMO) == cache / "locomo10.json"


def test_a_read_only_folder_is_read_and_not_written(
    store: Store, folders: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = put(folders[1], "chats.json")
    # root may write anywhere, so the system is asked to say what it says on a read-only file system
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != folders[1])
    assert store.find("chats") == file
    assert store.place_for(LOCOMO) == folders[2] / "locomo10.json"


def test_a_file_in_the_place_of_the_folder_is_not_written_into(tmp_path: Path, cache: Path) -> None:
    put(tmp_path, "file")
    for where in (tmp_path / "file", tmp_path / "file" / "deeper"):
        assert Store(None, {"HIMGA_DATA_DIR": str(where)}).place_for(LOCOMO) == cache / "locomo10.json"


# -- fetching ----------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, web: Web) -> None:
    """The published files are small ones of these tests."""
    web.body = BODY
    for name, published in PUBLISHED.items():
        digest = {"sha256": SHA256, "size": len(BODY)} if published.sha256 else {}
        monkeypatch.setitem(catalog.PUBLISHED, name, replace(published, **digest))


@pytest.fixture
def mirrored(small: None, web: Web, folders: tuple[Path, Path, Path]) -> Store:
    """A store whose mirror is on loopback, below a path of its own."""
    mirror = {"HIMGA_DATA_MIRROR": f"{web.root}/mirror/of/data/"}
    return Store(folders[0], mirror | {"HIMGA_DATA_DIR": str(folders[1])})


def test_what_lies_nowhere_is_fetched_from_the_mirror_once(
    mirrored: Store, web: Web, folders: tuple[Path, Path, Path]
) -> None:
    said: list[str] = []
    file = folders[1] / "locomo10.json"
    assert mirrored.obtain("locomo", announce=said.append) == file
    assert file.read_bytes() == BODY
    assert [asked.path for asked in web.asked] == [
        f"/mirror/of/data/snap-research/locomo/{LOCOMO.revision}/data/locomo10.json"
    ]
    assert said == [
        f"locomo: downloading {web.root}{web.asked[0].path} to {file}",
        "locomo: licence CC BY-NC 4.0, for non-commercial use only. Please cite " + LOCOMO.citation + ".",
    ]
    assert mirrored.obtain("locomo", announce=said.append) == file
    assert len(web.asked) == 1
    assert len(said) == 2  # the licence is named when it is downloaded, and not again


def test_a_licence_that_allows_everything_is_named_as_well(mirrored: Store) -> None:
    said: list[str] = []
    mirrored.obtain("longmemeval-oracle", announce=said.append)
    assert said[1].startswith("longmemeval-oracle: licence MIT. Please cite Di Wu, ")


def test_an_alias_is_fetched_under_the_published_file_s_name(mirrored: Store, web: Web) -> None:
    path = mirrored.obtain("longmemeval")
    assert path.name == "longmemeval_s_cleaned.json"
    assert mirrored.obtain("longmemeval-s") == path
    assert len(web.asked) == 1


def test_memorystress_comes_unpinned_and_unverified_and_says_so(mirrored: Store, web: Web) -> None:
    web.body = STRESS
    said: list[str] = []
    path = mirrored.obtain("memorystress", announce=said.append)
    assert path.read_bytes() == STRESS
    assert said[1].endswith("Unpinned: upstream can change it (main).")
    found = hashlib.sha256(STRESS).hexdigest()
    assert said[2] == f"memorystress_v1.json: not verified, as no digest is published; its sha256 is {found}"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": "no such file"}', "no known format; the first record's keys are 'error'"),
        (STRESS[:-1] + b"]", "is not JSON"),
        (STRESS + STRESS, "there is more after the end of the JSON"),
        (b"{}", "no known format"),
    ],
    ids=["an error", "broken", "twice", "nothing"],
)
def test_without_a_digest_json_of_another_kind_is_not_kept(
    body: bytes, said: str, mirrored: Store, web: Web, folders: tuple[Path, Path, Path]
) -> None:
    web.body = body
    with pytest.raises(DatasetError) as caught:
        mirrored.obtain("memorystress")
    assert f"{web.root}{web.asked[0].path}: not kept: {said}" in str(caught.value)
    assert mirrored.find("memorystress") is None


def test_other_data_of_the_format_are_downloaded_where_they_are_allowed(
    mirrored: Store, web: Web, folders: tuple[Path, Path, Path]
) -> None:
    web.body = b'[{"conversation": {}, "qa": []}]'
    with pytest.raises(DatasetError, match="not the published file, so it was not kept"):
        mirrored.obtain("locomo")
    said: list[str] = []
    path = mirrored.obtain("locomo", allow_unverified=True, announce=said.append)
    assert path.read_bytes() == web.body
    assert hashlib.sha256(web.body).hexdigest() in said[-1]
    assert said[-1].endswith("accepted by --himga-allow=unverified")


def test_nobody_needs_to_listen(mirrored: Store) -> None:
    def gone(_text: str) -> None:
        raise BrokenPipeError

    assert mirrored.obtain("locomo", announce=gone, progress=terminal_progress(None)).is_file()


def test_a_mirror_s_password_is_used_and_not_printed(
    small: None, web: Web, folders: tuple[Path, Path, Path]
) -> None:
    said: list[str] = []
    mirror = web.root.replace("//", "//me:secret@")
    store = Store(folders[0], {"HIMGA_DATA_MIRROR": mirror})
    store.obtain("locomo", announce=said.append)
    assert web.asked[0].headers["authorization"].startswith("Basic ")
    web.body = b"other"
    with pytest.raises(DatasetError) as caught:
        store.obtain("longmemeval-oracle", announce=said.append)
    with pytest.raises(DatasetError) as offline:
        store.obtain("longmemeval-s", offline=True)
    assert "secret" not in " ".join([*said, str(caught.value), str(offline.value)])
    assert "secret" not in "".join(
        path.read_text("utf-8") for path in folders[2].parent.rglob("*") if path.is_file()
    )


def test_a_mirror_that_is_none_is_refused_before_anything_is_said(folders: tuple[Path, Path, Path]) -> None:
    said: list[str] = []
    with pytest.raises(SettingsError, match="HIMGA_DATA_MIRROR"):
        Store(folders[0], {"HIMGA_DATA_MIRROR": "127.0.0.1"}).obtain("locomo", announce=said.append)
    assert said == []


def test_a_name_of_nothing_says_where_it_was_looked_for_and_what_there_is(
    mirrored: Store, folders: tuple[Path, Path, Path], web: Web
) -> None:
    with pytest.raises(UnknownDataset) as caught:
        mirrored.obtain("longmemeval-x")
    text = str(caught.value)
    for folder in folders:
        assert str(folder) in text
    assert "longmemeval-x.json, longmemeval-x.json.gz, longmemeval-x/" in text
    assert "did you mean longmemeval-" in text
    assert web.asked == []


# -- offline -----------------------------------------------------------------------------------------


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("a socket was opened, or a name looked up")

    for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname", "getfqdn"):
        monkeypatch.setattr(socket, name, refuse)


@pytest.mark.parametrize("name", ["locomo", "longmemeval", "memorystress"])
def test_offline_says_how_to_get_it_by_hand_and_opens_no_socket(
    store: Store, folders: tuple[Path, Path, Path], no_network: None, name: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        store.obtain(name, offline=True)
    text = str(caught.value)
    published = catalog.find_published(name)
    assert published is not None
    assert text.startswith(f"{name}: not on this machine, and --himga-offline forbids to download it")
    assert published.url in text
    assert (published.sha256 or "no digest is published") in text
    assert published.file in text
    for folder in folders:
        assert str(folder) in text
    if name == "locomo":
        assert "2.8 MB" in text


def test_offline_takes_what_lies_here(
    store: Store, folders: tuple[Path, Path, Path], no_network: None
) -> None:
    file = put(folders[2], "locomo10.json.gz")
    assert store.obtain("locomo", offline=True) == file


def test_nothing_that_could_open_a_socket_is_imported_before_a_download(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from pytest_himga.data.store import Store\n"
        "try: Store(Path(sys.argv[1]), {}).obtain('locomo', offline=True)\n"
        "except ValueError: print(sorted({'httpx', 'httpcore', 'ssl', 'socket', 'filelock'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=30, check=True)
    assert run.stdout == "[]\n"


# -- is it the published one? ------------------------------------------------------------------------

PATH = Path("data") / "locomo10.json"


def test_the_published_file_needs_no_word() -> None:
    assert check_digest(LOCOMO, LOCOMO.sha256 or "", path=PATH) is None
    assert check_digest(LOCOMO, (LOCOMO.sha256 or "").upper(), path=PATH) is None


def test_another_file_is_an_error_with_both_digests_and_the_ways_out() -> None:
    with pytest.raises(DatasetError) as caught:
        check_digest(LOCOMO, SHA256, path=PATH)
    text = str(caught.value)
    assert text.startswith(
        f"locomo: {PATH} is not the published file: its sha256 is {SHA256}, published is 79fa"
    )
    assert (LOCOMO.sha256 or "none") in text
    assert f"--himga-dataset=NAME={PATH}" in text
    assert "--himga-allow=unverified" in text


def test_another_file_can_be_allowed_and_marks_the_run() -> None:
    warning = check_digest(LOCOMO, SHA256, True, path=PATH) or ""
    assert SHA256 in warning
    assert (LOCOMO.sha256 or "none") in warning
    assert "accepted by --himga-allow=unverified, which marks runs on it" in warning


def test_a_file_that_is_another_published_one_is_named() -> None:
    original = PUBLISHED["longmemeval-s-original"].sha256 or ""
    with pytest.raises(DatasetError, match="but that of longmemeval-s-original"):
        check_digest(PUBLISHED["longmemeval-s"], original, path=PATH)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_file_without_a_published_digest_is_used_and_said_to_be_unverified(allowed: bool) -> None:
    warning = check_digest(PUBLISHED["memorystress"], SHA256, allowed, path=PATH) or ""
    assert "is not verified: no digest of it is published" in warning
    assert SHA256 in warning


# -- progress ----------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_is_drawn_over() -> None:
    stream, now = Terminal(), [0.0]
    with terminal_progress(stream, lambda: now[0])("locomo") as progress:
        for step in range(101):  # 2 seconds, 50 steps a second
            progress(step * 1_000_000, 100_000_000)
            now[0] += 0.02
    lines = stream.getvalue().split("\r")
    assert stream.getvalue().count("\n") == 1
    assert lines[1] == "locomo: 0.0 of 100.0 MB (0 %)"
    assert lines[-1].rstrip() == "locomo: 100.0 of 100.0 MB (100 %), 49.5 MB/s"
    assert 18 <= len(lines) - 1 <= 22
    assert all(len(after.rstrip("\n")) >= len(before.rstrip()) for before, after in pairwise(lines))


def test_the_speed_is_that_of_this_run_and_not_of_what_was_there() -> None:
    stream, now = Terminal(), [0.0]
    with terminal_progress(stream, lambda: now[0])("locomo") as progress:
        progress(80_000_000, 100_000_000)
        now[0] = 2.0
        progress(90_000_000, 100_000_000)
        assert stream.getvalue().endswith("\rlocomo: 90.0 of 100.0 MB (90 %), 5.0 MB/s")
        progress(0, 100_000_000)  # the server had another version: from the start
        now[0] = 3.0
        progress(1_000_000, 100_000_000)
    assert stream.getvalue().rstrip().endswith("locomo: 1.0 of 100.0 MB (1 %), 1.0 MB/s")


def test_a_log_has_a_line_at_the_start_and_one_at_the_end() -> None:
    stream, now = io.StringIO(), [0.0]
    with terminal_progress(stream, lambda: now[0])("locomo") as progress:
        for step in range(101):
            progress(step * 1_000_000, 100_000_000)
            now[0] += 0.02
    assert stream.getvalue().splitlines() == [
        "locomo: downloading (100.0 MB)",
        "locomo: 100.0 of 100.0 MB after 2 s",
    ]


def test_a_size_that_nobody_knows_is_not_made_up() -> None:
    for stream in (Terminal(), io.StringIO()):
        with terminal_progress(stream, lambda: 0.0)("memorystress") as progress:
            progress(0, None)
            progress(2_600_000, None)
        assert "%" not in stream.getvalue()
        assert "memorystress: 2.6 MB" in stream.getvalue()


def test_an_error_stands_on_a_line_of_its_own() -> None:
    stream = Terminal()

    def fail() -> None:
        with terminal_progress(stream)("locomo") as progress:
            progress(1, 10)
            raise DatasetError("the server answers 404")

    with pytest.raises(DatasetError):
        fail()
    assert stream.getvalue().endswith("\n")


def test_nothing_downloaded_nothing_written() -> None:
    for stream in (Terminal(), io.StringIO()):
        with terminal_progress(stream)("locomo"):
            pass
        assert stream.getvalue() == ""


def test_a_download_reports_what_was_there_already(
    mirrored: Store, web: Web, folders: tuple[Path, Path, Path]
) -> None:
    stream = io.StringIO()
    url = f"{web.root}/mirror/of/data/snap-research/locomo/{LOCOMO.revision}/data/locomo10.json"
    notes = {"url": url, "sha256": SHA256, "validator": web.etag}
    (folders[1] / "locomo10.json.part").write_bytes(BODY[:5])
    (folders[1] / "locomo10.json.part.meta").write_text(json.dumps(notes), encoding="utf-8")
    mirrored.obtain("locomo", progress=terminal_progress(stream))
    assert web.ranges == ["bytes=5-"]
    first, last = stream.getvalue().splitlines()
    assert first == "locomo: downloading (0.0 MB, 0.0 MB of it are there)"
    assert last.startswith("locomo: 0.0 of 0.0 MB after")
