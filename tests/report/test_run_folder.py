"""What a run leaves on disk: whole files or none, and never an exception because of the disk."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.errors import HimgaError
from pytest_himga.report import run_folder
from pytest_himga.report.run_folder import RunFolder, new_run_id, run_document
from pytest_himga.score.record import Record

# The formats of version 1 as the design writes them down. They do not change.
RESULTS_FORMAT = """
{"v":1,"id","dataset","sample","uid","type","expects_abstention","verdict":"correct|wrong|unscored|n/a","score":0.5|null,"reason","judge","votes":[],"outcome",
 "question","gold","trap","answer":str|null,"abstention":"held|fell|other"|null,"evidence":[refs],"found":[refs],"recalled":[{"turns","sessions","score"}]|null,
 "context":"sha256 of a blob"|null,"context_chars","context_tokens","k","stage":null|"ingest|retrieve|answer|judge",
 "ms":{"ingest","retrieve","answer","judge"},"usage":{stage:{"calls","tokens_in","tokens_out","cost"}},"cached":[stages],"worker",
 "errata":null|{"excluded":reason}|{"gold","verdict","score"}}
"""
RUN_FORMAT = """
{"v":1,"run","plugin","python","datasets":[{"name","family","sha256","labels","errata","session_order","unverified","selection","items"}],"backend":{"name","version","options"},
 "k","answerer","judge","profiles":{name:sha256},"models","judge_probe","settings","totals":{dataset:{name:number|null}},"gates":[...],"exit"}
"""

RUN_ID = "20250131T120000Z-3fa9"


def keys_of(text: str) -> list[str]:
    """The keys of the outermost object in a format text, in their order."""
    inside = text.strip()[1:-1]
    while (shorter := re.sub(r"\{[^{}\[\]]*\}|\[[^{}\[\]]*\]", "", inside)) != inside:
        inside = shorter
    return re.findall(r'"(\w+)"', inside)


def record(**changes: object) -> Record:
    plain = {
        "id": "himga/demo-locomo/ann-and-bob::which-boat-1a2b3c",
        "dataset": "demo",
        "sample": "ann-and-bob",
        "uid": "which-boat-1a2b3c",
        "type": "single_hop",
        "expects_abstention": False,
        "verdict": "wrong",
        "score": 0.5,
        "reason": "1 of 2 evidence turns in the context",
        "judge": "evidence",
        "question": "Which boat?",
        "gold": "the ketch",
        "trap": None,
    }
    return Record(**{**plain, **changes})  # type: ignore[arg-type] - a table of plain values


def document(**changes: object) -> dict[str, object]:
    plain = {
        "run": RUN_ID,
        "plugin": "0.1.0",
        "python": "3.11.7",
        "datasets": [
            {
                "items": 60,
                "selection": {"samples": [], "types": []},
                "session_order": None,
                "unverified": None,
                "errata": None,
                "labels": "locomo",
                "sha256": "ab" * 32,
                "family": "locomo",
                "name": "demo",
            }
        ],
        "backend": {"options": {"k1": "1.2"}, "version": None, "name": "bm25"},
        "k": 10,
        "answerer": None,
        "judge": "evidence",
        "profiles": {},
        "models": {},
        "judge_probe": {},
        "settings": {"data-dir": Path("data")},
        "totals": {"demo": {"overall": 0.5, "f1": None}},
        "gates": [],
        "exit_status": 0,
    }
    return run_document(**{**plain, **changes})  # type: ignore[arg-type] - a table of plain values


def lines_of(path: Path | None) -> list[dict[str, object]]:
    assert path is not None
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def kept(folder: RunFolder) -> list[str]:
    """The lines of all processes' files of contexts."""
    files = sorted(folder.contexts.glob("*.jsonl"))
    return [line for file in files for line in file.read_text(encoding="utf-8").split("\n") if line]


def disk_full(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path, RUN_ID)


