"""Small LoCoMo records, made up for these tests, and the real file where it lies."""

from __future__ import annotations

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from loopback import Web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Record = dict[str, Any]

_RECORD: Record = {
    "sample_id": "boat",
    "conversation": {
        "speaker_a": "Ines",
        "speaker_b": "Olaf",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ines", "dia_id": "D1:1", "text": "I bought the green boat."},
            {"speaker": "Olaf", "dia_id": "D1:2", "text": "The one with the leak?"},
        ],
        "session_2_date_time": "12:09 am on 3 June, 2023",
        "session_2": [
            {"speaker": "Olaf", "dia_id": "D2:1", "text": "How is the boat?"},
            {"speaker": "Ines", "dia_id": "D2:2", "text": "It floats now."},
        ],
    },
    "qa": [
        {"question": "Who bought a boat?", "answer": "Ines", "evidence": ["D1:1"], "category": 4},
        {
            "question": "What colour is Olaf's boat?",
            "adversarial_answer": "green",
            "evidence": ["D1:1"],
            "category": 5,
        },
    ],
    "event_summary": {"events_session_1": {"Ines": ["buys a boat"]}},
    "observation": {"session_1_observation": {}},
    "session_summary": {"session_1_summary": "A boat changes hands."},
}


@pytest.fixture
def record() -> Record:
    """One sample of two sessions and two questions; change what the test is about."""
    return deepcopy(_RECORD)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write records (or any JSON) to a file of the test's folder."""

    def write_json(content: object, name: str = "chats.json") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return write_json


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIMGA_DATA_DIR", raising=False)


@pytest.fixture(scope="session")
def real_locomo() -> Path:
    """The published file, which is not ours to ship."""
    folder = Path(os.environ.get("HIMGA_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data")
    path = folder / "locomo10.json"
    if not path.is_file():
        pytest.skip(f"needs the real locomo10.json in {folder} (or $HIMGA_TEST_DATA)")
    return path


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A server on loopback, which no proxy of the developer's shell stands before."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    with Web() as server:
        yield server


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the platform would keep datasets, in the test's folder."""
    folder = tmp_path / "cache" / "datasets"
    monkeypatch.setattr("pytest_himga.data.store.cache_folder", lambda: folder)
    return folder
