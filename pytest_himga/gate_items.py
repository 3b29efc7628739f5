"""The gate item of each dataset, and the end of the run: exit status and files.

A gate is a report of its own, ``himga/<dataset>::gate``, sent on the controller after the last item; so
pytest's own logic makes the run fail, prints it, and puts it into JUnit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_himga.describe import failure_repr
from pytest_himga.options import only_lists
from pytest_himga.results import write_results, write_run

if TYPE_CHECKING:
    from pytest_himga.controller import Controller, GateItem


def run_gates(session: pytest.Session, controller: Controller) -> None:
    """Settle a run that came to its end, and report its gates."""
    if only_lists(session.config.option) or not session.testscollected:
        return
    controller.settle(complete=True)
    for gate in controller.gate_items:
        _report(session, controller, gate)


def _report(session: pytest.Session, controller: Controller, gate: GateItem) -> None:
    hook, location = session.config.hook, (gate.nodeid.split("::", 1)[0], None, gate.nodeid)
    passed = gate.status == "passed"
    report = pytest.TestReport(
        nodeid=gate.nodeid,
        location=location,
        keywords={"himga": 1},
        outcome="passed" if passed else "failed",
        longrepr=None if passed else failure_repr(gate.text, gate.nodeid.split("::", 1)[0]),
        when="call",
        duration=0.0,
    )
    if gate.status == "unmeasured":
        controller.tally.gate_failed_unmeasured()
        report.himga = {"outcome": "unscored"}  # type: ignore[attr-defined] # an extra attribute, as on a question's report
    # Else the progress would come to more than 100 %.
    session.testscollected += 1
    teardown = pytest.TestReport(
        nodeid=gate.nodeid, location=location, keywords={}, outcome="passed", longrepr=None, when="teardown"
    )
    hook.pytest_runtest_logstart(nodeid=gate.nodeid, location=location)
    hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logreport(report=teardown)
    hook.pytest_runtest_logfinish(nodeid=gate.nodeid, location=location)


def settle(session: pytest.Session, controller: Controller) -> None:
    """Before the summary: account for a run that was stopped, and write the results."""
    if session.exitstatus == pytest.ExitCode.USAGE_ERROR:
        controller.refuse()
    if not only_lists(session.config.option):
        controller.settle(complete=False)
        write_results(controller)


def decide(session: pytest.Session, controller: Controller, status_before: int) -> str:
    """After all other plugins: set the exit status; the last line, "" if there is nothing to explain.

    Some plugins combine their own status with pytest's (syrupy: bit by bit), so ours must come last.
    ``status_before`` is what pytest itself had decided; a change since then is another plugin's failure.
    """
    if only_lists(session.config.option):
        return ""
    status = int(session.exitstatus)
    proven_elsewhere = status == 1 and status_before == 0
    status, line = controller.exit_status(status, session.testsfailed, proven_elsewhere=proven_elsewhere)
    session.exitstatus = status
    write_run(controller, status)
    return line
