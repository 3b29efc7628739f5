"""A file comes whole, verified and once, or one sentence says why not and how to get it by hand."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import Act, Web, closing_at, cut_after, ignoring_ranges, redirect, serve, status

from pytest_himga.data import headers
from pytest_himga.data.download import fetch
from pytest_himga.data.part import Part
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path

BODY = json.dumps([{"id": number, "text": "made up for this test"} for number in range(2000)]).encode()
SHA256 = hashlib.sha256(BODY).hexdigest()
OTHER = BODY.replace(b"made up", b"changed")
PAGE = b"<!DOCTYPE html><html><body>Please log in to the network.</body></html>"


class Download:
    """One download of ``chats.json``, with what it said, how long it slept and how far it was."""

    def __init__(self, web: Web, folder: Path) -> None:
        self.web = web
        self.target = folder / "chats.json"
        self.said: list[str] = []
        self.slept: list[float] = []
        self.steps: list[tuple[int, int | None]] = []

    def run(self, **given: Any) -> str:
        known: dict[str, Any] = {"url": self.web.url, "sha256": SHA256, "size": len(BODY)}
        return fetch(
            **(known | given),
            target=self.target,
            progress=lambda done, total: self.steps.append((done, total)),
            announce=self.said.append,
            sleep=self.slept.append,
        )

    def refusal(self, **given: Any) -> str:
        """What it says instead of downloading: one line that ends with the way by hand; no file is there."""
        with pytest.raises(DatasetError) as caught:
            self.run(**given)
        text = str(caught.value)
        assert "\n" not in text
        assert text.endswith(f"{self.web.url} by hand and save it as {self.target}")
        assert not self.target.exists()
        return text

    @property
    def left(self) -> list[str]:
        """What lies beside the file, but for the lock."""
        return sorted(
            p.name for p in self.target.parent.iterdir() if p.suffix != ".lock" and p != self.target
        )


@pytest.fixture
def download(web: Web, tmp_path: Path) -> Download:
    web.body = BODY
    return Download(web, tmp_path / "data" / "sets")


def test_a_file_is_fetched_into_a_folder_that_is_made_for_it(download: Download) -> None:
    assert download.run() == SHA256
    assert download.target.read_bytes() == BODY
    assert download.left == []
    assert download.slept == []
    assert download.said == []
    assert download.steps[0] == (0, len(BODY))
    assert download.steps[-1] == (len(BODY), len(BODY))


def test_the_request_asks_for_the_bytes_as_they_are_and_says_who_asks(
    download: Download, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n", encoding="utf-8")
    (tmp_path / ".netrc").chmod(0o600)
    for name, value in {
        "HF_TOKEN": "secret",
        "HOME": str(tmp_path),
        "NETRC": str(tmp_path / ".netrc"),
    }.items():
        monkeypatch.setenv(name, value)
    download.run()
    [asked] = download.web.asked
    assert asked.headers["accept-encoding"] == "identity"
    assert asked.headers["user-agent"].startswith("pytest-himga/")
    assert "authorization" not in asked.headers
    assert "cookie" not in asked.headers
    assert "secret" not in str(asked)


def test_a_file_that_is_there_already_costs_no_request(download: Download) -> None:
    download.run()
    assert download.run() == SHA256
    assert len(download.web.asked) == 1


def test_another_file_of_that_name_is_replaced(download: Download) -> None:
    download.target.parent.mkdir(parents=True)
    download.target.write_bytes(OTHER)
    assert download.run() == SHA256
    assert download.target.read_bytes() == BODY


def test_without_a_digest_what_is_there_is_no_proof_of_what_is_published(download: Download) -> None:
    download.target.parent.mkdir(parents=True)
    download.target.write_bytes(OTHER)
    assert download.run(sha256=None, size=None) == SHA256
    assert download.target.read_bytes() == BODY


# -- going on ----------------------------------------------------------------------------------------


def test_a_lost_connection_goes_on_where_it_was_cut(download: Download) -> None:
    download.web.script = [cut_after(1000), cut_after(500)]
    assert download.run() == SHA256
    assert download.target.read_bytes() == BODY
    assert download.web.ranges == ["", "bytes=1000-", "bytes=1500-"]
    assert [asked.headers.get("if-range") for asked in download.web.asked] == [None, '"one"', '"one"']
    assert download.slept == [1, 2]
    assert download.steps[-1] == (len(BODY), len(BODY))
    assert download.said[0].startswith("chats.json: ")
    assert download.said[0].endswith("trying again in 1 s")


def test_what_a_run_could_not_finish_the_next_one_does(download: Download) -> None:
    download.web.script = [cut_after(1000)]
    refusal = download.refusal(attempts=1)
    assert "; 1 attempt); try again later (the first 1,000 bytes are kept), or download" in refusal
    assert download.left == ["chats.json.part", "chats.json.part.meta"]
    assert download.run() == SHA256
    assert download.web.ranges == ["", "bytes=1000-"]
    assert download.left == []


def test_ctrl_c_leaves_what_has_come(download: Download) -> None:
    def interrupted(_done: int, _total: int | None) -> None:
        if _done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(download.web.url, download.target, sha256=SHA256, size=len(BODY), progress=interrupted)
    kept = (download.target.parent / "chats.json.part").stat().st_size
    assert kept > 0
    assert download.run() == SHA256
    assert download.web.ranges in (["", f"bytes={kept}-"], [""])  # it may have been the last block


def test_a_run_that_was_stopped_before_the_digest_needs_no_request(download: Download) -> None:
    part_of(download, BODY)
    assert download.run() == SHA256
    assert download.web.asked == []


def test_a_last_modified_date_names_a_version_as_well(download: Download) -> None:
    download.web.etag, download.web.modified = 'W/"weak"', "Wed, 01 May 2024 10:00:00 GMT"
    download.web.script = [cut_after(1000)]
    assert download.run(sha256=None, size=None) == SHA256
    assert download.web.asked[1].headers["if-range"] == "Wed, 01 May 2024 10:00:00 GMT"
    assert download.web.ranges == ["", "bytes=1000-"]


def test_with_nothing_that_names_the_version_it_starts_over(download: Download) -> None:
    download.web.etag = ""
    download.web.script = [cut_after(1000)]
    assert download.run(sha256=None, size=None) == SHA256
    assert download.web.ranges == ["", ""]


def test_a_digest_makes_up_for_a_missing_version(download: Download) -> None:
    download.web.etag = ""
    download.web.script = [cut_after(1000)]
    assert download.run() == SHA256
    assert download.web.ranges == ["", "bytes=1000-"]
    assert "if-range" not in download.web.asked[1].headers


def test_a_server_that_ignores_ranges_starts_over(download: Download) -> None:
    download.web.script = [cut_after(1000), ignoring_ranges]
    assert download.run() == SHA256
    assert download.target.read_bytes() == BODY


def changed(act: Act) -> Act:
    """The file changes on the server, which then does ``act``."""

    def change(handler: Any) -> None:
        handler.web.body, handler.web.etag = BODY, '"two"'
        act(handler)

    return change


def without_condition(handler: Any) -> None:
    """A server that has never heard of If-Range."""
    del handler.headers["If-Range"]
    serve(handler)


@pytest.mark.parametrize("act", [serve, without_condition])
@pytest.mark.parametrize("sha256", [SHA256, None])
def test_a_file_that_changed_between_two_attempts_is_not_patched_together(
    download: Download, act: Act, sha256: str | None
) -> None:
    download.web.body = OTHER
    download.web.script = [cut_after(1000), changed(act)]
    assert download.run(sha256=sha256) == SHA256
    assert download.target.read_bytes() == BODY


def test_a_change_that_the_server_does_not_tell_is_told_by_the_digest(download: Download) -> None:
    download.web.body, download.web.etag = OTHER, ""

    def change(handler: Any) -> None:
        handler.web.body = BODY
        serve(handler)

    download.web.script = [cut_after(1000), change]
    assert download.run() == SHA256
    assert download.web.ranges == ["", "bytes=1000-", ""]


def part_of(download: Download, data: bytes, **notes: Any) -> None:
    """Leave ``data`` as an earlier run would have."""
    folder = download.target.parent
    folder.mkdir(parents=True)
    (folder / "chats.json.part").write_bytes(data)
    known = {"url": download.web.url, "sha256": SHA256, "validator": '"one"'}
    (folder / "chats.json.part.meta").write_text(json.dumps(known | notes), encoding="utf-8")


@pytest.mark.parametrize(
    "notes", [{"url": "http://127.0.0.1/older.json"}, {"sha256": "0" * 64}, {"sha256": None}]
)
def test_what_is_left_of_another_version_is_dropped(download: Download, notes: dict[str, Any]) -> None:
    part_of(download, OTHER[:1000], **notes)
    assert download.run() == SHA256
    assert download.web.ranges == [""]


@pytest.mark.parametrize("notes", ["", "{", "[]", "null", "\x00"])
def test_broken_notes_drop_what_is_left(download: Download, notes: str) -> None:
    part_of(download, BODY[:1000])
    (download.target.parent / "chats.json.part.meta").write_text(notes, encoding="utf-8")
    assert download.run() == SHA256
    assert download.web.ranges == [""]


@pytest.mark.parametrize(
    ("data", "ranges"), [(OTHER[:1000], ["bytes=1000-", ""]), (OTHER, [""])], ids=["half", "whole"]
)
def test_bytes_that_rotted_on_the_disk_are_found_and_fetched_again(
    download: Download, data: bytes, ranges: list[str]
) -> None:
    assert len(OTHER) == len(BODY)
    part_of(download, data)
    assert download.run() == SHA256
    assert download.web.ranges == ranges
    assert download.slept == [0]


@pytest.mark.parametrize("sha256", [SHA256, None])
def test_more_bytes_than_the_file_has_are_dropped(download: Download, sha256: str | None) -> None:
    part_of(download, BODY + b" [1]", sha256=sha256)
    assert download.run(sha256=sha256) == SHA256
    assert download.web.ranges == [f"bytes={len(BODY) + 4}-", ""]


def test_a_whole_part_of_unknown_size_is_confirmed_by_the_server(download: Download) -> None:
    part_of(download, BODY, sha256=None)
    assert download.run(sha256=None, size=None) == SHA256
    assert download.web.ranges == [f"bytes={len(BODY)}-"]


def wrong_range(handler: Any) -> None:
    handler.answer(206, BODY[:10], Content_Range=f"bytes 0-9/{len(BODY)}", ETag='"one"')


@pytest.mark.parametrize("sha256", [SHA256, None])
def test_the_answer_to_another_range_is_not_used(download: Download, sha256: str | None) -> None:
    download.web.script = [cut_after(1000), wrong_range]
    assert download.run(sha256=sha256) == SHA256
    assert download.target.read_bytes() == BODY


def test_a_server_that_sends_pieces_is_asked_until_it_is_done(download: Download) -> None:
    def piece(handler: Any) -> None:
        start = int(handler.headers["Range"].removeprefix("bytes=").rstrip("-"))
        rest = BODY[start : start + 20_000]
        content_range = f"bytes {start}-{start + len(rest) - 1}/{len(BODY)}"
        handler.answer(206, rest, Content_Range=content_range, ETag='"one"')

    download.web.script = [cut_after(1000), piece, piece]
    assert download.run() == SHA256
    assert download.web.ranges[1:3] == ["bytes=1000-", "bytes=21000-"]


def test_a_body_that_ends_early_without_a_length_is_short_and_not_wrong(download: Download) -> None:
    download.web.script = [closing_at(1000)]
    assert download.run() == SHA256
    assert f"ended at 1,000 of {len(BODY):,} bytes" in download.said[0]


def test_a_server_that_compresses_unasked_is_understood_and_never_resumed(download: Download) -> None:
    packed = gzip.compress(BODY)
    torn = status(200, packed[:200], Content_Encoding="gzip", ETag='"z"', Content_Length=str(len(packed)))

    def tear(handler: Any) -> None:
        torn(handler)
        handler.hang_up()

    broken = status(200, b"no gzip at all", Content_Encoding="gzip")
    download.web.script = [tear, broken, status(200, packed, Content_Encoding="gzip", ETag='"z"')]
    assert download.run() == SHA256
    assert download.target.read_bytes() == BODY
    assert download.web.ranges == ["", "", ""]


def test_a_large_file_may_be_cut_more_often_than_a_small_one(download: Download) -> None:
    body = b"[" + b" " * (5 << 20) + b"]"
    download.web.body = body
    download.web.script = [cut_after(1 << 20) for _ in range(4)]
    assert download.run(sha256=hashlib.sha256(body).hexdigest(), size=len(body), attempts=2)
    assert download.slept == [1, 1, 1, 1]


# -- a server in trouble -----------------------------------------------------------------------------

DATE = "Wed, 01 May 2024 10:00:00 GMT"


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        ({"Retry_After": "7"}, 7),
        ({"Retry_After": "0"}, 0),
        ({"Retry_After": "1.5"}, 1.5),
        ({"Retry_After": "86400"}, 300),
        ({"Retry_After": "9" * 5000}, 300),
        ({"Retry_After": "Wed, 01 May 2024 10:00:09 GMT"}, 9),
        ({"Retry_After": "Wed, 01 May 2024 09:00:00 GMT"}, 0),
        ({"Retry_After": "Thu, 02 May 2024 10:00:00 GMT"}, 300),
        ({"Retry_After": "soon"}, 1),
        ({"Retry_After": "-5"}, 1),
        ({"RateLimit": '"resolvers";r=0;t=55'}, 55),
        ({}, 1),
    ],
)
@pytest.mark.parametrize("number", [429, 503])
def test_a_server_that_asks_to_wait_is_obeyed(
    download: Download, monkeypatch: pytest.MonkeyPatch, number: int, answer: dict[str, str], wait: float
) -> None:
    # The server's clock, which dates are measured by: this machine's is years ahead of it.
    monkeypatch.setattr("loopback.Handler.date_time_string", lambda _self, _when=None: DATE)
    download.web.script = [status(number, b"no", **answer)]
    assert download.run() == SHA256
    assert download.slept == [wait]
    assert f"the server answers {number}" in download.said[0]
    assert f"trying again in {wait:g} s" in download.said[0]


@given(st.text(st.characters(codec="latin-1", exclude_characters="\r\n\0")))
def test_whatever_a_header_says_the_wait_is_bounded(text: str) -> None:
    for name in ("Retry-After", "RateLimit"):
        response = httpx.Response(429, headers={name: text.encode("latin-1")})
        wait = headers.wait_asked_for(response)
        assert wait is None or 0 <= wait <= headers.LONGEST_WAIT


@pytest.mark.parametrize("number", [408, 425, 429, 500, 502, 503, 504])
def test_an_outage_is_waited_for_longer_each_time(download: Download, number: int) -> None:
    download.web.script = [status(number)] * 3
    assert download.run() == SHA256
    assert download.slept == [1, 2, 4]


def test_an_outage_that_lasts_is_given_up(download: Download) -> None:
    download.web.script = [status(503)] * 9
    refusal = download.refusal()
    assert "the server answers 503 Service Unavailable; 5 attempts); try again later, or download" in refusal
    assert len(download.web.asked) == 5
    assert download.slept == [1, 2, 4, 8]


@pytest.mark.parametrize("number", [401, 403, 404, 410, 451, 204, 304])
def test_what_would_not_change_is_not_asked_again(download: Download, number: int) -> None:
    download.web.script = [status(number)] * 2
    refusal = download.refusal()
    assert f"the server answers {number}" in refusal
    assert "HIMGA_DATA_MIRROR" in refusal
    assert len(download.web.asked) == 1
    assert download.slept == []


def test_nobody_listening_is_tried_again_and_given_up(download: Download) -> None:
    url = download.web.url
    download.web.server.shutdown()
    download.web.server.server_close()
    refusal = download.refusal()
    assert refusal.startswith(f"{url}: cannot be downloaded (")
    assert "refused" in refusal
    assert download.slept == [1, 2, 4, 8]


def test_a_certificate_that_is_not_trusted_is_said_at_once(
    download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    def untrusted(*_args: object, **_options: object) -> None:
        raise httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] unable to get local issuer certificate")

    monkeypatch.setattr(httpx.Client, "stream", untrusted)
    assert "SSL_CERT_FILE" in download.refusal()
    assert download.slept == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "gopher://127.0.0.1:1"),
        ("HTTPS_PROXY", "http://[::1"),
        ("SSL_CERT_FILE", "/no/such.pem"),
    ],
)
def test_settings_of_the_environment_that_cannot_be_used_are_named(
    download: Download, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert "check HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE, or download" in download.refusal()
    assert download.web.asked == []


# -- redirects ---------------------------------------------------------------------------------------


def test_a_redirect_is_followed_also_when_it_goes_on(download: Download) -> None:
    def elsewhere(handler: Any) -> None:
        redirect("/store/blob")(handler)

    download.web.script = [elsewhere, cut_after(1000), elsewhere]
    assert download.run() == SHA256
    assert [asked.path for asked in download.web.asked] == ["/chats.json", "/store/blob"] * 2
    assert download.web.ranges == ["", "", "bytes=1000-", "bytes=1000-"]


@pytest.mark.parametrize("where", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x", "javascript:1"])
def test_a_redirect_to_anything_but_http_is_refused(download: Download, where: str) -> None:
    download.web.script = [redirect(where)] * 2
    assert "redirects to, cannot be used" in download.refusal()
    assert len(download.web.asked) == 1
    assert download.left == []


def test_a_circle_of_redirects_ends(download: Download) -> None:
    download.web.script = [redirect("/chats.json")] * 50
    assert "cannot be used" in download.refusal()
    assert download.slept == []


# -- another file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [OTHER, PAGE, b"", BODY + b"\n"], ids=["version", "page", "empty", "longer"])
def test_another_file_is_not_kept_and_both_digests_are_shown(download: Download, body: bytes) -> None:
    download.web.body = body
    refusal = download.refusal()
    assert hashlib.sha256(body).hexdigest() in refusal
    assert f"({len(body):,} bytes)" in refusal
    assert f"published {SHA256} ({len(BODY):,} bytes)" in refusal
    assert len(download.web.asked) == 1
    assert download.left == []


def test_a_wrong_digest_leaves_the_file_that_was_there(download: Download) -> None:
    download.target.parent.mkdir(parents=True)
    download.target.write_bytes(b"[1]")
    download.web.body = OTHER
    with pytest.raises(DatasetError, match="not the published file"):
        download.run()
    assert download.target.read_bytes() == b"[1]"


def test_a_body_without_an_end_is_not_read_to_it(download: Download, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_himga.data.transfer._TOLERANCE", 100)
    download.web.body = BODY + b" " * (4 << 20)
    assert "bytes came and no end" in download.refusal()
    assert download.steps[-1][0] < len(download.web.body)
    assert download.left == []


def test_without_a_published_digest_the_one_found_is_said(download: Download) -> None:
    assert download.run(sha256=None, size=None) == SHA256
    assert download.said == [f"chats.json: not verified, as no digest is published; its sha256 is {SHA256}"]


@pytest.mark.parametrize("body", [b' \n[{"a": 1}]\n\n', b"\xef\xbb\xbf{}", b"[]"])
def test_without_a_digest_json_will_do(download: Download, body: bytes) -> None:
    download.web.body = body
    assert download.run(sha256=None, size=None) == hashlib.sha256(body).hexdigest()
    assert download.target.read_bytes() == body


@pytest.mark.parametrize("body", [PAGE, b"", b"Not found", b"\x1f\x8b\x08\x00", b'[{"a": 1}, {"a'])
def test_without_a_digest_what_is_no_json_is_not_kept(download: Download, body: bytes) -> None:
    download.web.body = body
    refusal = download.refusal(sha256=None, size=None)
    assert "no JSON file" in refusal
    assert repr(body[:30].decode("utf-8", "replace"))[:-1] in refusal
    assert download.left == []


# -- the disk ----------------------------------------------------------------------------------------


class FullDisk(io.BytesIO):
    def write(self, _data: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_a_sentence_and_leaves_what_has_come(
    download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    part_of(download, BODY[:1000])
    with monkeypatch.context() as full:
        full.setattr(Part, "open", lambda _part: FullDisk())
        refusal = download.refusal()
    assert refusal.startswith(f"{download.target}: cannot be written (No space left on device); free space")
    assert "HIMGA_DATA_DIR" in refusal
    assert download.run() == SHA256
    assert download.web.ranges == ["bytes=1000-", "bytes=1000-"]


def test_a_folder_that_cannot_be_made_is_a_sentence(download: Download, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be", encoding="utf-8")
    assert "cannot be written" in download.refusal()
    assert download.web.asked == []


def test_a_folder_that_cannot_be_written_is_a_sentence(
    download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    download.target.parent.mkdir(parents=True)
    monkeypatch.setattr(os, "open", refuse)  # root may write anywhere, so the system is asked to refuse
    assert "cannot be written (Permission denied)" in download.refusal()


def test_a_folder_in_the_place_of_the_file_is_a_sentence(download: Download) -> None:
    (download.target / "x").mkdir(parents=True)
    with pytest.raises(DatasetError, match="cannot be written"):
        download.run()


# -- two at once -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sha256", [SHA256, None])
def test_of_several_threads_one_downloads_and_all_have_the_file(
    web: Web, tmp_path: Path, sha256: str | None
) -> None:
    web.body = BODY
    begun = threading.Barrier(4)
    downloads = [Download(web, tmp_path) for _ in range(4)]
    found: list[str] = []

    def run(one: Download) -> None:
        begun.wait()
        found.append(one.run(sha256=sha256))

    def slow(handler: Any) -> None:
        until = time.monotonic() + 5
        while sum(len(one.said) for one in downloads) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        serve(handler)

    web.script = [slow]
    threads = [threading.Thread(target=run, args=(one,)) for one in downloads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == [SHA256] * 4
    assert (tmp_path / "chats.json").read_bytes() == BODY
    assert len(web.asked) == 1
    waiting = "chats.json: another process is downloading it; waiting"
    assert sum(waiting in one.said for one in downloads) == 3


def test_of_two_processes_one_downloads(web: Web, tmp_path: Path) -> None:
    web.body = BODY
    hold = threading.Event()

    def slow(handler: Any) -> None:
        hold.wait(10)
        serve(handler)

    web.script = [slow]
    program = (
        "import sys; from pathlib import Path; from pytest_himga.data.download import fetch\n"
        "say = lambda text: print(text, flush=True)\n"
        "print(fetch(sys.argv[1], Path(sys.argv[2]), sha256=sys.argv[3], announce=say))"
    )
    command = [sys.executable, "-c", program, web.url, str(tmp_path / "chats.json"), SHA256]
    outputs = [tmp_path / "one.txt", tmp_path / "two.txt"]
    with outputs[0].open("wb") as one, outputs[1].open("wb") as two:
        processes = [subprocess.Popen(command, stdout=output, stderr=output) for output in (one, two)]
    texts = ["", ""]
    until = time.monotonic() + 20
    while "another process is downloading it; waiting" not in "".join(texts) and time.monotonic() < until:
        time.sleep(0.02)
        texts = [output.read_text(encoding="utf-8") for output in outputs]
    hold.set()
    assert [process.wait(20) for process in processes] == [0, 0]
    assert [output.read_text(encoding="utf-8").splitlines()[-1] for output in outputs] == [SHA256] * 2
    assert sum("waiting" in text for text in texts) == 1
    assert len(web.asked) == 1
    assert (tmp_path / "chats.json").read_bytes() == BODY


# -- data that are not the published ones, where that is allowed ----------------------------------------------


@pytest.mark.parametrize("act", [ignoring_ranges, closing_at(1 << 20)], ids=["length", "no length"])
@pytest.mark.parametrize(
    "body", [OTHER, b"[]", b"[" + b" " * len(BODY) + b"]"], ids=["same", "short", "long"]
)
def test_where_it_is_allowed_another_file_is_kept_and_both_digests_are_said(
    download: Download, body: bytes, act: Act
) -> None:
    download.web.body = body
    download.web.script = [act]
    found = hashlib.sha256(body).hexdigest()
    assert download.run(allow_unverified=True) == found
    assert download.target.read_bytes() == body
    assert download.said == [
        (
            f"chats.json: not the published file: its sha256 is {found}, published is {SHA256}; accepted by "
            "--himga-allow=unverified"
        )
    ]
    assert download.left == []


def test_where_it_is_allowed_the_published_file_needs_no_word(download: Download) -> None:
    assert download.run(allow_unverified=True) == SHA256
    assert download.said == []


@pytest.mark.parametrize("body", [PAGE, b"", b"Not found"])
def test_where_it_is_allowed_a_page_is_still_no_dataset(download: Download, body: bytes) -> None:
    download.web.body = body
    assert "no JSON file" in download.refusal(allow_unverified=True)
    assert download.left == []


def test_where_it_is_allowed_two_versions_are_still_not_patched_together(download: Download) -> None:
    part_of(download, BODY[:1000])
    download.web.body = OTHER
    assert download.run(allow_unverified=True) == hashlib.sha256(OTHER).hexdigest()
    assert download.target.read_bytes() == OTHER
    assert download.web.ranges == ["bytes=1000-", ""]


@pytest.mark.parametrize(
    "given", [{"sha256": None, "size": None}, {"sha256": "0" * 64, "allow_unverified": True}]
)
def test_what_a_look_inside_refuses_is_not_kept(download: Download, given: dict[str, Any]) -> None:
    def look(path: Path) -> None:
        raise DatasetError(f"{path}: no known format")

    refusal = download.refusal(check=look, **given)
    assert refusal.startswith(f"{download.web.url}: not kept: no known format; look at it")
    assert download.left == []


# -- who listens, and who hardly talks --------------------------------------------------------------------


def test_a_terminal_that_is_gone_does_not_stop_a_download(web: Web, tmp_path: Path) -> None:
    def gone(*_: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    web.body = BODY
    web.script = [cut_after(1000)]
    target = tmp_path / "chats.json"
    assert (
        fetch(web.url, target, sha256=SHA256, announce=gone, progress=gone, sleep=lambda _seconds: None)
        == SHA256
    )
    assert target.read_bytes() == BODY


def test_a_server_that_drips_is_given_up_and_what_came_is_kept(
    download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_himga.data.transfer._SLOWEST", (1000, 0.05))

    def drip(handler: Any) -> None:
        handler.answer(200, Content_Length=str(len(BODY)), ETag='"one"')
        with contextlib.suppress(OSError):
            for at in range(20):
                handler.wfile.write(BODY[at : at + 1])
                time.sleep(0.01)

    download.web.script = [drip]
    assert download.run() == SHA256
    assert re.match(r"chats.json: \d+ bytes came in \d+ s; trying again in 1 s", download.said[0])
    assert re.fullmatch(r"bytes=\d+-", download.web.ranges[1])


def test_a_body_of_unknown_size_without_an_end_is_not_read_to_it(
    download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_himga.data.transfer._MOST", 1000)
    download.web.body = BODY + b" " * (4 << 20)
    assert "bytes came and no end, published: size not known" in download.refusal(sha256=None, size=None)
    assert download.left == []
