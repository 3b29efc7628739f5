"""Where a backend's code runs: its threads, its loop, its limits and its exceptions."""

from __future__ import annotations

import asyncio
import gc
import queue
import signal
import threading
import time
import warnings

import pytest

from pytest_himga.engine.background import GRACE, Background, Caller, Handoff, Progress
from pytest_himga.errors import BackendError, BackendTimeout
from pytest_himga.lane import Lane

LIMIT = 0.2
#: Seconds. What is fast here takes a millisecond; a slow machine gets room.
AT_ONCE = 2.0


@pytest.fixture
def lane():
    made = Lane("test")
    yield made
    made.close()


@pytest.fixture
def call(lane, background):
    """Call a function as the engine would call a method, with a limit of 0.2 s."""
    caller = Caller(lane, background)

    def one(function, *, limit=LIMIT, stage="retrieve", on_loop=None):
        on_loop = asyncio.iscoroutinefunction(function) if on_loop is None else on_loop
        return background.run(caller.one("retrieve()", function, limit=limit, stage=stage, on_loop=on_loop))

    def many(functions, *, limit=LIMIT, on_loop=False):
        return background.run(
            caller.many("ingest()", functions, limit=limit, stage="ingest", on_loop=on_loop)
        )

    one.many = many
    return one


# -- where --------------------------------------------------------------------------------------


def test_sync_calls_run_in_one_thread_that_is_not_ours(call):
    idents = {call(threading.get_ident) for _ in range(5)} | set(call.many([threading.get_ident] * 3))
    assert len(idents) == 1
    assert threading.get_ident() not in idents


def test_async_calls_run_on_one_loop(call):
    async def where():
        return id(asyncio.get_running_loop()), threading.get_ident()

    assert len({call(where) for _ in range(5)}) == 1
    assert len(set(call.many([where] * 3, on_loop=True))) == 1


def test_two_memories_have_two_threads_and_share_the_loop(background):
    async def loop():
        return id(asyncio.get_running_loop())

    lanes = [Lane("one"), Lane("two")]
    callers = [Caller(lane, background) for lane in lanes]
    threads, loops = (
        [background.run(c.one("x()", f, limit=1, stage="ingest", on_loop=f is loop)) for c in callers]
        for f in (threading.get_ident, loop)
    )
    for lane in lanes:
        lane.close()
    assert len(set(threads)) == 2
    assert len(set(loops)) == 1


def test_a_sync_function_may_return_an_awaitable(call):
    async def late():
        await asyncio.sleep(0)
        return "late"

    assert call(lambda: late()) == "late"
    assert call.many([lambda: late(), lambda: "now", lambda: late()]) == ["late", "now", "late"]


def test_an_async_function_may_return_another_awaitable_only_as_it_is(call):
    """``await`` is done once: what an async function returns is its result."""

    async def outer():
        future = asyncio.get_running_loop().create_future()
        future.set_result("inner")
        return await future

    assert call(outer) == "inner"


def test_calls_keep_their_order(call):
    heard = []
    call.many([lambda n=n: heard.append(n) for n in range(50)])
    assert heard == list(range(50))


# -- limits -------------------------------------------------------------------------------------


def test_a_sync_call_that_hangs_is_left_behind_and_named(call):
    wake = threading.Event()
    started = time.monotonic()
    with pytest.raises(BackendTimeout) as caught:
        call(lambda: wake.wait(30))
    wake.set()
    assert str(caught.value) == "retrieve() did not come back within 0.2 s (--himga-timeout)"
    assert caught.value.stage == "retrieve"
    assert LIMIT * 0.9 <= time.monotonic() - started < AT_ONCE


def test_an_async_call_that_hangs_is_cancelled_and_named(call):
    ended = []

    async def hang():
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(True)

    started = time.monotonic()
    with pytest.raises(
        BackendTimeout, match=r"^retrieve\(\) did not come back within 0\.2 s \(--himga-timeout\)$"
    ):
        call(hang)
    assert ended == [True]
    assert time.monotonic() - started < AT_ONCE


def test_an_awaitable_of_a_sync_function_has_the_limit_too(call):
    with pytest.raises(BackendTimeout, match=r"^retrieve\(\) did not come back"):
        call(lambda: asyncio.sleep(30))


