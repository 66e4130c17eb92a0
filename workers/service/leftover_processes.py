# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes of a service that outlived it: found by the home they were started with, and ended."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

from workers.service.place import ServicePlace
from workers.service.supervising import MARK

# Processes that the kernel signalled when supervisord ended need a moment.
GRACE_S = 10.0


def processes(place: ServicePlace) -> dict[int, str]:
    """Return the processes that were started as part of this service, by number, with their command."""
    mark = f"{MARK}={place.home}".encode()
    commands = {}
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal() or int(path.name) == os.getpid():
            continue
        with suppress(OSError):
            if mark in (path / "environ").read_bytes().split(b"\0"):
                command = (
                    (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                )
                if command:
                    commands[int(path.name)] = command[:120]
    return commands


def end_all(place: ServicePlace) -> list[str]:
    """Stop them, first with SIGTERM; returns their commands. Normally there are none."""
    end = monotonic() + GRACE_S
    seen: dict[int, str] = {}
    while now := processes(place):
        seen |= now
        harder = monotonic() > end
        for pid in now:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if harder else signal.SIGTERM)
        sleep(0.2)
    return list(seen.values())
