"""A reply that was paid for once is found again; a cache that is broken ends no run."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.errors import SettingsError
from pytest_himga.llm import cache_file
from pytest_himga.llm.cache import ReplyCache, open_cache
from pytest_himga.llm.cache_setting import CacheSetting, parse_cache
from pytest_himga.llm.prompt import sound

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from typing import Any

NAME = "replies.sqlite3"


def key(text: str) -> str:
    """A fingerprint."""
    return hashlib.sha256(text.encode()).hexdigest()


class Runs:
    """Does with a cache what a run would do, each time with one that is made and closed anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None

    def keep(self, *texts: str, reads: bool = True) -> None:
        async def work(cache: ReplyCache) -> None:
            await asyncio.gather(*(cache.put(key(text), f"reply to {text}") for text in texts))

        self.with_cache(work, reads=reads)

    def find(self, *texts: str, writes: bool = True) -> list[str | None]:
        async def work(cache: ReplyCache) -> list[str | None]:
            return [await cache.get(key(text)) for text in texts]

        return self.with_cache(work, writes=writes)

    def with_cache(self, work: Any, *, reads: bool = True, writes: bool = True) -> Any:
        cache = ReplyCache(self.path, reads=reads, writes=writes)
        try:
            return asyncio.run(self._limited(work(cache)))
        finally:
            cache.close()
            self.problem = cache.problem

    @staticmethod
    async def _limited(work: Coroutine[Any, Any, Any]) -> Any:
        async with asyncio.timeout(30):
            return await work

    def in_folder(self) -> list[str]:
        return sorted(path.name for path in self.path.parent.iterdir())


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "cache" / NAME)


def test_the_next_run_finds_what_one_has_kept_and_only_that(runs: Runs) -> None:
    assert runs.find("a", "b") == [None, None]
    runs.keep("a", "b")
    assert runs.find("a", "b", "c") == ["reply to a", "reply to b", None]
    assert runs.problem is None
    assert runs.in_folder() == [NAME]


def test_refreshing_finds_nothing_and_replaces_what_is_there(runs: Runs) -> None:
    runs.keep("a", "b")

    async def refresh(cache: ReplyCache) -> str | None:
        found = await cache.get(key("a"))
        await cache.put(key("a"), "first")
        await cache.put(key("a"), "last")
        return found

    assert runs.with_cache(refresh, reads=False) is None
    assert runs.find("a", "b") == ["last", "reply to b"]


def test_one_run_sees_at_once_what_another_keeps(tmp_path: Path) -> None:
    async def story() -> str | None:
        one, other = (ReplyCache(tmp_path / NAME, reads=True, writes=True) for _ in range(2))
        assert await other.get(key("a")) is None
        await one.put(key("a"), "kept")
        found = await other.get(key("a"))
        one.close()
        other.close()
        return found

    assert asyncio.run(story()) == "kept"


def test_any_sqlite_tool_can_read_the_file_and_finds_nothing_that_tells_when(tmp_path: Path) -> None:
    async def keep(cache: ReplyCache) -> None:
        await cache.put(key("a"), '{"verdict": "correct"}', model="m-1", server="http://127.0.0.1:9/v1")
        await cache.put(key("b"), "plain")

    paths = [tmp_path / name / NAME for name in ("one", "two")]
    for path in paths:
        Runs(path).with_cache(keep)
    db = sqlite3.connect(paths[0])
    rows = db.execute("SELECT fingerprint, reply, model, server FROM replies ORDER BY model DESC").fetchall()
    columns = [row[1] for row in db.execute("PRAGMA table_info(replies)")]
    db.close()
    assert rows == [
        (key("a"), '{"verdict": "correct"}', "m-1", "http://127.0.0.1:9/v1"),
        (key("b"), "plain", "", ""),
    ]
    assert columns == ["fingerprint", "reply", "model", "server"]
    assert paths[0].read_bytes() == paths[1].read_bytes()


# -- many at once --------------------------------------------------------------------------------------

WRITER = """
    import asyncio, sys
    from pathlib import Path
    from pytest_himga.llm.cache import ReplyCache

    async def keep(cache, name):
        for n in range(40):
            await asyncio.gather(
                cache.put(f"shared {n}", "the same"),
                cache.put(f"{name} {n}", name),
                cache.get(f"shared {n}"),
            )

    cache = ReplyCache(Path(sys.argv[1]), reads=True, writes=True)
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(keep(cache, sys.argv[2]))
    cache.close()
    print(cache.problem)
"""


