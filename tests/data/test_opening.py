"""From what stands on the command line to a dataset."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from loopback import Web

from pytest_himga.data import Dataset, load_dataset, load_locomo, open_dataset, split_names
from pytest_himga.data.families import FAMILIES
from pytest_himga.data.memorystress import generate
from pytest_himga.data.opening import DEMO_PARTS, Access
from pytest_himga.data.published import PUBLISHED
from pytest_himga.data.store import cache_folder
from pytest_himga.errors import DatasetError, DatasetWarning, UnknownDataset

if TYPE_CHECKING:
    from loopback import Web

Record = dict[str, Any]
Write = Callable[..., Path]


@pytest.fixture
def chats(record: Record, write: Write) -> Path:
    """A good dataset file, ``chats.json``."""
    return write([record])


# -- names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("locomo", ["locomo"]),
        ("locomo,longmemeval", ["locomo", "longmemeval"]),
        ("demo", list(DEMO_PARTS)),
        (" demo-locomo , mine=x.json ,", ["demo-locomo", "mine=x.json"]),
        ("", []),
        (" , ", []),
    ],
)
def test_commas_separate_datasets(text: str, names: list[str]) -> None:
    assert split_names(text) == names


def test_a_path_with_commas_is_one_dataset(record: Record, write: Write, tmp_path: Path) -> None:
    path = write([record], "May, June.json")
    assert split_names(str(path)) == [str(path)]
    assert split_names(f"mine={path}") == [f"mine={path}"]
    assert split_names("May, June.json", base=tmp_path) == ["May, June.json"]


# -- finding -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "spec", "name"),
    [
        ("locomo10.json", "locomo10", "locomo10"),
        ("mine.json", "mine", "mine"),
        ("mine.json.gz", "mine", "mine"),
        ("mine/part.json", "mine", "mine"),
        ("a.b.json", "a.b", "a-b"),
        ("mine.json", "renamed=mine", "renamed"),
    ],
)
def test_a_name_is_looked_up_in_the_data_folder(
    file: str,
    spec: str,
    name: str,
    record: Record,
    write: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write([record], f"data/{file}")
    if file.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    expected = path.parent if "/" in file else path
    dataset = open_dataset(spec, data_dir=tmp_path / "data")
    assert (dataset.name, dataset.path, dataset.family) == (name, expected, "locomo")
    monkeypatch.setenv("HIMGA_DATA_DIR", str(tmp_path / "data"))
    assert open_dataset(spec) == dataset
    assert load_dataset(spec) == dataset.samples
    monkeypatch.delenv("HIMGA_DATA_DIR")
    with pytest.raises(UnknownDataset):
        open_dataset(spec, data_dir=tmp_path / "elsewhere")


@pytest.mark.parametrize("file", ["locomo10.json", "locomo10.json.gz", "locomo.json", "locomo/one.json"])
def test_other_data_under_a_published_name_are_refused_or_marked(
    file: str, record: Record, write: Write, tmp_path: Path
) -> None:
    path = write([record], f"data/{file}")
    if file.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    data = path.parent if "/" in file else path
    accepted = open_dataset("locomo", access=Access(data_dir=tmp_path / "data", allow_unverified=True))
    assert (accepted.name, accepted.path) == ("locomo", data)
    assert accepted.sha256 in accepted.unverified
    with pytest.raises(DatasetError) as caught:
        open_dataset("locomo", data_dir=tmp_path / "data")
    for part in (str(data), accepted.sha256, PUBLISHED["locomo"].sha256, "--himga-allow=unverified"):
        assert str(part) in str(caught.value)
    assert open_dataset(f"mine={data}").unverified == ""


def test_other_data_of_a_mirror_are_refused_or_marked(
    record: Record, web: Web, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.body = json.dumps([record]).encode()
    monkeypatch.setenv("HIMGA_DATA_MIRROR", web.root)
    with pytest.raises(DatasetError, match="not the published file, so it was not kept"):
        open_dataset("locomo")
    accepted = open_dataset("locomo", access=Access(allow_unverified=True))
    assert accepted.path == cache / "locomo10.json"
    assert accepted.sha256 in accepted.unverified
    with pytest.raises(DatasetError, match="is not the published file"):
        open_dataset("locomo")


@pytest.mark.parametrize(
    ("file", "spec", "name"),
    [
        ("chats.json", "chats.json", "chats"),
        ("chats.json", "./chats.json", "chats"),
        ("chats.v2.json", "chats.v2.json", "chats-v2"),
        ("chats", "chats", "chats"),
        ("sub/chats.json", "sub", "sub"),
        ("sub/chats.json", "sub/", "sub"),
        ("sub/chats.json", "sub/../sub/chats.json", "chats"),
        ("demo/chats.json", "./demo", "demo"),
        ("demo-locomo/chats.json", "./demo-locomo", "demo-locomo"),
        ("chats.json", "My Chats=chats.json", "My-Chats"),
        ("a=b.json", "a=b.json", "a-b"),
        ("a=b.json", "c=a=b.json", "c"),
    ],
)
def test_a_path_starts_at_the_base_and_its_stem_is_the_name(
    file: str,
    spec: str,
    name: str,
    record: Record,
    write: Write,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write([record], file)
    dataset = open_dataset(spec, base=tmp_path)
    assert dataset.name == name
    assert [sample.sample_id for sample in dataset.samples] == ["boat"]
    monkeypatch.chdir(tmp_path)
    assert open_dataset(spec).name == name
    assert open_dataset(spec).sha256 == dataset.sha256


def test_the_folder_one_stands_in_has_a_name_too(
    record: Record, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write([record], "here/chats.json")
    monkeypatch.chdir(tmp_path / "here")
    assert open_dataset(".").name == "here"


def test_home_is_expanded(chats: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(chats.parent))
    assert open_dataset("~/chats.json").path == chats
    with pytest.raises(DatasetError, match="there is no such file or folder"):
        open_dataset("~nobody-of-this-name/chats.json")


def test_a_dataset_says_what_it_is(record: Record, write: Write) -> None:
    record["sample_id"] = "the boat/2"
    dataset = open_dataset(f"mine={write([record])}", labels="himga")
    assert dataset.labels == "himga"
    assert dataset.sample_names == ["the-boat-2"]
    assert dataset.type_labels["open_domain"] == "4 open_domain"
    assert [case.id for case in dataset.cases()] == [
        f"himga/mine/the-boat-2::{pair.uid}" for pair in dataset.samples[0].qa_pairs
    ]


def test_the_name_does_not_tell_the_family(record: Record, write: Write) -> None:
    assert open_dataset(str(write([record], "longmemeval_oracle.json"))).family == "locomo"


def test_a_gz_and_its_file_are_one_version(chats: Path) -> None:
    packed = chats.with_name("chats.json.gz")
    packed.write_bytes(gzip.compress(chats.read_bytes()))
    assert open_dataset(str(packed)).sha256 == open_dataset(str(chats)).sha256
    assert open_dataset(str(packed)).name == "chats"


# -- warnings ----------------------------------------------------------------------------------------


def test_warnings_are_kept_by_open_and_let_out_by_load(record: Record, write: Write) -> None:
    record["qa"][0]["evidence"] = ["D9:9"]
    path = write([record])
    text = f"{path}: sample 'boat', field qa[0].evidence[0]: 'D9:9' names no turn; it is left out"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = open_dataset(str(path))
    assert dataset.warnings == [text]
    for load in (load_dataset, load_locomo):
        with pytest.warns(DatasetWarning) as caught:
            assert load(str(path)) == dataset.samples
        assert [(str(w.message), w.filename) for w in caught] == [(text, __file__)]


# -- what is not there, or no dataset ----------------------------------------------------------------


def refusal(spec: str, **places: Path) -> DatasetError:
    """What ``open_dataset`` says instead of opening."""
    with pytest.raises(DatasetError) as caught:
        open_dataset(spec, **places)
    return caught.value


def test_an_unknown_name_without_a_data_folder(tmp_path: Path) -> None:
    error = refusal("locmo", base=tmp_path)
    assert isinstance(error, UnknownDataset)
    assert isinstance(error, ValueError)
    assert str(error) == (
        f"There is no dataset 'locmo': {cache_folder()} (the cache folder) has no locmo.json, locmo.json.gz, "
        f"locmo/, and there is no file {tmp_path / 'locmo'}; did you mean locomo or demo-locomo?"
    )


def test_an_unknown_name_in_a_data_folder(record: Record, write: Write, tmp_path: Path) -> None:
    write([record], "data/kitchen.json")
    data = tmp_path / "data"
    assert str(refusal("kitchn", data_dir=data, base=tmp_path)) == (
        f"There is no dataset 'kitchn': {data} (--himga-data-dir) or {cache_folder()} (the cache folder) has no "
        f"kitchn.json, kitchn.json.gz, kitchn/, and there is no file {tmp_path / 'kitchn'}; did you mean kitchen?"
    )


def test_load_dataset_raises_a_value_error_for_an_unknown_name() -> None:
    with pytest.raises(ValueError, match="There is no dataset 'no-such-dataset'"):
        load_dataset("no-such-dataset")


@pytest.mark.parametrize(
    "spec", ["gone.json", "sub/gone", "mine=gone.json.gz", pytest.param("x" * 300 + ".json", id="long")]
)
def test_a_path_that_is_not_there(spec: str, tmp_path: Path) -> None:
    path = tmp_path / spec.removeprefix("mine=")
    error = refusal(spec, base=tmp_path)
    assert not isinstance(error, UnknownDataset)
    assert str(error) == f"{path}: there is no such file or folder; check the path"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("", "A dataset's name is missing; write a name, a path or NAME=PATH"),
        ("mine=", "'mine=' is not a dataset; write NAME=PATH with both, or a name or path alone"),
        ("=x.json", "'=x.json' is not a dataset; write NAME=PATH with both, or a name or path alone"),
    ],
)
def test_half_a_dataset(spec: str, sentence: str, tmp_path: Path) -> None:
    assert str(refusal(spec, base=tmp_path)) == sentence


def test_keys_of_no_family_are_listed(write: Write) -> None:
    path = write([{"chat": [], "probes": 1}])
    assert str(refusal(str(path))) == (
        f"{path}: no known format; the first record's keys are 'chat', 'probes'; "
        "known: "
        + "; ".join(f"{family.name} has {', '.join(sorted(family.keys))}" for family in FAMILIES.values())
    )
    path = write({})
    assert "the first record's keys are none" in str(refusal(str(path)))


def test_one_strange_record_among_good_ones_is_named(record: Record, write: Write) -> None:
    path = write([{"sample_id": "odd", "chat": []}, record])
    assert str(refusal(str(path))) == f"{path}: sample 'odd', field conversation: missing; expected an object"


def test_a_folder_of_several_formats_is_no_dataset(record: Record, write: Write) -> None:
    folder = write([record], "data/a.json").parent
    other = write({"question_id": "q", "question": "What?", "haystack_sessions": []}, "data/b.json")
    with pytest.raises(DatasetError) as caught:
        open_dataset(str(folder))
    assert str(caught.value) == (
        f"{other}: holds a record in the format longmemeval, and the first is in locomo; a dataset has one "
        "format, so name these files one by one"
    )


def test_a_record_with_the_keys_of_two_formats_is_read_in_the_first_of_them(
    record: Record, write: Write
) -> None:
    both = {"question_id": "q", "question": "What?", "haystack_sessions": []}
    assert open_dataset(str(write([record | both]))).family == "locomo"


def test_samples_whose_slugs_collide_are_refused(record: Record, write: Write) -> None:
    path = write([{**record, "sample_id": "a.b"}, {**record, "sample_id": "a/b"}])
    assert str(refusal(str(path))) == (
        f"{path}: the samples 'a.b' and 'a/b' would both be called a-b in ids; rename one"
    )


def test_a_sample_id_of_300_characters_gets_a_short_name(record: Record, write: Write) -> None:
    record["sample_id"] = "../" * 100
    (name,) = open_dataset(str(write([record]))).sample_names
    assert 0 < len(name) <= 60
    assert "/" not in name
    assert "." not in name


# -- the package -------------------------------------------------------------------------------------


def test_load_dataset_fetches_what_is_not_here_and_says_its_licence_once(
    web: Web, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HIMGA_DATA_MIRROR", web.root)
    web.body = json.dumps(generate(1, 4, 5, 7).to_dict()).encode()
    (sample,) = load_dataset("memorystress")
    said = capsys.readouterr()
    assert "licence Apache-2.0" in said.err
    assert said.out == ""
    assert len(sample.qa_pairs) == 7
    assert load_dataset("memorystress") == [sample]
    assert capsys.readouterr().err == ""
    assert len(web.asked) == 1


def test_the_demo_ships_with_the_package() -> None:
    assert all((files("pytest_himga.data") / "demo" / file).is_file() for file in DEMO_PARTS.values())
    demo = open_dataset("demo-locomo")
    assert isinstance(demo, Dataset)
    assert (demo.name, demo.family) == ("demo-locomo", "locomo")
    assert {case.question.question_type.value for case in demo.cases()} == set(demo.type_labels)
    assert open_dataset("other=demo-locomo").sha256 == demo.sha256
    assert open_dataset("other=demo-locomo").name == "other"


def test_the_demo_is_a_part_in_each_format_and_loads_as_one_list() -> None:
    parts = {name: open_dataset(name) for name in DEMO_PARTS}
    assert [part.family for part in parts.values()] == list(FAMILIES)
    assert load_dataset("demo") == [sample for part in parts.values() for sample in part.samples]
    assert "demo is several datasets; name one: demo-locomo" in str(refusal("mine=demo"))


def test_data_works_without_pytest_and_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.modules['pytest'] = sys.modules['_pytest'] = None\n"
        "import pytest_himga.data as data\n"
        "assert all(hasattr(data, name) for name in data.__all__)\n"
        "heavy = {'numpy', 'httpx', 'openai', 'nltk', 'bm25s', 'asyncio', 'importlib.resources'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-X", "warn_default_encoding", "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (run.stdout, run.stderr) == ("[]\n", "")
