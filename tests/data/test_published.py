"""The catalog's facts, checked against each other and against the real files where they lie."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pytest_himga.data.identity import slug_of_name
from pytest_himga.data.published import (
    PUBLISHED,
    Published,
    find_published,
    megabytes,
    published_names,
    url_of,
    without_login,
)
from pytest_himga.errors import SettingsError

REAL_DATA = Path(__file__).parents[3] / "shared" / "data"
LOCOMO = PUBLISHED["locomo"]
each_of_them = pytest.mark.parametrize("published", PUBLISHED.values(), ids=PUBLISHED)


@pytest.mark.parametrize(
    ("name", "file", "size", "sha256_starts", "revision_starts"),
    [
        ("locomo", "locomo10.json", 2_805_274, "79fa87e9", "3eb6f2c5"),
        ("longmemeval-oracle", "longmemeval_oracle.json", 15_388_478, "821a2034", "98d7416c"),
        ("longmemeval-s", "longmemeval_s_cleaned.json", 277_383_467, "d6f21ea9", "98d7416c"),
        ("longmemeval-m", "longmemeval_m_cleaned.json", 2_737_100_077, "9d79e552", "98d7416c"),
        ("longmemeval-s-original", "longmemeval_s.json", 278_025_796, "08d8dad4", "2ec2a557"),
        ("longmemeval-m-original", "longmemeval_m.json", 2_745_274_681, "fb5413e3", "2ec2a557"),
    ],
)
def test_what_is_known_is_pinned(
    name: str, file: str, size: int, sha256_starts: str, revision_starts: str
) -> None:
    published = PUBLISHED[name]
    assert (published.file, published.size) == (file, size)
    assert re.fullmatch("[0-9a-f]{64}", published.sha256 or "")
    assert (published.sha256 or "").startswith(sha256_starts)
    assert published.pinned
    assert published.revision.startswith(revision_starts)
    assert f"/{published.revision}/" in published.url


def test_of_memorystress_neither_digest_nor_size_nor_revision_is_known() -> None:
    published = PUBLISHED["memorystress"]
    assert (published.sha256, published.size, published.revision) == (None, None, "main")
    assert not published.pinned
    assert "no digest" in published.note
    assert "unpinned" in published.note


def test_only_locomo_is_for_non_commercial_use() -> None:
    assert {p.name: p.licence for p in PUBLISHED.values() if p.non_commercial} == {"locomo": "CC BY-NC 4.0"}
    others = {p.family: p.licence for p in PUBLISHED.values() if not p.non_commercial}
    assert others == {"longmemeval": "MIT", "memorystress": "Apache-2.0"}


@each_of_them
def test_each_can_be_named_stored_and_cited(published: Published) -> None:
    assert slug_of_name(published.name) == published.name
    assert re.fullmatch(r"[a-z0-9_]+\.json", published.file)
    assert urlsplit(published.url).scheme == "https"
    assert re.search(r"\(20\d\d\): .+", published.citation)
    assert "\n" not in published.citation + published.note
    assert published.family in {"locomo", "longmemeval", "memorystress"}


def test_no_name_is_taken_twice() -> None:
    assert len(set(published_names())) == len(published_names())
    files = [published.file for published in PUBLISHED.values()]
    assert len(set(files)) == len(files)


def test_an_alias_is_the_dataset_that_it_stands_for() -> None:
    assert find_published("longmemeval") is PUBLISHED["longmemeval-s"]
    assert find_published("longmemeval-oracle-original") is PUBLISHED["longmemeval-oracle"]
    assert "same file" in PUBLISHED["longmemeval-oracle"].note
    assert find_published("longmemeval-x") is None


def test_the_originals_have_no_suffix_upstream() -> None:
    for size in "sm":
        assert PUBLISHED[f"longmemeval-{size}-original"].upstream_file == f"longmemeval_{size}"


@pytest.mark.parametrize("name", ["locomo", "longmemeval-oracle"])
def test_the_real_file_has_the_digest_and_the_size(name: str) -> None:
    published = PUBLISHED[name]
    path = REAL_DATA / published.file
    packed = path.with_name(f"{path.name}.gz")
    if path.is_file():
        data = path.read_bytes()
    elif packed.is_file():
        data = gzip.decompress(packed.read_bytes())
    else:
        pytest.skip(f"needs the real file: {path} or its .gz")
    assert len(data) == published.size
    assert hashlib.sha256(data).hexdigest() == published.sha256


# -- the mirror --------------------------------------------------------------------------------------

_PATH = urlsplit(LOCOMO.url).path


@pytest.mark.parametrize(
    ("mirror", "url"),
    [
        (None, LOCOMO.url),
        ("", LOCOMO.url),
        ("  ", LOCOMO.url),
        ("http://127.0.0.1:81", f"http://127.0.0.1:81{_PATH}"),
        ("https://mirror.example/", f"https://mirror.example{_PATH}"),
        ("https://mirror.example/data/himga/", f"https://mirror.example/data/himga{_PATH}"),
        ("https://me:secret@mirror.example", f"https://me:secret@mirror.example{_PATH}"),
        (" http://[::1]:8080/x ", f"http://[::1]:8080/x{_PATH}"),
    ],
)
def test_a_mirror_replaces_the_host_and_keeps_its_own_path_in_front(mirror: str | None, url: str) -> None:
    assert url_of(LOCOMO, mirror) == url


@pytest.mark.parametrize(
    ("mirror", "problem"),
    [
        ("mirror.example/data", "is no http or https address"),
        ("file:///srv/data", "is no http or https address"),
        ("ftp://mirror.example", "is no http or https address"),
        ("https://", "names no host"),
        ("https:///data", "names no host"),
        ("https://mirror.example?file=", "has a query"),
        ("https://mirror.example/#top", "has a query or a fragment"),
        ("https://mirror.example:port", "port"),
        ("https://mirror.example:0", "names port 0"),
        ("http://[::1", "IPv6"),
    ],
)
def test_a_mirror_that_is_no_address_is_refused(mirror: str, problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        url_of(LOCOMO, mirror)
    assert re.search(f"^HIMGA_DATA_MIRROR='{re.escape(mirror)}': .*{problem}", str(caught.value))
    assert "https://host/prefix" in str(caught.value)


def test_a_password_is_never_printed() -> None:
    with pytest.raises(SettingsError) as caught:
        url_of(LOCOMO, "https://me:secret@mirror.example?x=1")
    assert "secret" not in str(caught.value)
    assert without_login("https://me:secret@mirror.example/a@b") == "https://mirror.example/a@b"
    assert without_login(LOCOMO.url) == LOCOMO.url


def test_sizes_are_for_people() -> None:
    assert megabytes(2_737_100_077) == "2,737.1 MB"
    assert megabytes(None) == "size not known"
