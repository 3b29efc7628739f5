"""Errata, in the data room: questions of a dataset that are known to be wrong, each with a source.

A list is a TOML or JSON file of a user, or one that is shipped. It excludes questions or corrects golds;
it never changes an id, and scores with and without it are both shown. ::

    sha256 = "79fa..."                       # optional: the version of the data that it is about
    dataset = "locomo"                       # optional: else every dataset of the run that has the ids
    source = "https://example.org/audit"     # of every entry that has none of its own
    question = [
      { id = "conv-26/2", exclude = true, reason = "the answer is in no turn" },
      { id = "conv-26/5", gold = "Saturday", reason = "off by a day" },
    ]

``id`` is ``SAMPLE/QUESTION`` with the file's own question id, or with a uid; a node id works too.
``only = "evidence"`` excludes where retrieval is judged, and nowhere else (a wrong citation).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_himga.data.erratum import AppliedErrata, ErrataList, Erratum
from pytest_himga.data.files import exists, shown, unreadable
from pytest_himga.errors import DatasetError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_himga.data.dataset import Dataset

#: The lists that are shipped: ids, classes and sources only, no text of a dataset.
SHIPPED = {"locomo-audit": "errata_lists/locomo_audit.toml"}
_KEYS = {"id", "exclude", "gold", "reason", "source", "only"}
_TOP = {"sha256", "dataset", "source", "question"}
_NAMED = 3


def read_errata(spec: str, base: Path | None = None) -> ErrataList:
    """Read the shipped list or the file that ``spec`` names.

    Raises
    ------
    DatasetError
        For a file that cannot be read and an entry that is not one, naming file, entry and value.
    """
    if spec in SHIPPED:
        path, name = Path(__file__).parent / SHIPPED[spec], spec
    else:
        path, name = (base or Path()) / _at_home(spec), Path(spec).stem
        if not _is_file(path):
            raise DatasetError(
                f"--himga-errata={spec}: there is no such file, and no shipped list of that name; "
                f"{nearest(spec, SHIPPED)}"
            )
    try:
        data = path.read_bytes()
    except OSError as error:
        unreadable(path, error)
    content = _parsed(path, data)
    unknown = sorted(content.keys() - _TOP)
    if unknown:
        raise DatasetError(f"{path}: {unknown[0]} is no key of an errata list; {nearest(unknown[0], _TOP)}")
    for key in ("sha256", "dataset", "source"):
        if not isinstance(content.get(key, ""), str):
            raise DatasetError(f"{path}: {key} is {shown(content[key])}; expected a text")
    questions = content.get("question")
    if not isinstance(questions, list) or not questions:
        raise DatasetError(f"{path}: has no questions; write a list `question` of tables with id and reason")
    entries: dict[str, Erratum] = {}
    for number, entry in enumerate(questions):
        key, erratum = _entry(path, number, entry, content.get("source", ""))
        if key in entries:
            raise DatasetError(f"{path}: question[{number}]: {key} is there twice; keep one")
        entries[key] = erratum
    return ErrataList(
        name, hashlib.sha256(data).hexdigest(), entries, content.get("sha256"), content.get("dataset")
    )


def apply_errata(lists: Sequence[ErrataList], datasets: Sequence[Dataset]) -> None:
    """Tell each dataset what the lists say of its questions.

    Raises
    ------
    DatasetError
        If a list is about another version of the data, or names a question that is in no dataset.
    """
    for one in lists:
        about = [dataset for dataset in datasets if _is_about(one, dataset)]
        if not about:
            wanted = f"the dataset {one.dataset}" if one.dataset else f"data of sha256 {one.data_sha256}"
            have = ", ".join(f"{d.name} (sha256 {d.sha256})" for d in datasets)
            raise DatasetError(f"The errata {one.name} are about {wanted}, and the run has {have}")
        left = dict(one.entries)
        for dataset in about:
            found = _find(left, dataset)
            if found:
                applied = dataset.errata = dataset.errata or AppliedErrata()
                applied.lists.append(one)
                for key, place in found.items():
                    _add(applied, place, left[key], one, key)
        found_somewhere = {key for dataset in about for key in _find(left, dataset)}
        unknown = [key for key in left if key not in found_somewhere]
        if unknown:
            more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
            names = ", ".join(d.name for d in about)
            raise DatasetError(
                f"The errata {one.name} name questions that {names} has not: {', '.join(unknown[:_NAMED])}{more}"
            )


def _is_about(one: ErrataList, dataset: Dataset) -> bool:
    if one.data_sha256 is not None and one.data_sha256.lower() != dataset.sha256:
        return False
    return one.dataset is None or one.dataset in (dataset.name, dataset.family)


def _find(entries: Mapping[str, Erratum], dataset: Dataset) -> dict[str, tuple[str, str]]:
    """Where each entry's question is in the dataset: (sample name, uid)."""
    found: dict[str, tuple[str, str]] = {}
    for name, sample in zip(dataset.sample_names, dataset.opened.index.samples, strict=True):
        for brief in sample.briefs:
            node = f"himga/{dataset.name}/{name}::{brief.uid}"
            keys = {f"{s}/{q}" for s in (name, sample.sample_id) for q in (brief.question_id, brief.uid)}
            for key in {node, *keys} & entries.keys():
                found[key] = (name, brief.uid)
    return found


