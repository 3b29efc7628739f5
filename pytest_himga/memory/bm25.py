"""The bm25 reference backend: lexical search over single turns, by the bm25s library.

Okapi BM25 (Robertson et al.), Lucene's variant, k1 = 1.5 and b = 0.75, English stop words, and
Snowball's English stemmer: what a team gets for free before it builds a memory.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pytest_himga.memory.protocol import Recalled
from pytest_himga.memory.reference import SharedStore

if TYPE_CHECKING:
    from pytest_himga.data.schema import Message


class BM25Memory(SharedStore):
    """One index per sample, one document per turn (``speaker: text``, captions included)."""

    deterministic = True

    def __init__(self, k1: float = 1.5, b: float = 0.75) -> None:
        import bm25s
        import Stemmer

        # At DEBUG, which is its default, it would tell of each index in the log section of a failure.
        logging.getLogger("bm25s").setLevel(logging.INFO)
        self.version = f"bm25s {bm25s.__version__}"
        self._bm25s = bm25s
        self._stemmer = Stemmer.Stemmer("english")
        self._k1, self._b = k1, b
        self._turns: list[Message] = []
        self._index: Any = None

    def ingest(self, message: Message) -> None:
        """Keep the turn; the index is made once, when all turns are in."""
        self._turns.append(message)
        self._index = None

    def settle(self) -> None:
        """Build the index; there is none where no turn has a word that counts."""
        tokens = self._tokens([f"{turn.role}: {turn.content}" for turn in self._turns]) if self._turns else []
        if any(tokens):
            self._index = self._bm25s.BM25(k1=self._k1, b=self._b)
            self._index.index(tokens, show_progress=False)

    def retrieve(self, query: str, k: int = 10) -> list[Recalled]:
        """The ``k`` best turns with a score above 0; equal scores in the order of the history."""
        if self._index is None:
            self.settle()
        words = self._tokens([query])[0] if self._index is not None else []
        if not words:
            return []
        scores = self._index.get_scores(words)
        best = (-scores).argsort(kind="stable")[:k]
        return [
            Recalled(
                f"{turn.role}: {turn.content}",
                turn_ids=[turn.turn_id] if turn.turn_id else [],
                date_str=turn.date_str,
                score=float(scores[n]),
            )
            for n in best
            if scores[n] > 0
            for turn in [self._turns[n]]
        ]

    def reset(self) -> None:
        """Drop turns and index."""
        self._turns = []
        self._index = None

    def _tokens(self, texts: list[str]) -> list[list[str]]:
        tokens: list[list[str]] = self._bm25s.tokenize(
            texts, stopwords="en", stemmer=self._stemmer, return_ids=False, show_progress=False
        )
        return tokens
