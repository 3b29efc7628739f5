"""The decoded sample of one run, in the engine room: what holds it, beside the live memory that is fed from it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_himga.data.schema import InMemory
from pytest_himga.errors import BackendError, DatasetError
from pytest_himga.memory.boundary import History

if TYPE_CHECKING:
    from pytest_himga.data.schema import Case


class OpenSample:
    """Decodes at the first look and holds until ``let_go``; ``history`` is None before and after."""

    def __init__(self) -> None:
        self.history: History | None = None
        self._unreadable: BackendError | None = None
        #: What was asked for last: the pipeline asks for each question several times on end.
        self._last: tuple[Case | None, Case | None] = (None, None)

    def history_of(self, case: Case) -> History:
        """The sample of the question as it crosses the boundary.

        Raises ``BackendError`` with the sentence of the ``DatasetError`` if it cannot be read.
        """
        if self._unreadable is not None:
            raise self._unreadable
        if self.history is None:
            try:
                self.history = History.of(case.source.sample())
            except DatasetError as error:
                self._unreadable = BackendError(str(error), stage="")
                raise self._unreadable from None
        return self.history

    def opened(self, case: Case) -> Case:
        """The question over the sample that is held; raises as ``history_of`` does."""
        sample = self.history_of(case).sample
        given, opened = self._last
        if opened is not None and (case is given or case is opened):
            return opened
        questions = sample.qa_pairs
        if case.position >= len(questions) or questions[case.position].uid != case.uid:
            raise BackendError(
                f"{case.id}: the file has another question in its place than when it was indexed; run it again",
                stage="",
            )
        opened = replace(case, source=InMemory(sample))
        self._last = (case, opened)
        return opened

    def peek(self, case: Case) -> Case | None:
        """The same without decoding; None where no sample is held, or it has no such question."""
        try:
            return self.opened(case) if self.history is not None else None
        except BackendError:
            return None

    def let_go(self) -> None:
        """Let go of the sample: who still holds the run, or an error of it, does not hold the data."""
        self.history, self._last = None, (None, None)
