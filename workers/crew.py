# SPDX-License-Identifier: GPL-2.0-or-later
"""Several posts of one host under one command: a process each, started again when it ends, stopped together."""

import logging
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic, sleep

from lab.environment import for_own_processes

log = logging.getLogger(__name__)

_POLL_S = 0.2
# A process that ends at once is not started again and again without a pause.
AGAIN_S = 3.0
# A build or a guest that is stopped takes some seconds to end.
STOP_S = 30.0
MEMBER = (sys.executable, "-m", "workers.labctl", "work")


def run_crew(posts: Sequence[Sequence[str]], member: Sequence[str] = MEMBER) -> int:
    """Run a command with each of these options until SIGTERM or Ctrl-C; returns the exit code."""
    stopped: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: stopped.append(number))
    crew = {tuple(options): _start([*member, *options]) for options in posts}
    began = dict.fromkeys(crew, monotonic())
    while not stopped:
        sleep(_POLL_S)
        for options, process in crew.items():
            if process.poll() is not None and monotonic() - began[options] > AGAIN_S:
                log.warning("%s ended with %s and is started again", " ".join(options), process.returncode)
                crew[options], began[options] = _start([*member, *options]), monotonic()
    _stop(list(crew.values()))
    return 0


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a process that the kernel ends when we are gone, in a group of its own: we forward signals, the terminal does not."""
    return subprocess.Popen(
        ["setpriv", "--pdeathsig", "TERM", "--", *command], env=for_own_processes(), process_group=0
    )


def _stop(crew: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in crew:
        with suppress(ProcessLookupError):
            process.terminate()
    end = monotonic() + STOP_S
    for process in crew:
        try:
            process.wait(max(0.0, end - monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
