# SPDX-License-Identifier: GPL-2.0-or-later
"""Keep tests that start processes out of `make check`; loaded by `-p`.

A test that uses a fixture of PROCESS_FIXTURES is marked `process` here. Every other test that starts a process and
is not marked fails, so the fast loop stays fast.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Generator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

# Fixtures that run git, make or a compiler: when they are shared, only the first test that uses them is seen to start one.
PROCESS_FIXTURES = {
    "builder",
    "describe",
    "fake_lab",
    "pretend",
    "pretend_kernel",
    "repository",
    "tree",
    "trees",
}
# Tests with these marks are run on their own.
APART = {"api", "browser", "campaign", "containers", "faults", "process", "provision", "real", "service"}
# Python's own ctypes and platform modules ask for two of these once in each process; the reader of guests' files is
# started once, by whichever test reads first.
_READER = "kernels.sandbox.reader_server"
_HARMLESS = {"ldconfig", "uname", _READER}
_started: list[str] = []


def _note_starts() -> None:
    """Wrap what starts processes. An audit hook would be called for every import, open file and `id()`, too."""
    for name in ("fork", "posix_spawn", "system"):
        setattr(os, name, _noting(name, getattr(os, name)))
    subprocess.Popen.__init__ = _noting_program(subprocess.Popen.__init__)  # type: ignore[method-assign]


def _noting(name: str, start: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(start)
    def noted(*arguments: Any, **named: Any) -> Any:
        _started.append(f"os.{name}")
        return start(*arguments, **named)

    return noted


def _noting_program(start: Callable[..., None]) -> Callable[..., None]:
    @wraps(start)
    def noted(self: Any, args: Any, *rest: Any, **named: Any) -> None:
        _started.append(_program(args))
        start(self, args, *rest, **named)

    return noted


def _program(command: Any) -> str:
    words = command.split() if isinstance(command, str | bytes) else command
    named = Path(os.fsdecode(words[0])).name
    return _READER if _READER in words else named


_note_starts()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, before `-m` selects."""
    for item in items:
        if PROCESS_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("process")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let xdist report of a test that passes the call alone, not its set-up and teardown too: one process reads them all."""
    for listener in session.config.hook.pytest_runtest_logreport.get_hookimpls():
        if type(listener.plugin).__name__ == "WorkerInteractor":
            listener.function = _telling(listener.function)  # type: ignore[misc]  # pluggy calls what stands there


def _telling(send: Callable[..., object]) -> Callable[..., object]:
    return lambda report: None if report.passed and report.when != "call" else send(report)


def pytest_runtest_logstart() -> None:
    """Forget what earlier tests started."""
    _started.clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Fail a test that started a process and is not marked."""
    report = (yield).get_result()
    if report.passed:
        # xdist would send them for each test, without a reader.
        report.keywords = {}
    unexpected = sorted(set(_started) - _HARMLESS)
    if report.when == "call" and report.passed and unexpected and not _is_apart(item):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} starts {', '.join(unexpected)} and is not marked `process`"


def _is_apart(item: pytest.Item) -> bool:
    return any(mark.name in APART for mark in item.iter_markers())