def test_two_processes_that_make_and_fill_it_at_the_same_moment_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / NAME
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([*command, name], **pipes) for name in ("one", "two")]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.communicate(timeout=60)[0] for writer in writers] == ["None\n", "None\n"]
    db = sqlite3.connect(path)
    counts = db.execute("SELECT reply, count(*) FROM replies GROUP BY reply ORDER BY reply").fetchall()
    db.close()
    assert counts == [("one", 40), ("the same", 40), ("two", 40)]
    assert Runs(path).in_folder() == [NAME]


def test_eight_threads_of_one_process_may_make_it_at_the_same_moment(tmp_path: Path) -> None:
    async def story() -> list[str | None]:
        caches = [ReplyCache(tmp_path / NAME, reads=True, writes=True) for _ in range(8)]
        await asyncio.gather(*(cache.put(key(str(n)), str(n)) for n, cache in enumerate(caches)))
        found = [await caches[0].get(key(str(n))) for n in range(8)]
        for cache in caches:
            cache.close()
        assert [cache.problem for cache in caches] == [None] * 8
        return found

    assert asyncio.run(story()) == [str(n) for n in range(8)]


def test_a_run_that_waits_for_another_holds_nothing_else_up(runs: Runs) -> None:
    runs.keep("a")
    other = sqlite3.connect(runs.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    async def story(cache: ReplyCache) -> str | None:
        waiting = asyncio.create_task(cache.get(key("a")))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not waiting.done()
        other.execute("COMMIT")
        return await waiting

    assert runs.with_cache(story) == "reply to a"
    other.close()


def test_a_reply_whose_question_is_cancelled_is_kept_all_the_same(runs: Runs) -> None:
    runs.keep("a")
    other = sqlite3.connect(runs.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    async def story(cache: ReplyCache) -> None:
        waiting = asyncio.create_task(cache.get(key("a")))
        keeping = asyncio.create_task(cache.put(key("b"), "paid for"))
        await asyncio.sleep(0)
        keeping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await keeping
        other.execute("COMMIT")
        assert await waiting == "reply to a"

    runs.with_cache(story)
    other.close()
    assert runs.find("b") == ["paid for"]


def test_texts_that_wait_are_written_together(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    put = cache_file.CacheFile.put

    def counted(file: cache_file.CacheFile, entries: list[cache_file.Entry]) -> None:
        batches.append(len(entries))
        put(file, entries)

    monkeypatch.setattr(cache_file.CacheFile, "put", counted)
    runs.keep(*(str(n) for n in range(64)))
    assert sum(batches) == 64
    assert len(batches) < 10
    assert None not in runs.find(*(str(n) for n in range(64)))


def test_a_closed_cache_finds_and_keeps_nothing_and_says_nothing(runs: Runs) -> None:
    runs.keep("a")

    async def story(cache: ReplyCache) -> str | None:
        assert await cache.get(key("a")) == "reply to a"
        cache.close()
        cache.close()
        await cache.put(key("b"), "too late")
        return await cache.get(key("a"))

    assert runs.with_cache(story) is None
    assert runs.problem is None
    assert runs.find("b") == [None]


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "100% of it? #1 & \N{SNOWMAN}" / NAME)
    runs.keep("a")
    assert runs.find("a") == runs.find("a", writes=False) == ["reply to a"]
    assert [path.name for path in tmp_path.iterdir()] == [runs.path.parent.name]


def test_a_cache_that_nobody_asks_makes_nothing(runs: Runs) -> None:
    cache = ReplyCache(runs.path, reads=True, writes=True)
    cache.close()
    assert not runs.path.parent.exists()


# -- only reading --------------------------------------------------------------------------------------


def test_only_reading_makes_and_changes_nothing(runs: Runs) -> None:
    runs.keep("a")
    before = runs.path.read_bytes()

    async def story(cache: ReplyCache) -> tuple[str | None, list[str]]:
        found = await cache.get(key("a"))
        await cache.put(key("b"), "new")
        return found, runs.in_folder()

    assert runs.with_cache(story, writes=False) == ("reply to a", [NAME])
    assert (runs.problem, runs.in_folder(), runs.path.read_bytes()) == (None, [NAME], before)


def test_only_reading_works_where_nothing_can_be_written(runs: Runs) -> None:
    runs.keep("a")
    runs.path.chmod(0o444)
    runs.path.parent.chmod(0o555)
    try:
        assert runs.find("a", writes=False) == ["reply to a"]
        assert (runs.problem, runs.in_folder()) == (None, [NAME])
    finally:
        runs.path.parent.chmod(0o755)


def test_only_reading_what_is_not_there_says_so_and_makes_no_folder(runs: Runs) -> None:
    assert runs.find("a", "b", writes=False) == [None, None]
    assert f"the cache {runs.path} cannot be opened: it is not there" in runs.problem
    assert runs.problem.endswith("; no reply is found")
    assert not runs.path.parent.exists()


def test_a_log_that_a_tool_has_switched_on_is_left_alone_by_a_reader_and_off_by_a_writer(runs: Runs) -> None:
    runs.keep("a")
    tool = sqlite3.connect(runs.path)
    assert tool.execute("PRAGMA journal_mode = WAL").fetchall() == [("wal",)]
    tool.close()
    assert runs.find("a", writes=False) == ["reply to a"]
    assert runs.in_folder() == [NAME]
    runs.keep("b")
    assert runs.in_folder() == [NAME]
    assert runs.path.read_bytes()[18:20] == b"\1\1"
    assert runs.find("a", "b") == ["reply to a", "reply to b"]


# -- what is broken ------------------------------------------------------------------------------------


def random_bytes(path: Path) -> None:
    path.write_bytes(hashlib.sha512(b"noise").digest() * 40)


def truncated(path: Path) -> None:
    Runs(path).keep(*(f"{n}" * 200 for n in range(200)))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 100)


def a_folder(path: Path) -> None:
    path.mkdir()


def somebody_elses(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE bookmarks (url TEXT)")
    db.close()


def of_a_newer_version(path: Path) -> None:
    Runs(path).keep("0" * 200)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 2")
    db.close()


def no_utf_8(path: Path) -> None:
    Runs(path).keep("0" * 200)
    db = sqlite3.connect(path)
    db.execute("UPDATE replies SET reply = CAST(x'fffe' AS TEXT)")
    db.commit()
    db.close()


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (random_bytes, "cannot be opened: it is no SQLite database (delete it, or name another with"),
        (truncated, "it is damaged (delete it, or name another with --himga-cache)"),
        (a_folder, "cannot be opened: it is a folder"),
        (somebody_elses, "is no cache of pytest-himga (delete it"),
        (of_a_newer_version, "is of another version of pytest-himga (its format is 2, this version knows 1;"),
        (no_utf_8, "cannot be read: it is damaged"),
    ],
)
def test_a_file_that_cannot_be_used_is_left_as_it_is_and_named_once(
    broken: Any, says: str, writes: bool, tmp_path: Path
) -> None:
    runs = Runs(tmp_path / NAME)
    broken(runs.path)
    before = runs.path.read_bytes() if runs.path.is_file() else None

    async def story(cache: ReplyCache) -> list[str | None]:
        found = [await cache.get(key(f"{n}" * 200)) for n in range(200)]
        await cache.put(key("new"), "new")
        return [*found[-1:], await cache.get(key("new"))]

    assert runs.with_cache(story, writes=writes) == [None, None]
    assert says in runs.problem
    assert str(runs.path) in runs.problem
    assert runs.problem.endswith("; replies are neither found nor kept" if writes else "; no reply is found")
    assert "\n" not in runs.problem
    assert runs.in_folder() == [NAME]
    assert (runs.path.read_bytes() if runs.path.is_file() else None) == before


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    runs = Runs(tmp_path / "file" / "cache" / NAME)
    runs.keep("a")
    assert runs.problem == (
        f"the cache {runs.path} cannot be opened: Not a directory; replies are neither found nor kept"
    )
    runs.keep("a", reads=False)
    assert runs.problem.endswith("Not a directory; new replies are not kept")


