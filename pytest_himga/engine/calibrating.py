"""How a judge is tried on probes, in the engine room: as many of them at a time as it can take."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable, Coroutine
from itertools import islice
from typing import TYPE_CHECKING

from pytest_himga.engine.background import LONGEST_WAIT, Handoff
from pytest_himga.errors import BackendError, BackendTimeout, LLMError
from pytest_himga.judge.probes import Probe
from pytest_himga.judge.verdict import Verdict
from pytest_himga.score.calibration import Calibration

if TYPE_CHECKING:
    from collections.abc import Iterable

#: How many probes an LLM is given at a time. A server that answers one at a time lets the others wait, and
#: that counts against their time limits.
AT_ONCE = 4
#: A judge without a verdict on any of the first so many is out of order: the rest would only cost.
GIVE_UP_AFTER = 16
_NOT_ASKED = Verdict("unscored", reason=f"not asked: none of the first {GIVE_UP_AFTER} probes got a verdict")

#: Asks the judge for its verdict on a probe, in the pipeline's own way (see ``background``).
Ask = Callable[[Probe], Coroutine[Handoff, None, Verdict]]


def calibrate(ask: Ask, probes: Iterable[Probe], *, at_once: int = 1) -> Calibration:
    """Try a judge on ``probes``. One that gets no verdict is unscored, never an error.

    ``at_once`` is for a judge of ours that waits for its model; a user's own is asked for one verdict after
    another, as in a run. If none of the first 16 to come back has a verdict, the rest are not asked.
    """
    judged = _Trials(ask, probes, at_once).judged()
    return Calibration.of(judged)


class _Trial:
    """One probe on its way to a verdict; ``place`` is where it comes among the probes."""

    def __init__(self, place: int, probe: Probe, work: Coroutine[Handoff, None, Verdict]) -> None:
        self.place = place
        self.probe = probe
        self.verdict: Verdict | None = None
        self._work = work
        self.go_on()

    def go_on(self, overdue: BackendTimeout | None = None) -> None:
        """Let the pipeline run up to its next call, or to the verdict."""
        try:
            self.handoff = self._work.send(None) if overdue is None else self._work.throw(overdue)
        except StopIteration as end:
            self.verdict = end.value
        except (BackendError, LLMError) as error:
            self.verdict = Verdict("unscored", reason=error.message)

    @property
    def time_left(self) -> float:
        """Seconds until the call that it waits for is overdue."""
        return self.handoff.progress.deadline + self.handoff.grace - time.monotonic()

    def break_off(self) -> None:
        """Nobody waits for it any more."""
        if self.verdict is None:
            self.handoff.progress.given_up = True
            self.handoff.future.cancel()
        self._work.close()


class _Trials:
    """All probes of a calibration, of which at most ``at_once`` are under way."""

    def __init__(self, ask: Ask, probes: Iterable[Probe], at_once: int) -> None:
        self._ask = ask
        self._upcoming = enumerate(probes)
        self._at_once = at_once
        self._under_way: list[_Trial] = []
        self._done: list[tuple[int, Probe, Verdict]] = []

    def judged(self) -> list[tuple[Probe, Verdict]]:
        """Each probe with its verdict, in their own order."""
        try:
            while self._start_more():
                self._wait()
        finally:
            for trial in self._under_way:
                trial.break_off()
        return [(probe, verdict) for _, probe, verdict in sorted(self._done, key=lambda one: one[0])]

    def _start_more(self) -> bool:
        """Fill up what is under way; False if nothing is left to wait for."""
        self._collect()
        while len(self._under_way) < self._at_once:
            started = [_Trial(place, probe, self._ask(probe)) for place, probe in islice(self._upcoming, 1)]
            if not started:
                break
            self._under_way += started
            self._collect()
        return bool(self._under_way)

    def _collect(self) -> None:
        """Take those with a verdict out of what is under way."""
        for trial in self._under_way:
            if trial.verdict is not None:
                self._done.append((trial.place, trial.probe, trial.verdict))
                if len(self._done) == GIVE_UP_AFTER:
                    self._give_up_if_silent()
        self._under_way = [trial for trial in self._under_way if trial.verdict is None]

    def _give_up_if_silent(self) -> None:
        if all(verdict.value == "unscored" for _, _, verdict in self._done):
            self._done += [(place, probe, _NOT_ASKED) for place, probe in self._upcoming]

    def _wait(self) -> None:
        """Until one can go on or is overdue."""
        futures = [trial.handoff.future for trial in self._under_way]
        patience = min(trial.time_left for trial in self._under_way)
        concurrent.futures.wait(
            futures, min(max(patience, 0), LONGEST_WAIT), concurrent.futures.FIRST_COMPLETED
        )
        for trial in self._under_way:
            if trial.handoff.future.done():
                trial.go_on()
            elif trial.time_left <= 0:
                trial.handoff.give_up()
                trial.go_on(trial.handoff.progress.timeout())