@pytest.mark.parametrize("kind", ["sync", "async", "sync returning an awaitable"])
def test_the_limit_is_for_each_call_and_not_for_all(call, kind):
    async def nap():
        await asyncio.sleep(0.2)

    functions = {
        "sync": lambda: time.sleep(0.2),
        "async": nap,
        "sync returning an awaitable": lambda: nap(),
    }
    assert call.many([functions[kind]] * 3, limit=0.5, on_loop=kind == "async") == [None] * 3


@pytest.mark.parametrize("on_loop", [False, True], ids=["sync", "async"])
def test_the_one_of_many_that_hangs_ends_them_all(call, on_loop):
    heard, wake = [], threading.Event()

    def hear(n):
        heard.append(n)

    def sync_hang():
        wake.wait(30)

    async def async_hear(n):
        heard.append(n)

    async def async_hang():
        await asyncio.sleep(30)

    if on_loop:
        functions = [lambda: async_hear(1), async_hang, lambda: async_hear(3)]
    else:
        functions = [lambda: hear(1), sync_hang, lambda: hear(3)]
    with pytest.raises(BackendTimeout, match=r"^ingest\(\) did not come back"):
        call.many(functions, on_loop=on_loop)
    wake.set()
    time.sleep(0.05)
    assert heard == [1], "what was given up must not go on being fed"


@pytest.mark.usefixtures("short_grace")
def test_an_async_function_that_blocks_the_loop_is_timed_out_and_the_next_loop_works(call):
    blocked = threading.Event()

    async def block():
        blocked.wait(30)

    async def where():
        return id(asyncio.get_running_loop())

    before = call(where)
    started = time.monotonic()
    with pytest.raises(BackendTimeout, match=r"^retrieve\(\) did not come back within 0\.2 s"):
        call(block)
    assert time.monotonic() - started < LIMIT + GRACE + AT_ONCE
    after = call(where)
    blocked.set()
    assert after != before


@pytest.mark.usefixtures("short_grace")
def test_a_call_that_blocks_another_loop_costs_that_loop_and_not_the_drivers_own(call, background):
    others, blocked = Background(), threading.Event()

    async def block():
        blocked.wait(30)

    async def where():
        return id(asyncio.get_running_loop())

    async def ask():
        await Handoff(others.submit(block()), Progress("the verdict", LIMIT, "judge"), others)

    before, loop = call(where), others.submit(where()).result(5)
    with pytest.raises(BackendTimeout, match=r"^the verdict did not come back within"):
        background.run(ask())
    assert call(where) == before
    assert others.submit(where()).result(5) != loop
    blocked.set()
    others.close()


@pytest.mark.usefixtures("short_grace")
def test_a_loop_that_a_backend_ends_gives_way_to_a_new_one(call, background):
    async def end_at_once():
        asyncio.get_running_loop().stop()

    async def end_soon():
        loop = asyncio.get_running_loop()
        loop.call_later(0.01, loop.stop)

    async def answer():
        return 42

    with pytest.raises(BackendTimeout):
        call(end_at_once)
    assert call(answer) == 42
    for _ in range(2):
        call(end_soon)
        background._thread.join(AT_ONCE)
        assert call(answer) == 42


@pytest.mark.usefixtures("short_grace")
def test_an_async_call_that_swallows_its_cancellation_is_timed_out_all_the_same(call):
    stop = []

    async def stubborn():
        while not stop:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue

    with pytest.raises(BackendTimeout, match=r"^retrieve\(\) did not come back"):
        call(stubborn)
    stop.append(True)


def test_an_async_call_that_turns_its_cancellation_into_another_error_is_timed_out(call):
    async def wrapped():
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise RuntimeError("request failed") from None

    with pytest.raises(BackendTimeout, match=r"^retrieve\(\) did not come back"):
        call(wrapped)


@pytest.mark.parametrize("on_loop", [False, True], ids=["sync", "async"])
def test_a_backends_own_timeout_error_is_its_own(call, on_loop):
    async def own():
        raise TimeoutError("the database is slow")

    def sync_own():
        raise TimeoutError("the database is slow")

    with pytest.raises(
        BackendError, match=r"^retrieve\(\) raised TimeoutError: the database is slow$"
    ) as caught:
        call(own if on_loop else sync_own)
    assert not isinstance(caught.value, BackendTimeout)