@pytest.mark.parametrize(
    ("pragma", "says"),
    [("max_page_count = 1", "the disk is full"), ("query_only = 1", "it is write-protected")],
)
def test_where_nothing_more_can_be_written_what_is_there_is_still_found(
    pragma: str, says: str, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.keep("a")
    begin = cache_file.CacheFile._begin

    def limited(file: cache_file.CacheFile, writes: bool) -> None:
        begin(file, writes)
        file._db.execute(f"PRAGMA {pragma}")

    monkeypatch.setattr(cache_file.CacheFile, "_begin", limited)

    async def story(cache: ReplyCache) -> list[str | None]:
        for name in ("b", "c"):
            await cache.put(key(name), "x" * 100_000)
        return [await cache.get(key(name)) for name in ("a", "b", "c")]

    assert runs.with_cache(story) == ["reply to a", None, None]
    assert runs.problem == f"the cache {runs.path} cannot be written: {says}; new replies are not kept"
    assert runs.in_folder() == [NAME]


def test_a_program_that_never_gives_it_back_is_waited_for_once(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.keep("a")
    monkeypatch.setattr(cache_file, "PATIENCE", 0.01)
    other = sqlite3.connect(runs.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert runs.find("a", "a", "a") == [None, None, None]
    other.close()
    assert "another program has held it for" in runs.problem


def test_a_run_ends_although_the_cache_does_not_come_back(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.keep("a")
    monkeypatch.setattr("pytest_himga.llm.cache._LAST_WAIT", 0.01)
    other = sqlite3.connect(runs.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    cache = ReplyCache(runs.path, reads=True, writes=True)

    async def story() -> None:
        waiting = asyncio.create_task(cache.get(key("a")))
        await asyncio.sleep(0)
        thread = cache._lane._thread
        cache.close()
        other.execute("COMMIT")
        await waiting
        thread.join(10)

    asyncio.run(story())
    other.close()
    assert cache.problem.endswith("was still busy at the end of the run; its last replies may be missing")


KILLED = """
    import os, signal, sqlite3, sys

    db = sqlite3.connect(sys.argv[1], isolation_level=None)
    db.execute("PRAGMA cache_size = 1")  # so that pages reach the file before the end of the transaction
    db.execute("BEGIN IMMEDIATE")
    db.executemany("INSERT INTO replies VALUES (?, ?, '', '')", [(str(n), "x" * 3000) for n in range(50)])
    db.execute("UPDATE replies SET reply = 'half written'")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9 on Windows")
def test_a_writer_that_is_killed_in_the_middle_leaves_what_was_there_before(runs: Runs) -> None:
    runs.keep("a")
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(runs.path)], check=False, timeout=60
    )
    assert killed.returncode == -9
    assert runs.in_folder() == [NAME, f"{NAME}-journal"]

    # Who may only read cannot mend it, and changes nothing.
    assert runs.find("a", writes=False) == [None]
    assert "the last program that wrote to it was killed; a run that may write to it" in runs.problem
    assert runs.in_folder() == [NAME, f"{NAME}-journal"]

    assert runs.find("a", "0") == ["reply to a", None]
    assert (runs.problem, runs.in_folder()) == (None, [NAME])
    assert runs.find("a", writes=False) == ["reply to a"]


# -- any text ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, ReplyCache]]:
    cache = ReplyCache(tmp_path_factory.mktemp("texts") / NAME, reads=True, writes=True)
    with asyncio.Runner() as runner:
        yield runner, cache
    cache.close()


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)


@settings(max_examples=60)
@given(text=ANY_TEXT)
def test_any_text_comes_back_as_it_was(text: str, lasting: tuple[asyncio.Runner, ReplyCache]) -> None:
    runner, cache = lasting
    runner.run(cache.put("one", text))
    assert runner.run(cache.get("one")) == sound(text)
    assert cache.problem is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", ""),
        ("a\0b", "a\0b"),
        ("half \ud83d of one", "half \\ud83d of one"),
        ("line\r\nline\n", "line\r\nline\n"),
        ("\N{GRINNING FACE}" * 250_000, "\N{GRINNING FACE}" * 250_000),
    ],
    ids=["empty", "NUL", "lone surrogate", "line ends", "1 MB"],
)
def test_texts_that_are_easily_lost(text: str, kept: str, lasting: tuple[asyncio.Runner, ReplyCache]) -> None:
    runner, cache = lasting
    runner.run(cache.put("two", text))
    assert runner.run(cache.get("two")) == kept


# -- the option ----------------------------------------------------------------------------------------

BASE = Path("/base") if sys.platform != "win32" else Path("C:/base")


@pytest.mark.parametrize(
    ("words", "mode", "path"),
    [
        ([], "on", None),
        (["on"], "on", None),
        (["off"], "off", None),
        (["read"], "read", None),
        (["refresh"], "refresh", None),
        (["ci/himga-cache"], "on", "ci/himga-cache/replies.sqlite3"),
        (["read", "ci/himga-cache"], "read", "ci/himga-cache/replies.sqlite3"),
        (["ci/himga-cache", "refresh"], "refresh", "ci/himga-cache/replies.sqlite3"),
        (["off", "kept"], "off", "kept/replies.sqlite3"),
        (["answers.sqlite3"], "on", "answers.sqlite3"),
        (["ci/answers.DB"], "on", "ci/answers.DB"),
        (["cache.v2"], "on", "cache.v2/replies.sqlite3"),
        ([".himga"], "on", ".himga/replies.sqlite3"),
        (["replies"], "on", "replies/replies.sqlite3"),
        (["./refesh"], "on", "refesh/replies.sqlite3"),
        (["./read"], "on", "read/replies.sqlite3"),
    ],
)
def test_a_mode_and_a_path_may_stand_alone_or_together(words: list[str], mode: str, path: str | None) -> None:
    setting = parse_cache(words, base=BASE, option="--himga-cache")
    assert setting == CacheSetting(mode, BASE / path if path else None)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["refesh"], "refesh is unknown; did you mean refresh? A folder of that name is ./refesh"),
        (["READ"], "READ is unknown; did you mean read?"),
        (["reed", "ci/cache"], "reed is unknown; did you mean read?"),
        (["read-only"], "did you mean read?"),
        (["no"], "did you mean off?"),
        (["true"], "did you mean on?"),
        (["overwrite"], "did you mean refresh?"),
        (["read", "off"], "off and read cannot stand together; name one mode"),
        (["a/b", "c/d"], "a/b and c/d cannot stand together; name one path"),
        ([" "], "' ' is no path; known: on, off, read, refresh, or a path"),
        (["a\0b"], "is no path"),
        (["~nobody-of-that-name/x"], "~nobody-of-that-name/x cannot be a path: Could not determine home"),
        (["x" * 5000], "cannot be a path: "),
    ],
)
def test_anything_else_is_an_error_that_names_the_right_spelling(words: list[str], says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_cache(words, base=BASE, option="--himga-cache=x")
    assert str(caught.value).startswith("--himga-cache=x: ")
    assert says in str(caught.value)


def test_a_file_that_is_no_database_is_not_taken_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"notes.txt is a file; name a folder, or a file that ends in"):
        parse_cache(["notes.txt"], base=tmp_path, option="--himga-cache")
    (tmp_path / "old.db").mkdir()
    setting = parse_cache(["old.db"], base=tmp_path, option="--himga-cache")
    assert setting.path == tmp_path / "old.db" / NAME


@pytest.mark.parametrize(
    ("mode", "finds", "keeps"),
    [("on", True, True), ("read", True, False), ("refresh", False, True)],
)
def test_each_mode_reads_and_writes_as_it_says(mode: Any, finds: bool, keeps: bool, tmp_path: Path) -> None:
    runs = Runs(tmp_path / NAME)
    runs.keep("old")

    async def story() -> str | None:
        cache = open_cache(CacheSetting(mode), tmp_path)
        assert cache is not None
        found = await cache.get(key("old"))
        await cache.put(key("new"), "reply to new")
        cache.close()
        return found

    assert asyncio.run(story()) == ("reply to old" if finds else None)
    assert runs.find("new") == ["reply to new" if keeps else None]


def test_off_is_no_cache_and_a_path_beats_the_usual_folder(tmp_path: Path) -> None:
    assert open_cache(CacheSetting("off", tmp_path / NAME), tmp_path) is None
    usual, named = (
        open_cache(CacheSetting(), tmp_path),
        open_cache(CacheSetting("on", tmp_path / "x.db"), tmp_path),
    )
    assert usual is not None
    assert named is not None
    assert (usual.path, named.path) == (tmp_path / NAME, tmp_path / "x.db")
    assert list(tmp_path.iterdir()) == []


def test_the_usual_folder_hides_itself_from_git_and_a_named_one_can_be_committed(tmp_path: Path) -> None:
    async def keep(setting: CacheSetting) -> None:
        cache = open_cache(setting, tmp_path / "usual")
        assert cache is not None
        await cache.put(key("a"), "kept")
        cache.close()

    for _ in range(2):
        asyncio.run(keep(CacheSetting()))
    asyncio.run(keep(CacheSetting("on", tmp_path / "named" / NAME)))

    assert (tmp_path / "usual" / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert [path.name for path in (tmp_path / "named").iterdir()] == [NAME]
