# SPDX-License-Identifier: GPL-2.0-or-later
"""The one process above all others: supervisord, started, asked and stopped."""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import Faults, SupervisorTransport

from kernels.processes.stats import read_process
from workers.errors import ServiceDown, ServiceFailed
from workers.service.place import ROOT, ServicePlace

# This variable in its environment marks a process as part of a home's service.
MARK = "KPERFLAB_SERVICE"
START_S, STOP_S = 20.0, 90.0
# What a program needs that it does not read from the home: where things are, and the language of messages.
PASSED = (
    *("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR", "SSL_CERT_FILE"),
    "PYTHONDONTWRITEBYTECODE",
)


@dataclass(frozen=True, slots=True)
class State:
    """The state of one program: RUNNING, STARTING, BACKOFF, STOPPED, …; pid is 0 where there is none."""

    name: str
    state: str
    pid: int
    seconds: int
    detail: str


class Supervisor:
    """The supervisord of a place."""

    def __init__(self, place: ServicePlace) -> None:
        self._place = place

    def start(self) -> None:
        """Start it, or make it read its configuration again. Raises ServiceFailed."""
        if self.alive():
            self.apply()
            return
        command = [str(Path(sys.executable).with_name("supervisord")), "-c", str(self._place.configuration)]
        done = subprocess.run(command, env=environment(self._place), capture_output=True, text=True, cwd=ROOT)
        end = monotonic() + START_S
        while done.returncode == 0 and monotonic() < end:
            if self.alive():
                return
            sleep(0.1)
        raise ServiceFailed("supervisord does not start", (done.stdout + done.stderr)[-2000:])

    def alive(self) -> bool:
        """Return whether it answers."""
        try:
            return bool(self._ask("getState")["statename"] == "RUNNING")
        except ServiceDown:
            return False

    def states(self) -> list[State]:
        """Return the state of every program. Raises ServiceDown."""
        return [
            State(
                str(process["name"]),
                str(process["statename"]),
                int(process["pid"]),
                max(0, int(process["now"]) - int(process["start"])) if process["pid"] else 0,
                str(process["spawnerr"] or process["description"]),
            )
            for process in self._ask("getAllProcessInfo")
        ]

    def begin(self, names: Iterable[str]) -> None:
        """Start programs that do not run. Raises ServiceDown."""
        for name in names:
            self._tolerating(Faults.ALREADY_STARTED, "startProcess", name, False)

    def end(self, names: Iterable[str]) -> None:
        """Stop programs, all at once, and wait for it. Raises ServiceDown, ServiceFailed."""
        wanted = set(names)
        for name in wanted:
            self._tolerating(Faults.NOT_RUNNING, "stopProcess", name, False)
        end = monotonic() + STOP_S
        while left := [program.name for program in self.states() if program.name in wanted and program.pid]:
            if monotonic() > end:
                raise ServiceFailed(f"{', '.join(left)} cannot be stopped; see {self._place.logs}")
            sleep(0.1)

    def shut_down(self) -> None:
        """Stop everything, itself last. Raises ServiceFailed when it does not end."""
        pid = int(self._ask("getPID"))
        self._ask("shutdown")
        end = monotonic() + STOP_S
        while (process := read_process(pid)) and process.state != "Z":
            if monotonic() > end:
                raise ServiceFailed(f"supervisord (process {pid}) does not end; see {self._place.logs}")
            sleep(0.1)

    def apply(self) -> None:
        """Read the configuration: stop the programs that it no longer names, and add new or changed ones without starting them."""
        added, changed, removed = self._ask("reloadConfig")[0]
        for group in [*changed, *removed]:
            self._ask("stopProcessGroup", group)
            self._ask("removeProcessGroup", group)
        for group in [*added, *changed]:
            self._ask("addProcessGroup", group)

    def _call(self, method: str, *arguments: Any) -> Any:
        # A connection for each call: the library does not repair one that failed.
        transport = SupervisorTransport(None, None, f"unix://{self._place.sockets / 'supervisor.sock'}")
        with ServerProxy("http://127.0.0.1", transport=transport) as proxy:
            return getattr(proxy.supervisor, method)(*arguments)

    def _tolerating(self, code: int, method: str, *arguments: Any) -> None:
        try:
            self._call(method, *arguments)
        except Fault as exc:
            if exc.faultCode != code:
                raise ServiceFailed(
                    f"supervisord, asked to {method} {arguments[0]}: {exc.faultString}"
                ) from exc
        except (OSError, HTTPException) as exc:
            raise ServiceDown("the service is not up; start it: make up") from exc

    def _ask(self, method: str, *arguments: Any) -> Any:
        try:
            return self._call(method, *arguments)
        except Fault as exc:
            raise ServiceFailed(f"supervisord, asked to {method}: {exc.faultString}") from exc
        except (OSError, HTTPException) as exc:
            raise ServiceDown("the service is not up; start it: make up") from exc


def environment(place: ServicePlace) -> Mapping[str, str]:
    """Return the environment of programs: of the lab's variables only its home, whose environment.json has the rest."""
    kept = {name: os.environ[name] for name in PASSED if name in os.environ}
    mine = {
        "KPERFLAB_HOME": str(place.home),
        MARK: str(place.home),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }
    return kept | mine
