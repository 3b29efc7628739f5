"""The index: built once for each version of a file, read for ever after, never believed about another."""

from __future__ import annotations

import errno
import gc
import gzip
import json
import os
import subprocess
import sys
import time
import warnings
import weakref
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.data import index as index_room
from pytest_himga.data import indexing
from pytest_himga.data.caches import index_folder
from pytest_himga.data.families import FAMILIES
from pytest_himga.data.family import ReadOptions
from pytest_himga.data.index import open_index
from pytest_himga.data.locomo import load_locomo
from pytest_himga.data.opening import Access, open_dataset
from pytest_himga.data.schema import Brief
from pytest_himga.errors import DatasetError


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "indexes"


@pytest.fixture
def opened(folder):
    """Open the index of a path; by default with LoCoMo's own labels."""

    def make(path, labels="locomo"):
        return open_index(path, list(FAMILIES.values()), ReadOptions(labels=labels), folder)

    return make


@pytest.fixture
def builds(monkeypatch):
    """How often an index was built."""
    built = []
    run = indexing.Indexing.run

    def counted(self, *args):
        built.append(args)
        return run(self, *args)

    monkeypatch.setattr(indexing.Indexing, "run", counted)
    return built


def old(path: Path) -> Path:
    """The file as if it had been there for an hour."""
    then = time.time() - 3600
    os.utime(path, (then, then))
    return path


def test_an_index_is_built_once_and_says_the_same_ever_after(record, write, opened, builds):
    path = old(write([record]))
    first = opened(path)
    again = opened(path)
    assert len(builds) == 1
    assert again == first
    (sample,) = first.index.samples
    assert (sample.sample_id, first.index.family) == ("boat", "locomo")
    assert sample.briefs == [Brief.of(question) for question in load_locomo(path)[0].qa_pairs]
    assert json.loads(path.read_bytes()[sample.offset : sample.offset + sample.length]) == record


@pytest.mark.parametrize("change", ["size", "time", "file"])
def test_a_file_that_changed_is_indexed_again(record, write, opened, builds, change):
    path = old(write([record]))
    before = opened(path)
    record["qa"][0]["question"] = record["qa"][0]["question"].swapcase()
    if change == "size":
        record["qa"].append({**record["qa"][0], "question": "And what else?"})
    if change == "file":  # same size, same time, another file in its place
        path.rename(path.with_name("was.json"))
    write([record])
    if change == "file":
        old(path)
        os.utime(path, ns=(before.index.files[0].mtime_ns,) * 2)
    after = opened(path)
    assert len(builds) == 2
    assert after.index.sha256 != before.index.sha256
    assert after.index.samples[0].briefs[0].question == record["qa"][0]["question"]


def test_a_file_written_a_moment_ago_is_not_trusted_until_it_has_been_read_again(
    record, write, opened, builds
):
    path = write([record])
    now = time.time()
    os.utime(path, (now, now))
    assert opened(path).index.young
    old_time = path.stat().st_mtime_ns
    data = path.read_bytes()
    path.write_bytes(data.replace(b"boat", b"goat"))  # same length, and the clock has not moved on
    os.utime(path, ns=(old_time, old_time))
    assert opened(path).index.samples[0].sample_id == "goat"


def test_another_version_of_the_code_builds_its_own(record, write, opened, builds, monkeypatch):
    path = old(write([record]))
    opened(path)
    monkeypatch.setattr(index_room, "_code", lambda: "another version")
    opened(path)
    assert len(builds) == 2


@pytest.mark.parametrize("damage", [b"", b"{", b"null", b"[]", b'{"v": 0}', b"\xff\xfe"])
def test_a_damaged_index_is_built_again(record, write, opened, builds, folder, damage):
    path = old(write([record]))
    whole = opened(path)
    (stored,) = folder.glob("*.json")
    stored.write_bytes(damage)
    assert opened(path) == whole
    assert len(builds) == 2


def test_labels_and_paths_have_indexes_of_their_own(record, write, opened, tmp_path):
    path = old(write([record]))
    by_data, by_himga = opened(path), opened(path, labels="himga")
    assert by_data.index.samples[0].briefs[0].type != by_himga.index.samples[0].briefs[0].type
    assert opened(path) == by_data