def test_a_limit_of_a_thousand_years_is_no_overflow(call):
    assert call(lambda: 1, limit=1e12) == 1
    slow = threading.Event()
    threading.Timer(0.1, slow.set).start()
    assert call(lambda: slow.wait(5), limit=1e12) is True

    async def quick():
        await asyncio.sleep(0.01)
        return 2

    assert call(quick, limit=1e12) == 2


# -- exceptions ---------------------------------------------------------------------------------


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Noted(Exception):
    pass


def noted() -> Noted:
    error = Noted("the real message")
    error.add_note("only a note")
    return error


ERRORS = [
    (lambda: ValueError("bad"), "ValueError: bad"),
    (lambda: ValueError("first\nsecond"), "ValueError: first"),
    (lambda: KeyError("user"), "KeyError: 'user'"),
    (lambda: SystemExit(3), "SystemExit: 3"),
    (lambda: KeyboardInterrupt(), "KeyboardInterrupt"),
    (lambda: asyncio.CancelledError("gone"), "asyncio.exceptions.CancelledError: gone"),
    (lambda: GeneratorExit(), "GeneratorExit"),
    (
        lambda: ExceptionGroup("two", [ValueError("a"), ValueError("b")]),
        "ExceptionGroup: two (2 sub-exceptions)",
    ),
    (lambda: queue.Empty(), "_queue.Empty"),
    (lambda: SyntaxError("odd"), "SyntaxError: odd"),
    (lambda: Unprintable(), f"{__name__}.Unprintable: <exception str() failed>"),
    (noted, f"{__name__}.Noted: the real message"),
    (lambda: pytest.skip.Exception("not today"), "Skipped: not today"),
]


@pytest.mark.parametrize(("make", "summary"), ERRORS, ids=[summary.split(":")[0] for _, summary in ERRORS])
@pytest.mark.parametrize("kind", ["sync", "async", "sync returning an awaitable"])
def test_whatever_a_backend_raises_is_a_backend_error_with_its_own_traceback(call, kind, make, summary):
    def deep_in_the_backend():
        raise make()

    def sync():
        return deep_in_the_backend()

    async def coroutine():
        await asyncio.sleep(0)
        deep_in_the_backend()

    def awaitable():
        return coroutine()

    function = {"sync": sync, "async": coroutine}.get(kind, awaitable)
    with pytest.raises(BackendError) as caught:
        call(function)
    assert str(caught.value) == f"retrieve() raised {summary}"
    assert caught.value.stage == "retrieve"
    assert frames(caught.value.details) == [__file__, __file__]
    assert "deep_in_the_backend" in caught.value.details
    # the loop and the lane still work
    assert call(lambda: "fine") == "fine"

    async def fine():
        return "fine"

    assert call(fine) == "fine"


def frames(details: str) -> list[str]:
    return [line.split('"')[1] for line in details.splitlines() if line.lstrip(" |").startswith('File "')]


def test_stop_iteration_of_a_sync_backend_is_named_as_it_is(call):
    def retrieve():
        return next(iter(()))

    with pytest.raises(BackendError) as caught:
        call(retrieve)
    assert str(caught.value) == "retrieve() raised StopIteration"
    assert frames(caught.value.details) == [__file__]


def test_stop_iteration_of_an_async_backend_is_what_python_makes_of_it(call):
    async def retrieve():
        return next(iter(()))

    with pytest.raises(
        BackendError, match=r"^retrieve\(\) raised RuntimeError: coroutine raised StopIteration$"
    ):
        call(retrieve)


def test_a_cause_is_told_too_and_still_without_our_frames(call):
    def retrieve():
        try:
            {}["key"]
        except KeyError as error:
            raise LookupError("no such user") from error

    with pytest.raises(BackendError) as caught:
        call(retrieve)
    assert "KeyError: 'key'" in caught.value.details
    assert "direct cause" in caught.value.details
    assert set(frames(caught.value.details)) == {__file__}


def test_a_call_with_the_wrong_arguments_has_no_frame_at_all(call):
    def retrieve(query, user):
        return query

    with pytest.raises(BackendError) as caught:
        call(retrieve)
    assert "missing 2 required positional arguments: 'query' and 'user'" in str(caught.value)
    assert frames(caught.value.details) == []


