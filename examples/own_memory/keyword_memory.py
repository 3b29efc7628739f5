"""A memory of one's own: SQLite's full-text search, one row per turn."""

import re
import sqlite3

from pytest_himga import Message, Recalled


class KeywordMemory:
    """Finds turns that share a word with the question, best match first."""

    version = "1"
    deterministic = True

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE VIRTUAL TABLE turns USING fts5(turn_id UNINDEXED, date UNINDEXED, line)")

    def reset(self) -> None:
        self.db.execute("DELETE FROM turns")

    def ingest(self, message: Message) -> None:
        line = f"{message.role}: {message.content}"
        self.db.execute("INSERT INTO turns VALUES (?, ?, ?)", (message.turn_id, message.date_str, line))

    def retrieve(self, query: str, k: int = 10) -> list[Recalled]:
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
        rows = self.db.execute(
            "SELECT turn_id, date, line FROM turns WHERE turns MATCH ? ORDER BY rank LIMIT ?", (words, k)
        )
        return [Recalled(line, turn_ids=[turn_id], date_str=date) for turn_id, date, line in rows]

    def close(self) -> None:
        self.db.close()
