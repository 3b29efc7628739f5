"""The hooks, each handing over to a room. Without ``--himga-dataset`` there are options and fixtures only."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_himga.errors import HimgaError
from pytest_himga.fixtures import (  # pytest finds fixtures as attributes of the plugin
    himga_answer,
    himga_case,
    himga_context,
    himga_judge,
    himga_memory,
    himga_verdict,
)
from pytest_himga.options import add_options, wants_a_run
from pytest_himga.settings import read_settings
from pytest_himga.stash import CHANNEL, NEXT, RUN, USAGE_ERROR

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_himga.controller import Controller
    from pytest_himga.display import Display
    from pytest_himga.run import Run

__all__ = ["himga_answer", "himga_case", "himga_context", "himga_judge", "himga_memory", "himga_verdict"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and ini keys."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Start a run where one was asked for; whatever is wrong with it is said now."""
    config.addinivalue_line("markers", "himga: every item of a himga benchmark (added by pytest-himga)")
    if not wants_a_run(config.option) or config.option.help or config.option.version:
        return
    try:
        start(config)
    except HimgaError as error:
        if not hasattr(config, "workerinput"):
            raise pytest.UsageError(str(error)) from None
        config.pluginmanager.register(Refusal(error), "himga-refusal")


def refuse(session: pytest.Session, error: HimgaError) -> NoReturn:
    """End the run with a sentence. With ``-n`` this is a worker, and only the controller can do so."""
    getattr(session.config, "workeroutput", {})[USAGE_ERROR] = str(error)
    raise pytest.UsageError(str(error)) from None


class Refusal:
    """What a worker does that cannot start: were it to die at once, xdist would start it again and again."""

    def __init__(self, error: HimgaError) -> None:
        self._error = error

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """The first moment at which a worker can still tell the controller why it ends."""
        refuse(session, self._error)


def start(config: pytest.Config) -> None:
    """Read settings and data, and register the hooks of an active run."""
    from pytest_himga.collect import WANTED, take_arguments
    from pytest_himga.run import start_run

    shared = getattr(config, "workerinput", {}).get(CHANNEL)
    worker = getattr(config, "workerinput", {}).get("workerid", "main")
    run = start_run(read_settings(config), worker=worker, shared=shared)
    config.stash[RUN] = run
    config.stash[WANTED] = take_arguments(config, run)
    config.pluginmanager.register(ItemHooks(run), "himga-items")
    if run.backend_is_fixture:
        config.pluginmanager.register(BackendFixtureHook(run), "himga-backend-fixture")
    if worker == "main":
        _start_controller(config, run)


def _start_controller(config: pytest.Config, run: Run) -> None:
    from pytest_himga.collect import WANTED
    from pytest_himga.controller import Controller
    from pytest_himga.display import Display

    controller = Controller(run, builtin=config.stash[WANTED].builtin)
    display = Display(config, controller)
    if getattr(config.option, "dist", "no") != "no":
        from pytest_himga.xdist import ControllerHooks, check_dist

        display.note = check_dist(config)
        config.pluginmanager.register(ControllerHooks(run, controller, display), "himga-xdist")
    config.pluginmanager.register(RunHooks(controller, display), "himga-run")
    config.pluginmanager.register(SummaryHook(display), "himga-summary")


class ItemHooks:
    """Collecting and running items: on a worker, or in the one process."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def pytest_ignore_collect(self, config: pytest.Config) -> bool | None:
        """Where only our ids were named, no test file is imported."""
        from pytest_himga.collect import WANTED

        return True if config.stash[WANTED].only_ids else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Add the samples to what the session collected."""
        from pytest_himga.collect import add_samples

        report = yield
        if isinstance(collector, pytest.Session):
            add_samples(collector, report)
        return report

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a user's test once for each question."""
        from pytest_himga.collect import parametrize

        parametrize(metafunc, self._run)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Let plugins see the items in the order in which they run: ``--sw`` goes on at a place in it.

        Afterwards, check what only a running collection can tell.
        """
        from pytest_himga.collect import by_sample, check_fixture

        items[:] = by_sample(items, self._run)
        yield
        try:
            check_fixture(session, items, self._run)
        except HimgaError as error:
            refuse(session, error)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Bring each sample's items together, whatever reordered them, and tell the engine of them."""
        from pytest_himga.collect import by_sample
        from pytest_himga.items import asks, case_of

        session.items[:] = by_sample(session.items, self._run)
        cases = (case_of(item, self._run) for item in session.items if asks(item))
        self._run.selected = list(dict.fromkeys(case for case in cases if case is not None))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Only here pytest tells which item comes next: a sample's memory is closed after its last."""
        item.stash[NEXT] = nextitem

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Give a question's report its outcome and its record."""
        from pytest_himga.outcomes import finish_report

        report = yield
        finish_report(item, call, report)
        return report

    def pytest_unconfigure(self) -> None:
        """Close what is still open."""
        self._run.close()


class BackendFixtureHook:
    """Where the backend is a fixture: what came out of it is closed before it is torn down."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """After the fixture's own teardown was registered: the last to come is the first to go."""
        __tracebackhide__ = True
        from pytest_himga.items import release_all

        value = yield
        if fixturedef.argname == self._run.backend.name:
            fixturedef.addfinalizer(partial(release_all, self._run))
        return value


class RunHooks:
    """Adding up, gates and the summary: on the controller, or in the one process."""

    def __init__(self, controller: Controller, display: Display) -> None:
        self._controller = controller
        self._display = display

    def pytest_report_header(self) -> list[str]:
        """What will be measured."""
        return self._display.header()

    def pytest_sessionstart(self) -> None:
        """Before pytest's own header and before any worker is started: the judge's probe."""
        self._display.probe_judges()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """The items that will run here (with ``-n`` there are none: the workers tell theirs)."""
        self._controller.tally.expect(item.nodeid for item in session.items)
        if session.items:
            self._display.planned(case.id for case in self._controller.run.selected)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the record that a report carries."""
        self._controller.tally.take(report)

    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """Missed and unscored are outcomes of their own."""
        from pytest_himga.outcomes import status_of

        return status_of(report)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """After the last item of a run that was not stopped: the gates, as items of their own."""
        from pytest_himga.gate_items import run_gates

        result = yield
        run_gates(session, self._controller)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None, None, None]:
        """Before pytest's own sections: shorten them."""
        self._display.shorten(terminalreporter)
        yield

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
        """Write the results before, and have the last word on the exit status after everything else."""
        from pytest_himga.gate_items import decide, settle

        settle(session, self._controller)
        yield
        self._display.last_line(decide(session, self._controller, int(exitstatus)))


class SummaryHook:
    """Apart from ``RunHooks`` because one plugin cannot implement a hook twice."""

    def __init__(self, display: Display) -> None:
        self._display = display

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        """Inside pytest's own sections, which are shortened: put them back and print the numbers."""
        self._display.summary(terminalreporter, int(exitstatus))