def test_a_task_that_cancels_itself_is_an_error_and_no_hang(call):
    async def retrieve():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    with pytest.raises(BackendError, match=r"^retrieve\(\) raised .*CancelledError"):
        call(retrieve)


def test_the_error_names_the_stage_that_was_asked_for(call):
    def boom():
        raise ValueError

    with pytest.raises(BackendError) as caught:
        call(boom, stage="judge")
    assert caught.value.stage == "judge"


def test_coroutines_after_the_one_that_raised_are_closed_and_not_forgotten(call):
    """Python would warn of a coroutine that was never awaited, in the middle of some later test."""

    async def ingest(n):
        if n == 1:
            raise ValueError("full")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(BackendError, match=r"^ingest\(\) raised ValueError: full$"):
            call.many([lambda n=n: ingest(n) for n in range(4)])
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


# -- interrupts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("on_loop", [False, True], ids=["sync", "async"])
def test_ctrl_c_while_a_backend_is_waited_for_is_at_once(call, on_loop):
    wake = threading.Event()

    async def hang():
        await asyncio.sleep(30)

    main = threading.main_thread().ident
    threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        call(hang if on_loop else lambda: wake.wait(30), limit=30)
    wake.set()
    assert time.monotonic() - started < AT_ONCE


# -- the end ------------------------------------------------------------------------------------


def test_no_thread_and_no_loop_is_left_after_close(no_thread_left):
    background, lane = Background(), Lane("closing")
    caller = Caller(lane, background)
    loops = []

    async def use():
        loops.append(asyncio.get_running_loop())
        await asyncio.to_thread(time.sleep, 0)  # starts the loop's own threads

    background.run(caller.one("use()", use, limit=5, stage="ingest", on_loop=True))
    background.run(caller.one("use()", lambda: None, limit=5, stage="ingest"))
    lane.close()
    background.close()
    assert loops[0].is_closed()


def test_closing_what_was_never_used_starts_nothing():
    before = threading.active_count()
    background = Background()
    background.close()
    background.close()
    assert threading.active_count() == before


def test_tasks_that_a_backend_left_running_are_cancelled_and_may_clean_up(caplog, no_thread_left):
    background, lane = Background(), Lane("tasks")
    cleaned, kept = [], []

    async def forever():
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)
            cleaned.append(True)

    async def start():
        kept.append(asyncio.create_task(forever()))
        await asyncio.sleep(0)

    background.run(Caller(lane, background).one("start()", start, limit=5, stage="ingest", on_loop=True))
    lane.close()
    background.close()
    kept.clear()
    gc.collect()
    assert cleaned == [True]
    assert caplog.text == ""


@pytest.mark.usefixtures("short_grace")
def test_a_loop_that_was_blocked_ends_when_it_is_free_again(no_thread_left):
    background, lane = Background(), Lane("blocked")
    blocked = threading.Event()

    async def block():
        blocked.wait(30)

    with pytest.raises(BackendTimeout):
        background.run(
            Caller(lane, background).one("block()", block, limit=LIMIT, stage="ingest", on_loop=True)
        )
    lane.close()
    background.close()
    blocked.set()


@pytest.mark.usefixtures("short_grace")
def test_a_stubborn_task_does_not_hold_the_end(no_thread_left):
    background, lane = Background(), Lane("stubborn")
    stop = []

    async def stubborn():
        while not stop:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    kept = []

    async def start():
        kept.append(asyncio.create_task(stubborn()))

    background.run(Caller(lane, background).one("start()", start, limit=5, stage="ingest", on_loop=True))
    lane.close()
    started = time.monotonic()
    background.close()
    assert time.monotonic() - started < 2 * AT_ONCE
    stop.append(True)


def test_the_lane_forgets_a_memory_when_its_call_is_over(background):
    import weakref

    class Memory:
        def ask(self):
            return 1

    memory, lane = Memory(), Lane("forgets")
    gone = weakref.ref(memory)
    assert background.run(Caller(lane, background).one("ask()", memory.ask, limit=5, stage="retrieve")) == 1
    del memory
    for _ in range(100):
        gc.collect()
        if gone() is None:
            break
        time.sleep(0.01)
    lane.close()
    assert gone() is None
