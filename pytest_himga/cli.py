"""The ``himga`` command: what can be done with datasets and results without running pytest.

Exit status: 0 fine; 1 something is broken, missing or not what it should be; 2 a command line or an
environment that cannot be used; 6 a judge that could not be measured; 130 broken off with Ctrl-C; 141 the
reader of the output went away. Every error is one sentence on stderr.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from pytest_himga.errors import HimgaError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

FAILED, MISUSED = 1, 2
#: What a shell reports of a program that SIGINT or SIGPIPE ended.
INTERRUPTED, CLOSED_PIPE = 130, 141


@dataclass(frozen=True)
class Command:
    """One word behind ``himga``.

    ``module`` has ``configure(parser)``, which adds the command's arguments and sets ``run`` to a function
    that takes the parsed arguments and returns the exit status. It must be cheap to import.
    """

    name: str
    help: str
    module: str


COMMANDS = (
    Command("data", "find, fetch, describe and check datasets", "pytest_himga.commands.data"),
    Command(
        "calibrate",
        "try a judge on answers that are known to be right or wrong",
        "pytest_himga.commands.calibrate",
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: that of the process) and return the exit status."""
    try:
        return _outcome(argv)
    except KeyboardInterrupt:
        with suppress(OSError):
            _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _silence()
        return CLOSED_PIPE


def _outcome(argv: Sequence[str] | None) -> int:
    try:
        arguments = _parser().parse_args(argv)
        status: int = arguments.run(arguments)
    except SystemExit as stop:  # argparse has said what it had to say
        status = stop.code if isinstance(stop.code, int) else MISUSED
    except HimgaError as error:
        _complain(str(error))
        status = MISUSED if isinstance(error, SettingsError) else FAILED
    except BrokenPipeError:
        raise
    except OSError as error:  # the disk that stdout goes to is full, ...
        _complain(f"cannot go on: {error}")
        status = FAILED
    if sys.stdout is not None:
        sys.stdout.flush()
    return status


def _parser() -> argparse.ArgumentParser:
    from pytest_himga import __version__

    parser = argparse.ArgumentParser(
        prog="himga",
        description="Memory benchmarks beside pytest: see also pytest --help.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pytest-himga {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for command in COMMANDS:
        one = commands.add_parser(
            command.name, help=command.help, description=f"{command.help}.".capitalize(), allow_abbrev=False
        )
        import_module(command.module).configure(one)
    return parser


def _complain(text: str) -> None:
    from pytest_himga.commands.output import complain

    complain(text)


def _silence() -> None:
    """Send what is still buffered nowhere: at its exit Python would flush it, and say that it could not."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
