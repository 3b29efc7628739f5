"""The `himga` command ends as it should, whatever ends it, and no terminal is repainted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from chat_records import chat

from pytest_himga import __version__
from pytest_himga.cli import COMMANDS
from pytest_himga.commands.output import flat

#: What repaints a terminal, turns a line around, or no ascii terminal can show.
NASTY = "\x1b[31mred\x1b[0m \x9b2J \u202e\u2066 \n\r\u2028 \ud83d é 日本"


def test_the_command_is_installed_under_its_name() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    module, function = project["project"]["scripts"]["himga"].split(":")
    assert callable(getattr(import_module(module), function))


def test_it_tells_its_version_and_its_commands(himga) -> None:
    assert himga("--version").out == f"pytest-himga {__version__}\n"
    outcome = himga("--help")
    assert (outcome.status, outcome.err) == (0, "")
    for command in COMMANDS:
        # argparse puts the help of the longest name on a line of its own
        assert f" {command.name} {command.help}" in " ".join(outcome.out.split())


def test_looking_at_data_needs_neither_pytest_nor_a_socket(here: Path) -> None:
    code = (
        "import sys; from pytest_himga.cli import main; main(['data', 'check', 'demo']); main(['data', 'list']); "
        "sys.stderr.write(','.join({'pytest', 'httpx', 'socket', 'numpy'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_verb_has_the_options_that_it_uses(himga) -> None:
    options = {
        "list": {"--data-dir"},
        "fetch": {"--data-dir", "--offline", "--allow"},
        "path": {"--data-dir"},
        "info": {"--data-dir", "--allow", "--locomo-labels", "--full"},
        "check": {"--data-dir", "--allow", "--locomo-labels", "--session-order"},
    }
    for verb, expected in options.items():
        out = himga("data", verb, "--help").out
        assert {word.strip("[],") for word in out.split() if word.strip("[]").startswith("--")} - {
            "--help"
        } == expected


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["data"],
        ["dta"],
        ["data", "fetsch", "locomo"],
        ["data", "fetch"],
        ["data", "info"],
        ["data", "info", "a", "b"],
        ["data", "list", "--offline"],
        ["data", "check", "locomo", "--session-order", "random"],
        ["data", "check", "locomo", "--allow=everything"],
        ["data", "check", "locomo", "--ful"],
    ],
)
def test_a_wrong_command_line_is_usage(arguments: list[str], himga) -> None:
    outcome = himga(*arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("usage: himga")


@pytest.mark.parametrize(
    ("variable", "value", "arguments"),
    [
        ("HIMGA_OFFLINE", "perhaps", ["fetch", "locomo"]),
        ("HIMGA_ALLOW", "everything", ["check", "demo-locomo"]),
        ("HIMGA_SESSION_ORDER", "random", ["check", "demo-locomo"]),
        ("HIMGA_LOCOMO_LABELS", "mine", ["info", "demo-locomo"]),
        ("HIMGA_DATA_MIRROR", "gopher://old", ["fetch", "locomo"]),
    ],
)
def test_a_wrong_environment_is_usage(variable: str, value: str, arguments, himga, monkeypatch) -> None:
    monkeypatch.setenv(variable, value)
    outcome = himga("data", *arguments)
    assert outcome.status == 2
    error = outcome.err.splitlines()[-1]
    assert error.startswith("himga: ")
    assert variable in error
    assert value in error


def test_broken_off_it_ends_without_a_traceback(himga, monkeypatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_himga.commands.data_finding.listed", interrupt)
    outcome = himga("data", "list")
    assert (outcome.status, outcome.err) == (130, "himga: interrupted\n")


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT to send")
def test_broken_off_in_a_download_it_keeps_what_is_there(start, web, cache: Path) -> None:
    asked, end = threading.Event(), threading.Event()

    def stop_half_way(handler) -> None:
        handler.answer(200, b"[" * 5000, Content_Length="2805274", ETag='"one"')
        handler.wfile.flush()
        asked.set()
        end.wait(20)

    web.script = [stop_half_way]
    process = start("data", "fetch", "locomo")
    try:
        assert asked.wait(20)
        part = cache / "locomo10.json.part"
        while not (part.is_file() and part.stat().st_size):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        end.set()
        process.kill()
    assert (process.returncode, out) == (130, b"")
    assert err.endswith(b"himga: interrupted\n")
    assert b"Traceback" not in err
    assert part.is_file()


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments", [["--help"], ["data", "list"], ["data", "info", "demo"], ["data", "path", "demo"]]
)
def test_a_reader_that_goes_away_is_no_news(
    arguments: list[str], unbuffered: str, start, monkeypatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    process = start(*arguments)
    process.stdout.close()
    _, err = process.communicate(timeout=20)
    assert err == b""
    # argparse does not say that it could not print its help
    assert process.returncode == 141 or arguments == ["--help"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_one_sentence(start) -> None:
    with Path("/dev/full").open("wb") as full:
        process = start("data", "list", stdout=full)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert err.startswith(b"himga: cannot go on: ")
    assert err.count(b"\n") == 1


def test_closed_streams_are_no_reason_to_fail(here: Path) -> None:
    line = f"{sys.executable} -m pytest_himga.cli data list >&- 2>&-"
    assert subprocess.run(["/bin/sh", "-c", line], check=False, timeout=20).returncode == 0


# -- text of strangers -------------------------------------------------------------------------------


def test_hostile_text_is_escaped_on_a_terminal_that_knows_ascii_only(write, start, monkeypatch) -> None:
    record = chat() | {"sample_id": f"s {NASTY}"}
    record["qa"][1]["evidence"] = [NASTY]
    path = write("chät \x1b[2J.json", record)
    monkeypatch.setenv("PYTHONIOENCODING", "ascii:strict")
    for verb in ("info", "check"):
        process = start("data", verb, path)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (0, b"")
        assert set(out) <= {*range(0x20, 0x7F), 0x0A}
        assert b"3 x qa[N].evidence[N]: ... names no turn" in out
    process = start("data", "check", path.with_name(f"{NASTY.replace(chr(0xD83D), '')}.json"))
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err.count(b"\n")) == (1, b"", 1)
    assert set(err) <= {*range(0x20, 0x7F), 0x0A}


def test_a_line_stays_one_line() -> None:
    assert flat("a\tb\r\nc\x1bd") == "a\\tb\\nc\\x1bd"
