"""A judge is tried on probes: several at a time, in their order, and never for long if it is out of order."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager

import pytest

from pytest_himga.engine.background import GRACE, Background, Caller, Handoff, Progress
from pytest_himga.engine.calibrating import GIVE_UP_AFTER, calibrate
from pytest_himga.errors import BackendError, LLMError
from pytest_himga.judge.probes import Probe, shipped_probes
from pytest_himga.judge.verdict import Verdict
from pytest_himga.lane import Lane

CORRECT, WRONG = Verdict("correct", 1.0), Verdict("wrong", 0.0)


def as_labelled(probe: Probe) -> Verdict:
    return CORRECT if probe.right else WRONG


@pytest.fixture
def background():
    made = Background()
    yield made
    made.close()


def on_loop(background, judge, limit=20.0):
    """What asks ``judge(probe)``, a coroutine function, on the background loop."""

    async def ask(probe):
        return await Handoff(background.submit(judge(probe)), Progress("judge()", limit, "judge"), background)

    return ask


class Crowd:
    """Counts how many are inside at a time."""

    def __init__(self):
        self.inside = self.most = self.came = 0

    @contextmanager
    def member(self):
        self.came += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        yield
        self.inside -= 1


@pytest.mark.parametrize("at_once", [1, 16])
def test_a_judge_that_knows_everything_is_fit(at_once):
    async def ask(probe):
        return as_labelled(probe)

    found = calibrate(ask, shipped_probes(), at_once=at_once)
    assert (found.standing, found.n) == ("fit", 62)


def test_a_judge_that_waits_is_asked_several_times_at_once_and_no_more(background):
    crowd = Crowd()

    async def judge(probe):
        with crowd.member():
            # Whoever comes last ends first; so the order is not that of the probes.
            for _ in range(len(probe.id) % 7):
                await asyncio.sleep(0)
            return as_labelled(probe)

    in_order = calibrate(on_loop(background, judge), shipped_probes(), at_once=1)
    assert crowd.most == 1
    crowd.most = 0
    at_once = calibrate(on_loop(background, judge), shipped_probes(), at_once=5)
    assert 1 < crowd.most <= 5
    assert at_once == in_order
    assert at_once.fit


def test_what_raises_is_unscored_with_its_reason(background):
    async def judge(probe):
        if probe.kind == "empty":
            raise LLMError("the server is on fire")
        return as_labelled(probe)

    found = calibrate(on_loop(background, judge), shipped_probes(), at_once=16)
    assert (found.standing, found.unscored, found.silence) == ("unmeasured", 3, "the server is on fire")


def test_a_judge_without_any_verdict_is_not_asked_on_and_on():
    crowd = Crowd()

    async def ask(probe):
        with crowd.member():
            raise BackendError("no server", stage="judge")

    found = calibrate(ask, shipped_probes())
    assert crowd.came == GIVE_UP_AFTER
    assert (found.standing, found.unscored, found.silence) == ("unmeasured", 62, "no server")


def test_one_verdict_is_reason_enough_to_go_on():
    crowd = Crowd()

    async def ask(probe):
        with crowd.member():
            if crowd.came == GIVE_UP_AFTER:
                return as_labelled(probe)
            raise BackendError("no server", stage="judge")

    assert calibrate(ask, shipped_probes()).unscored == 61
    assert crowd.came == 62


def test_a_call_that_hangs_is_left_behind_and_the_others_count(background):
    probes = shipped_probes()[:6]

    async def judge(probe):
        if probe is probes[2]:
            await asyncio.Event().wait()
        return as_labelled(probe)

    def limited(probe):
        limit = -GRACE + 0.05 if probe is probes[2] else 20.0
        return on_loop(background, judge, limit)(probe)

    found = calibrate(limited, probes, at_once=3)
    assert (found.right.accepted, found.unscored) == (5, 1)
    assert found.silence.startswith("judge() did not come back within")


def test_a_judge_in_a_thread_of_its_own_that_hangs_is_left_behind_too(background):
    end = threading.Event()
    probes = shipped_probes()[:3]

    async def ask(probe):
        lane = Lane("judge")
        try:
            hangs = probe is probes[0]
            limit = 0.05 if hangs else 20.0
            call = (lambda: end.wait(20)) if hangs else (lambda: as_labelled(probe))
            return await Caller(lane, background).one("judge()", call, limit=limit, stage="judge")
        finally:
            lane.close()

    try:
        found = calibrate(ask, probes)
    finally:
        end.set()
    assert (found.right.accepted, found.unscored) == (2, 1)
    assert found.silence == "judge() did not come back within 0.05 s (--himga-timeout)"


def test_broken_off_it_leaves_nothing_running(background):
    cancelled = []
    probes = shipped_probes()[:4]

    async def judge(probe):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(probe.id)
            raise

    def ask(probe):
        if probe is probes[3]:
            raise KeyboardInterrupt
        return on_loop(background, judge)(probe)

    with pytest.raises(KeyboardInterrupt):
        calibrate(ask, probes, at_once=4)
    background.close()
    # Those that had not begun yet never did.
    assert set(cancelled) <= {probe.id for probe in probes[:3]}