def test_one_file_by_two_ways_has_one_index_and_warns_by_the_way_it_is_asked_for(
    record, write, opened, builds, tmp_path, monkeypatch
):
    record["qa"][0]["evidence"] = ["D9:9"]
    path = old(write([record]))
    monkeypatch.chdir(tmp_path)
    by_name = opened(Path(path.name))
    assert by_name.index.warnings[0].startswith(f"{path.name}: sample 'boat', field qa[0].evidence[0]: ")
    assert opened(path).index.warnings[0].startswith(f"{path}: sample 'boat', field qa[0].evidence[0]: ")
    assert len(builds) == 1


def test_a_gz_is_unpacked_once_and_read_from_there(record, write, opened, builds, tmp_path):
    plain = old(write([record]))
    packed = plain.with_name("packed.json.gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    old(packed)
    of_plain, of_packed = opened(plain), opened(packed)
    assert of_packed.index.sha256 == of_plain.index.sha256
    assert of_packed.index.samples == of_plain.index.samples
    assert of_packed.data[0].read_bytes() == plain.read_bytes()
    opened(packed)
    assert len(builds) == 2
    of_packed.data[0].unlink()
    assert opened(packed).data[0].read_bytes() == plain.read_bytes()
    assert len(builds) == 3


def test_a_folder_is_one_dataset_of_all_its_files(record, write, opened, tmp_path):
    for name in ("b", "a"):
        old(write([{**record, "sample_id": name}], f"chats/{name}.json"))
    found = opened(tmp_path / "chats")
    assert [(sample.sample_id, sample.file) for sample in found.index.samples] == [("a", 0), ("b", 1)]
    old(write([{**record, "sample_id": "c"}], "chats/c.json"))
    assert [sample.sample_id for sample in opened(tmp_path / "chats").index.samples] == ["a", "b", "c"]


def test_two_files_with_one_sample_id_are_told(record, write, opened, tmp_path):
    for name in ("a", "b"):
        write([record], f"chats/{name}.json")
    with pytest.raises(DatasetError) as caught:
        opened(tmp_path / "chats")
    assert str(caught.value) == (
        f"{tmp_path / 'chats' / 'b.json'}: sample 'boat', field sample_id: a sample of this id stands in "
        f"{tmp_path / 'chats' / 'a.json'} already; rename one"
    )


def test_what_cannot_be_read_leaves_no_index(write, opened, folder):
    path = write({})
    with pytest.raises(DatasetError):
        opened(path)
    assert list(folder.glob("*.json")) == []


def test_a_folder_that_cannot_be_written_is_said(record, write, tmp_path, opened, folder):
    folder.write_text("not a folder", encoding="utf-8")
    path = write([record])
    with pytest.raises(
        DatasetError, match=r"indexes: the index of .* cannot be kept here .*; make the folder"
    ):
        opened(path)


def test_without_a_cache_folder_indexes_go_into_a_temporary_one(tmp_path, monkeypatch):
    blocked = tmp_path / "cache"
    blocked.write_text("not a folder", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    folder = index_folder()
    assert folder.is_dir()
    assert os.access(folder, os.W_OK)
    assert blocked not in folder.parents
    assert index_folder() == folder


def test_several_processes_build_one_index(record, write, folder):
    path = old(write([record]))
    code = (
        "import sys, pathlib\n"
        "from pytest_himga.data import indexing\n"
        "from pytest_himga.data.opening import Access, open_dataset\n"
        "run = indexing.Indexing.run\n"
        "def slow(*args):\n"
        "    import time; time.sleep(0.5); print('built'); return run(*args)\n"
        "indexing.Indexing.run = slow\n"
        "print(open_dataset(sys.argv[1], access=Access(index_folder=pathlib.Path(sys.argv[2]))).sha256)\n"
    )
    several = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(folder)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=60)[0].split() for process in several]
    assert sum(output.count("built") for output in outputs) == 1
    assert len({output[-1] for output in outputs}) == 1


# -- samples -----------------------------------------------------------------------------------------


def test_opening_decodes_no_sample_once_there_is_an_index(record, write, folder, monkeypatch):
    path = old(write([record, {**record, "sample_id": "second"}]))
    access = Access(index_folder=folder)
    open_dataset(str(path), access=access)
    opened, really = [], Path.open
    monkeypatch.setattr(
        Path, "open", lambda self, *args, **kw: opened.append(self) or really(self, *args, **kw)
    )
    dataset = open_dataset(str(path), access=access)
    assert [case.sample_name for case in dataset.cases()] == ["boat", "boat", "second", "second"]
    assert [file.parent for file in opened] == [folder]