def _add(applied: AppliedErrata, place: tuple[str, str], erratum: Erratum, one: ErrataList, key: str) -> None:
    other = applied.by_question.get(place)
    if other is not None and other.gold is not None and erratum.gold not in (None, other.gold):
        raise DatasetError(
            f"The errata {one.name} correct {key} otherwise than another list does; leave one out"
        )
    if other is None or (other.only_evidence and not erratum.only_evidence) or not other.exclude:
        applied.by_question[place] = erratum


# -- reading -----------------------------------------------------------------------------------------


def _at_home(spec: str) -> Path:
    try:
        return Path(spec).expanduser()
    except RuntimeError:  # ~somebody, who has no home here
        return Path(spec)


def _is_file(path: Path) -> bool:
    """Whether it is a file; a pipe or a device could keep us waiting for ever."""
    return exists(path) and path.is_file()


def _parsed(path: Path, data: bytes) -> dict[str, Any]:
    import tomllib

    try:
        text = data.decode("utf-8-sig")  # some editors begin a file with a byte order mark
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of JSON, TOML and UTF-8 alike
        raise DatasetError(
            f"{path}: cannot be read as {path.suffix or 'TOML'} ({error}); mend the file"
        ) from None
    if not isinstance(content, dict):
        raise DatasetError(f"{path}: holds {shown(content)}; expected a table with a list `question`")
    return content


def _entry(path: Path, number: int, entry: Any, source: str) -> tuple[str, Erratum]:
    where = f"{path}: question[{number}]"
    if not isinstance(entry, dict):
        raise DatasetError(f"{where} is {shown(entry)}; expected a table with id and reason")
    unknown = sorted(entry.keys() - _KEYS)
    if unknown:
        raise DatasetError(f"{where}: {unknown[0]} is no key of an entry; {nearest(unknown[0], _KEYS)}")
    texts: dict[str, str] = {}
    for key in ("id", "reason", "source"):
        value = entry.get(key, source if key == "source" else None)
        if not isinstance(value, str) or not value.strip():
            raise DatasetError(f"{where}.{key} is {shown(value)}; expected a text that is not blank")
        texts[key] = value
    gold, exclude, only = entry.get("gold"), entry.get("exclude"), entry.get("only")
    if (exclude is True) == (gold is not None) or exclude not in (None, True):
        raise DatasetError(f"{where} ({texts['id']}): write either exclude = true, or a corrected gold")
    if gold is not None and not isinstance(gold, str):
        raise DatasetError(f"{where}.gold is {shown(gold)}; expected a text")
    if only not in (None, "evidence") or (only and gold is not None):
        raise DatasetError(f'{where}.only is {shown(only)}; the one choice is "evidence", beside exclude')
    return texts["id"], Erratum(texts["reason"], texts["source"], gold, only == "evidence")