class TestRunId:
    def test_is_the_start_in_utc_and_four_hex(self) -> None:
        noon_in_tokyo = datetime(2025, 1, 31, 12, 0, 5, tzinfo=timezone(timedelta(hours=9)))
        assert re.fullmatch(r"20250131T030005Z-[0-9a-f]{4}", new_run_id(noon_in_tokyo))

    def test_is_now_by_default_and_a_run_folder_takes_it(self, tmp_path: Path) -> None:
        run_id = new_run_id()
        started = datetime.strptime(run_id[:16], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        assert abs(datetime.now(UTC) - started) < timedelta(minutes=1)
        assert RunFolder(tmp_path, run_id).path == tmp_path / ".himga" / "runs" / run_id

    def test_two_runs_of_one_second_differ(self) -> None:
        now = datetime(2025, 1, 31, tzinfo=UTC)
        assert len({new_run_id(now) for _ in range(20)}) > 1

    @pytest.mark.parametrize(
        "run_id", ["", "..", "../x", "20250131T120000Z", f"{RUN_ID}/x", "20259931T120000Z-3fa9"]
    )
    def test_nothing_else_becomes_a_path(self, tmp_path: Path, run_id: str) -> None:
        with pytest.raises(ValueError, match="expected YYYYMMDDTHHMMSSZ-xxxx"):
            RunFolder(tmp_path, run_id)


class TestContexts:
    def test_nothing_is_made_before_something_is_kept(self, folder: RunFolder, tmp_path: Path) -> None:
        assert list(tmp_path.iterdir()) == []
        folder.put_context("Ann: we sold the ketch")
        assert (tmp_path / ".himga" / ".gitignore").read_text(encoding="utf-8") == "*\n"

    def test_a_context_comes_back_by_its_hash(self, folder: RunFolder) -> None:
        sha = folder.put_context("Ann: we sold the ketch\r\nBob: no!\n")
        assert sha is not None
        assert re.fullmatch("[0-9a-f]{64}", sha)
        assert folder.read_context(sha) == "Ann: we sold the ketch\r\nBob: no!\n"

    def test_the_same_text_is_one_line(self, folder: RunFolder) -> None:
        assert folder.put_context("the same") == folder.put_context("the same")
        assert len(kept(folder)) == 1

    def test_it_is_written_once_per_process(self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        sha = folder.put_context("the same")
        monkeypatch.setattr(os, "write", disk_full)
        assert folder.put_context("the same") == sha
        assert folder.problem is None

    def test_a_line_holds_the_hash_and_the_text(self, folder: RunFolder) -> None:
        sha = folder.put_context("na\u00efve\nand\u2028more")
        (line,) = kept(folder)
        assert json.loads(line) == {"sha256": sha, "text": "na\u00efve\nand\u2028more"}

    def test_lone_surrogates_are_kept_as_escapes(self, folder: RunFolder) -> None:
        sha = folder.put_context("half a pair: \ud83d")
        assert sha is not None
        assert folder.read_context(sha) == r"half a pair: \ud83d"
        assert sha == folder.put_context(r"half a pair: \ud83d")

    @settings(deadline=None)  # a slow disk or machine is no failure
    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_every_other_text_comes_back_unchanged(
        self, tmp_path_factory: pytest.TempPathFactory, text: str
    ) -> None:
        folder = RunFolder(tmp_path_factory.getbasetemp() / "any-text", RUN_ID)
        sha = folder.put_context(text)
        assert sha is not None
        assert folder.read_context(sha) == text

    def test_a_disk_that_takes_few_bytes_at_a_time(
        self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write = os.write
        monkeypatch.setattr(os, "write", lambda handle, data: write(handle, bytes(data[:7])))
        sha = folder.put_context("more than seven bytes of text")
        assert sha is not None
        assert folder.read_context(sha) == "more than seven bytes of text"

    def test_half_a_line_is_nobodys_text(self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = folder.put_context("the first text")
        write, room = os.write, [100]

        def until_the_disk_is_full(handle: int, data: memoryview) -> int:
            return write(handle, bytes(data[: room.pop()])) if room else disk_full()

        monkeypatch.setattr(os, "write", until_the_disk_is_full)
        text = "more than a hundred bytes of text, of which the disk takes but the first few words"
        assert folder.put_context(text) is None
        assert folder.problem is not None
        monkeypatch.undo()
        sha = RunFolder(folder.himga.parent / "elsewhere", RUN_ID).put_context(text)
        assert whole is not None
        assert folder.read_context(whole) == "the first text"
        with pytest.raises(HimgaError, match="was not kept, or was deleted since"):
            folder.read_context(str(sha))

    def test_a_reader_is_told_of_a_missing_context(self, folder: RunFolder) -> None:
        with pytest.raises(HimgaError, match=r"^context 000000000000 is not in .*contexts: it was not kept"):
            folder.read_context("0" * 64)

    def test_a_reader_is_told_of_a_changed_context(self, folder: RunFolder) -> None:
        sha = folder.put_context("as it was")
        assert sha is not None
        (file,) = folder.contexts.iterdir()
        file.write_text(kept(folder)[0].replace("as it was", "as I wish") + "\n", encoding="utf-8")
        with pytest.raises(HimgaError, match="was changed or damaged"):
            folder.read_context(sha)

    def test_a_reader_is_told_of_a_file_that_vanishes(self, folder: RunFolder) -> None:
        sha = folder.put_context("as it was")
        assert sha is not None
        assert folder.read_context(sha) == "as it was"
        (file,) = folder.contexts.iterdir()
        file.unlink()
        with pytest.raises(HimgaError, match=r"cannot be read from .*No such file"):
            folder.read_context(sha)

    @pytest.mark.parametrize("sha", ["", "../../../secret", "0" * 63, "0" * 64 + "\n", "G" * 64])
    def test_what_is_no_hash_is_not_looked_up(self, folder: RunFolder, sha: str) -> None:
        with pytest.raises(HimgaError, match="expected 64 hex digits"):
            folder.read_context(sha)

    def test_threads_of_one_process_may_write_the_same_texts(self, folder: RunFolder) -> None:
        threads = [
            threading.Thread(target=lambda: [folder.put_context(f"text {n}") for n in range(50)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert folder.problem is None
        assert len(kept(folder)) == 50

    def test_two_processes_write_the_same_texts_while_a_third_reads(self, folder: RunFolder) -> None:
        root, go = folder.himga.parent, folder.himga.parent / "go"
        program = f"""if True:
            import pathlib, time
            from pytest_himga.report.run_folder import RunFolder
            folder = RunFolder(pathlib.Path({str(root)!r}), {RUN_ID!r})
            deadline = time.monotonic() + 30
            while not pathlib.Path({str(go)!r}).exists() and time.monotonic() < deadline:
                pass
            print([folder.put_context(str(n) * 5000) for n in range(100)], folder.problem)
        """
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, encoding="utf-8"
            )
            for _ in range(2)
        ]
        go.touch()
        texts = {hashlib.sha256((str(n) * 5000).encode()).hexdigest(): str(n) * 5000 for n in range(100)}
        while any(writer.poll() is None for writer in writers):
            reader = RunFolder(root, RUN_ID)
            for sha in [json.loads(line)["sha256"] for line in kept(reader) if line.endswith('"}')]:
                assert reader.read_context(sha) == texts[sha]
        first, second = (writer.communicate()[0] for writer in writers)
        assert first == second
        assert first.endswith("] None\n")
        assert len(list(folder.contexts.iterdir())) == 2
        assert all(folder.read_context(sha) == text for sha, text in texts.items())


class TestResults:
    def test_a_reader_gets_every_field_of_the_format_in_its_order(self, folder: RunFolder) -> None:
        (line,) = lines_of(folder.write_results([record(metrics={"f1": 0.3})]))
        assert list(line) == keys_of(RESULTS_FORMAT)
        assert line["v"] == 1
        assert line["score"] == 0.5

    def test_lines_stand_in_the_order_given(self, folder: RunFolder) -> None:
        path = folder.write_results(record(uid=uid) for uid in ("c", "a", "b"))
        assert path == folder.path / "results.jsonl"
        assert [line["uid"] for line in lines_of(path)] == ["c", "a", "b"]

    def test_a_question_is_one_line_whatever_its_text(self, folder: RunFolder) -> None:
        text = "a\nb\r\nc\u2028d\u2029e\x85f\x0bg\x1ch \ud83d \x00 naïve 記憶 \\ud83d"
        (line,) = lines_of(folder.write_results([record(answer=text)]))
        assert line["answer"] == text

    def test_other_languages_stay_readable(self, folder: RunFolder) -> None:
        path = folder.write_results([record(answer="記憶")])
        assert path is not None
        assert '"記憶"'.encode() in path.read_bytes()

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
    def test_a_backend_that_scores_with_nan_leaves_valid_json(self, folder: RunFolder, number: float) -> None:
        recalled = [{"turns": ["D1:1"], "sessions": [], "score": number}]
        (line,) = lines_of(folder.write_results([record(recalled=recalled)]))
        assert line["recalled"] == [{"turns": ["D1:1"], "sessions": [], "score": None}]

    @settings(deadline=None)  # a slow disk or machine is no failure
    @given(text=st.text(st.characters(exclude_categories=[])))
    def test_every_text_is_read_back(self, tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
        folder = RunFolder(tmp_path_factory.getbasetemp() / "any-answer", RUN_ID)
        (line,) = lines_of(folder.write_results([record(answer=text)]))
        # Two lone halves in a row are one character in JSON, as everywhere outside Python.
        assert line["answer"] == json.loads(json.dumps(text))

    def test_an_error_half_way_leaves_what_stood_there(self, folder: RunFolder) -> None:
        def breaks_off():
            yield record(uid="new")
            raise KeyError("a bug of ours")

        folder.write_results([record(uid="old")])
        with pytest.raises(KeyError):
            folder.write_results(breaks_off())
        assert [line["uid"] for line in lines_of(folder.path / "results.jsonl")] == ["old"]
        assert sorted(path.name for path in folder.path.iterdir()) == ["contexts", "results.jsonl"]


class TestRunDocument:
    def test_has_exactly_the_keys_of_the_format_in_their_order(self) -> None:
        made = document()
        assert list(made) == keys_of(RUN_FORMAT)
        assert made["v"] == 1

    @pytest.mark.parametrize(("opening", "part"), [('"datasets":[', "datasets"), ('"backend":', "backend")])
    def test_and_so_have_its_parts(self, opening: str, part: str) -> None:
        made = document()[part]
        inner = RUN_FORMAT.split(opening)[1].split("}")[0] + "}"
        assert list(made[0] if isinstance(made, list) else made) == keys_of(inner)

    def test_a_part_that_lacks_a_key_is_an_error(self) -> None:
        with pytest.raises(KeyError, match="version"):
            document(backend={"name": "bm25", "options": {}})

    def test_is_written_indented_and_readable(self, folder: RunFolder) -> None:
        path = folder.write_run(document(judge="日本 \ud800"))
        assert path == folder.path / "run.json"
        text = path.read_text(encoding="utf-8")
        assert text.startswith('{\n  "v": 1,\n  "run": "20250131T120000Z-3fa9",\n')
        assert text.endswith("}\n")
        assert '"judge": "日本 \\ud800"' in text
        assert json.loads(text)["settings"] == {"data-dir": "data"}
        assert json.loads(text)["totals"] == {"demo": {"overall": 0.5, "f1": None}}

    @pytest.mark.parametrize("number", [math.nan, math.inf])
    def test_a_number_that_was_not_measured_is_never_nan(self, folder: RunFolder, number: float) -> None:
        with pytest.raises(ValueError, match="give None for a number that was not measured"):
            folder.write_run(document(totals={"demo": {"overall": number}}))
        assert not folder.path.exists()

    def test_what_is_not_plain_data_is_named(self, folder: RunFolder) -> None:
        with pytest.raises(TypeError, match="is not plain data"):
            folder.write_run(document(settings={"x": object()}))


def write_everything(folder: RunFolder) -> list[object]:
    return [folder.put_context("text"), folder.write_results([record()]), folder.write_run(document())]


class TestADiskThatSaysNo:
    def test_a_file_that_is_named_like_the_folder(self, folder: RunFolder) -> None:
        folder.himga.write_text("mine", encoding="utf-8")
        assert write_everything(folder) == [None, None, None]
        folder.prune()
        assert folder.problem is not None
        assert folder.problem.startswith(f"{folder.himga} cannot be written (")
        assert "this run's results and contexts are not kept" in folder.problem
        assert "\n" not in folder.problem
        assert folder.himga.read_text(encoding="utf-8") == "mine"

    def test_a_root_that_is_not_there(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        folder = RunFolder(tmp_path / "file" / "project", RUN_ID)
        assert write_everything(folder) == [None, None, None]
        assert folder.problem is not None

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
    def test_a_root_that_is_read_only(self, folder: RunFolder, tmp_path: Path) -> None:
        tmp_path.chmod(0o555)
        try:
            assert write_everything(folder) == [None, None, None]
        finally:
            tmp_path.chmod(0o755)
        assert folder.problem is not None

    @pytest.mark.parametrize(
        ("owner", "name"),
        [(os, "replace"), (os, "open"), (os, "fsync"), (os, "write"), (Path, "open"), (Path, "mkdir")],
    )
    def test_a_disk_that_is_full(
        self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch, owner: object, name: str
    ) -> None:
        monkeypatch.setattr(owner, name, disk_full)
        write_everything(folder)
        assert folder.problem is not None
        assert "No space left on device" in folder.problem
        left = [path for path in folder.himga.rglob("*") if path.is_file() and path.name != ".gitignore"]
        assert [path for path in left if path.parent != folder.contexts] == []

    def test_the_first_problem_is_told_and_nothing_more_is_tried(
        self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", disk_full)
            assert folder.put_context("text") is None
        first = folder.problem
        assert write_everything(folder) == [None, None, None]
        assert folder.problem == first
        assert not (folder.path / "results.jsonl").exists()

    def test_a_user_gitignore_is_left_as_it_is(self, folder: RunFolder) -> None:
        folder.himga.mkdir()
        (folder.himga / ".gitignore").write_text("cache\n", encoding="utf-8")
        folder.put_context("text")
        assert (folder.himga / ".gitignore").read_text(encoding="utf-8") == "cache\n"


def finished_runs(folder: RunFolder, *run_ids: str) -> list[str]:
    for run_id in run_ids:
        RunFolder(folder.himga.parent, run_id).write_run({})
    return sorted(run_ids)


def names_in(folder: RunFolder) -> list[str]:
    return sorted(path.name for path in folder.runs.iterdir())


class TestPrune:
    def test_keeps_the_newest_twenty_with_this_one(self, folder: RunFolder) -> None:
        old = finished_runs(folder, *(f"20240101T0000{n:02}Z-abcd" for n in range(25)))
        folder.write_run({})
        folder.prune()
        assert names_in(folder) == [*old[-19:], RUN_ID]

    def test_keeps_this_one_even_if_all_others_are_newer(self, folder: RunFolder) -> None:
        newer = finished_runs(folder, *(f"20260101T00000{n}Z-abcd" for n in range(4)))
        folder.write_run({})
        folder.prune(keep=2)
        assert names_in(folder) == [RUN_ID, newer[-1]]

    @pytest.mark.parametrize("keep", [1, 0, -1])
    def test_never_deletes_this_one(self, folder: RunFolder, keep: int) -> None:
        finished_runs(folder, "20240101T000000Z-abcd")
        folder.write_run({})
        folder.prune(keep)
        assert names_in(folder) == [RUN_ID]

    def test_touches_nothing_but_folders_named_like_a_run(self, folder: RunFolder, tmp_path: Path) -> None:
        folder.write_run({})
        (folder.runs / "notes").mkdir()
        (folder.runs / "20240101T000000Z-abcd.bak").mkdir()
        (folder.runs / "20240101T000000Z-ABCD").mkdir()
        (folder.runs / "20240101T000000Z-abcd").write_text("a file", encoding="utf-8")
        before = names_in(folder)
        folder.prune(keep=1)
        assert names_in(folder) == before

    def test_follows_no_link(self, folder: RunFolder, tmp_path: Path) -> None:
        precious = tmp_path / "precious"
        precious.mkdir()
        (precious / "thesis.txt").write_text("years of work", encoding="utf-8")
        finished_runs(folder, RUN_ID, "20240101T000001Z-abcd")
        try:
            (folder.runs / "20240101T000000Z-abcd").symlink_to(precious, target_is_directory=True)
            (folder.runs / "20240101T000001Z-abcd" / "inside").symlink_to(precious, target_is_directory=True)
        except OSError:
            pytest.skip("this system makes no symbolic links")
        folder.prune(keep=1)
        assert names_in(folder) == ["20240101T000000Z-abcd", RUN_ID]
        assert (precious / "thesis.txt").read_text(encoding="utf-8") == "years of work"

    def test_a_run_that_is_still_going_stays_whatever_ends_meanwhile(self, folder: RunFolder) -> None:
        going = RunFolder(folder.himga.parent, "20250131T080000Z-0000")
        going.put_context("it has not ended")
        left_by_a_crash = RunFolder(folder.himga.parent, "20250130T080000Z-0000")
        left_by_a_crash.put_context("it never ended")
        finished_runs(folder, RUN_ID, *(f"20250131T1100{n:02}Z-abcd" for n in range(30)))
        folder.prune()
        assert going.path.name in names_in(folder)
        assert left_by_a_crash.path.name not in names_in(folder)
        assert len(names_in(folder)) == 20 + 1

    def test_what_cannot_be_deleted_stays_without_a_word(
        self, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        finished_runs(folder, RUN_ID, "20240101T000000Z-abcd")
        monkeypatch.setattr(os, "rmdir", disk_full)
        folder.prune(keep=1)
        assert names_in(folder) == ["20240101T000000Z-abcd", RUN_ID]
        assert folder.problem is None

    def test_is_quiet_where_nothing_was_written(self, folder: RunFolder, tmp_path: Path) -> None:
        folder.prune()
        assert list(tmp_path.iterdir()) == []


def test_two_runs_in_one_checkout_do_not_disturb_each_other(tmp_path: Path) -> None:
    here, there = (RunFolder(tmp_path, f"20250131T120000Z-000{n}") for n in range(2))
    sha = here.put_context("the same text")
    assert there.put_context("the same text") == sha
    for run in (here, there):
        run.write_results([record(worker=run.run_id)])
        run.write_run(document(run=run.run_id))
        run.prune()
    for run in (here, there):
        assert sha is not None
        assert run.read_context(sha) == "the same text"
        assert [line["worker"] for line in lines_of(run.path / "results.jsonl")] == [run.run_id]
        assert json.loads((run.path / "run.json").read_text(encoding="utf-8"))["run"] == run.run_id


def test_kept_runs_is_what_the_design_says() -> None:
    assert run_folder.KEPT_RUNS == 20