def test_a_sample_lives_as_long_as_somebody_works_with_it(record, write, folder):
    path = old(write([{**record, "sample_id": name} for name in "abc"]))
    dataset = open_dataset(str(path), access=Access(index_folder=folder))
    first, second, third = {case.sample_name: case for case in dataset.cases()}.values()
    sample = first.sample
    assert first.sample is sample
    assert second.sample.sample_id == "b"
    assert first.sample is sample
    gone = weakref.ref(sample)
    del sample
    assert third.sample.sample_id == "c"
    gc.collect()
    assert gone() is None
    assert first.sample.sample_id == "a"


def test_a_copy_that_is_removed_while_the_run_goes_on_is_named(record, write, folder):
    dataset = open_dataset(str(packed_chats(record, write)), access=Access(index_folder=folder))
    (copy,) = dataset.opened.data
    copy.unlink()
    with pytest.raises(DatasetError) as caught:
        _ = dataset.cases()[0].sample
    assert str(caught.value).startswith(f"{copy}: cannot be read (No such file or directory)")


def test_a_file_that_changes_while_the_run_goes_on_is_not_read_on(record, write, folder):
    path = old(write([record]))
    dataset = open_dataset(str(path), access=Access(index_folder=folder))
    (case, *_) = dataset.cases()
    write([{**record, "sample_id": "other"}])
    with pytest.raises(DatasetError, match=r"the file changed while the run went on; run it again$"):
        _ = case.sample
    path.unlink()
    with pytest.raises(DatasetError, match=r"cannot be read \(No such file"):
        _ = case.sample


# -- what is left behind -----------------------------------------------------------------------------


def packed_chats(record, write, name="packed"):
    plain = write([record], f"{name}.json")
    packed = plain.with_suffix(".json.gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    return old(packed)


def test_what_is_kept_of_a_dataset_that_is_gone_goes_when_another_is_indexed(record, write, opened, folder):
    gone, there = packed_chats(record, write, "gone"), packed_chats(record, write, "there")
    of_gone, of_there = opened(gone), opened(there)
    gone.unlink()
    opened(there)  # nothing is written, so nothing is looked at
    assert of_gone.data[0].exists()
    opened(old(write([record], "new.json")))
    assert not of_gone.data[0].exists()
    assert of_there.data[0].exists()
    kept = sorted(path.name.rpartition("-")[0] for path in folder.glob("*.json"))
    assert kept == ["new-json", "there-json-gz"]
    assert all(path.stat().st_size == 0 for path in folder.glob("*.lock"))


def test_what_another_run_is_building_is_left_to_it(record, write, opened, folder):
    gone = packed_chats(record, write, "gone")
    copy = opened(gone).data[0]
    gone.unlink()
    (lock,) = folder.glob("*.lock")
    with FileLock(lock):
        opened(old(write([record], "new.json")))
        assert copy.exists()
    opened(old(write([record], "newer.json")))
    assert not copy.exists()


def test_the_scratch_of_a_killed_check_goes_when_it_is_a_day_old(record, write, opened, folder):
    yesterday, today = folder / "check-1", folder / "check-2"
    for scratch in (yesterday, today):
        scratch.mkdir(parents=True)
        (scratch / "0.json").write_text("[", encoding="utf-8")
    os.utime(yesterday, (0, time.time() - 90_000))
    opened(old(write([record])))
    assert not yesterday.exists()
    assert today.exists()


def test_what_is_no_index_is_left_alone(record, write, opened, folder):
    folder.mkdir()
    strange = {"a.json": b"[" * 10_000, "b.json": b"{}", "c.json": b'{"source": "/gone"}', "d.json": b"\xff"}
    for name, content in strange.items():
        (folder / name).write_bytes(content)
    (folder / "e.json").mkdir()
    opened(old(write([record])))
    assert {name: (folder / name).read_bytes() for name in strange} == strange


def test_copies_that_an_index_no_longer_names_go_with_the_next_one(record, write, opened, folder):
    packed = packed_chats(record, write)
    copy = opened(packed).data[0]
    half = copy.with_name(f"{copy.stem[:-1]}7.part")
    half.write_bytes(b"of a run that was killed")
    packed.write_bytes(gzip.decompress(packed.read_bytes()))
    plain = packed.rename(packed.with_suffix(""))
    packed.symlink_to(plain)  # the same name for another kind of file
    with pytest.raises(DatasetError, match=r"is called \.gz and is not gzip data"):
        opened(packed)
    packed.unlink()
    packed.write_bytes(gzip.compress(plain.read_bytes() + b" "))
    assert opened(old(packed)).data[0].exists()
    assert not half.exists()


def test_unpacking_that_fails_or_is_broken_off_leaves_nothing(record, write, opened, folder, monkeypatch):
    packed = packed_chats(record, write)
    for error, said in (
        (KeyboardInterrupt(), KeyboardInterrupt),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), DatasetError),
    ):

        def failing(_file, target, error=error):
            target.write(b"some of it")
            raise error

        monkeypatch.setattr("pytest_himga.data.files.unpack", failing)
        with pytest.raises(said) as caught:
            opened(packed)
        assert [path.suffix for path in folder.iterdir()] == [".lock"]
    assert "cannot be kept here (No space left on device); make the folder writable, or free" in str(
        caught.value
    )


@pytest.mark.skipif(os.name == "nt", reason="there are no limits for a process's files")
def test_a_disk_that_takes_no_more_leaves_no_half_index(record, write, folder):
    record["qa"] *= 200
    path = old(write([record]))
    code = (
        "import resource, signal, sys, pathlib\n"
        "from pytest_himga.data.opening import Access, open_dataset\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "try: open_dataset(sys.argv[1], access=Access(index_folder=pathlib.Path(sys.argv[2])))\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{folder}: the index of {path} cannot be kept here (File too large); ")
    assert [file.suffix for file in folder.iterdir()] == [".lock"]


def test_a_stamp_of_tomorrow_does_not_have_the_file_read_at_every_start(record, write, opened, builds):
    path = write([record])
    tomorrow = time.time() + 86_400
    os.utime(path, (tomorrow, tomorrow))
    assert opened(path) == opened(path)
    assert len(builds) == 1


def test_without_a_home_no_folder_of_that_name_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: Path("~/.cache/pytest-himga"))
    assert index_folder().is_absolute()
    assert list(tmp_path.iterdir()) == []


def test_an_index_that_is_nested_beyond_reason_is_built_again(record, write, opened, builds, folder):
    path = old(write([record]))
    whole = opened(path)
    (stored,) = folder.glob("*.json")
    stored.write_bytes(b"[" * 200_000)
    assert opened(path) == whole


def test_one_file_s_name_in_the_name_of_another_is_not_taken_for_it(
    record, write, opened, tmp_path, monkeypatch
):
    for name in ("a", "ba"):
        record["qa"][0]["evidence"] = ["D9:9"]
        old(write([{**record, "sample_id": name}], f"chats/{name}.json"))
    monkeypatch.chdir(tmp_path / "chats")
    assert [text.partition(":")[0] for text in opened(Path()).index.warnings] == ["a.json", "ba.json"]
    by_path = opened(tmp_path / "chats").index.warnings
    assert [Path(text.partition(":")[0]) for text in by_path] == [
        tmp_path / "chats" / n for n in ("a.json", "ba.json")
    ]


ANY_TEXT = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["\ud83d", "a\0b", "\x1b[2J", "\u2028", '"\\']
)
WORDS = ANY_TEXT.map(lambda text: f"q{text}")


@given(st.lists(st.tuples(WORDS, ANY_TEXT), min_size=1, max_size=4), st.integers(0, 20_000))
def test_whatever_is_asked_comes_back_from_the_index_as_it_was(questions, length):
    qa = [{"question": text + "?" * length, "answer": gold, "category": 4} for text, gold in questions]
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "chats.json"
        path.write_text(json.dumps([{"sample_id": questions[0][0], "conversation": {}, "qa": qa}]), "utf-8")
        old(path)
        made, kept = (
            open_index(path, list(FAMILIES.values()), ReadOptions(), Path(scratch) / "indexes")
            for _ in range(2)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (sample,) = load_locomo(path)
        assert kept == made
        assert kept.index.samples[0].sample_id == sample.sample_id
        assert kept.index.samples[0].briefs == [Brief.of(question) for question in sample.qa_pairs]
