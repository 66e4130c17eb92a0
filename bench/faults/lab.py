# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole lab of its own on this machine, brought up as people bring up theirs, with a second host on a wire."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit, urlunsplit

from bench.faults.machine import Wire, WrongClock, make_clock, small_disk, wired

GROUP = "fakes"
FAR = "fake-far"
_START_S = 900


@dataclass(frozen=True, slots=True)
class Wishes:
    """Settings of the lab under test. boot_s: how long a fake boot takes; machine: with disks to fill and another host."""

    home: Path
    seed: int = 1
    targets: int = 2
    boot_s: float = 1.0
    lease_s: float = 5.0
    machine: bool = True


@dataclass
class FarHost:
    """A worker of one target on another host: other name, other network, other clock; started again when it ends."""

    wire: Wire
    clock: WrongClock
    environment: dict[str, str]
    log: Path
    _stopped: Event = field(default_factory=Event)
    _process: subprocess.Popen[bytes] | None = None
    _thread: Thread | None = None

    def start(self) -> None:
        """Start it, and keep it going."""
        self._thread = Thread(target=self._keep, name="far host", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it for good."""
        self._stopped.set()
        if self._process is not None:
            self._process.terminate()
        if self._thread is not None:
            self._thread.join(60)

    @property
    def pid(self) -> int:
        """The worker's process; 0 between two of them."""
        return self._process.pid if self._process is not None and self._process.poll() is None else 0

    def _keep(self) -> None:
        command = self.wire.command([sys.executable, "-m", "workers.labctl", "work", "--target", FAR])
        while not self._stopped.is_set():
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
            while self._process.poll() is None and not self._stopped.wait(0.1):
                pass
            if self._stopped.is_set():
                try:
                    self._process.wait(40)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
            else:
                self._stopped.wait(0.5)


@dataclass
class Lab:
    """A lab that is up. far: None where the machine cannot have one."""

    wishes: Wishes
    port: int
    # As it was before Django adopted the service's own: `up` would take its database for somebody else's.
    environment: dict[str, str] = field(default_factory=dict)
    far: FarHost | None = None

    @property
    def home(self) -> Path:
        """Its state root."""
        return self.wishes.home

    @property
    def targets(self) -> list[str]:
        """Its fake targets on this host."""
        return [f"fake-{number}" for number in range(1, self.wishes.targets + 1)]

    def service(self, *words: str) -> str:
        """Run a command of workers.service and return its output."""
        done = subprocess.run(
            [sys.executable, "-m", "workers.service.control", *words],
            capture_output=True,
            text=True,
            timeout=_START_S,
            env=self.environment,
        )
        if done.returncode:
            raise RuntimeError(
                f"{' '.join(words)} ended with {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
            )
        return done.stdout


@contextmanager
def running(wishes: Wishes, port: int) -> Iterator[Lab]:
    """The lab for a block. Sets this process's environment: Django is to be set up inside."""
    with ExitStack() as stack:
        lab = Lab(wishes, port)
        os.environ |= {
            "KPERFLAB_HOME": str(wishes.home),
            "KPERFLAB_LEASE_S": f"{wishes.lease_s:g}",
            "KPERFLAB_DISK_GIB": "1",
            "KPERFLAB_LOCAL_PATHS": "1",
        }
        wire = _machine(wishes, stack) if wishes.machine else None
        lab.environment |= os.environ
        stack.callback(_down, lab)
        lab.service("up", "--port", str(port))
        _make_targets(lab)
        lab.service("up", "--port", str(port))
        if wire is not None:
            lab.far = _far(lab, wire)
            lab.far.start()
            stack.callback(lab.far.stop)
        yield lab


def _machine(wishes: Wishes, stack: ExitStack) -> Wire:
    images = wishes.home.with_name(f"{wishes.home.name}-disks")
    stack.callback(images.rmdir)
    stack.enter_context(small_disk(images / "home", wishes.home, 12 << 10))
    stack.enter_context(small_disk(images / "service", wishes.home / "service", 4 << 10))
    wire = stack.enter_context(wired(f"kplfar{os.getpid() % 10000}", os.getpid() % 250))
    os.environ |= {
        "KPERFLAB_LISTEN": wire.server,
        "KPERFLAB_POSTGRES_PORT": "55432",
        "KPERFLAB_REDIS_PORT": "56379",
    }
    return wire


def _make_targets(lab: Lab) -> None:
    """Fake targets in place of what a new lab begins with."""
    import workers.app  # noqa: F401  Django is set up with the lab's environment
    from lab.models import Target

    Target.objects.exclude(driver="fake").update(enabled=False)
    names = [*lab.targets, *([FAR] if lab.wishes.machine else [])]
    for number, name in enumerate(names):
        access = {"seconds": lab.wishes.boot_s, "seed": lab.wishes.seed + number, "noise": 0.005}
        Target.objects.update_or_create(
            name=name, defaults={"driver": "fake", "access": access, "group": GROUP, "enabled": True}
        )


def _far(lab: Lab, wire: Wire) -> FarHost:
    kept = json.loads((lab.home / "service" / "environment.json").read_text())
    database, redis = urlsplit(kept["KPERFLAB_DATABASE"]), urlsplit(kept["KPERFLAB_REDIS"])
    clock = make_clock(lab.home / "far")
    login = database.netloc.rpartition("@")[0]
    environment = {
        **os.environ,
        **clock.environment,
        "KPERFLAB_DATABASE": urlunsplit(database._replace(netloc=f"{login}@{wire.server}:55432")),
        "KPERFLAB_REDIS": f"redis://{redis.netloc.rpartition('@')[0]}@{wire.server}:56379/0",
        "PYTHONUNBUFFERED": "1",
    }
    return FarHost(wire, clock, environment, lab.home / "far" / "worker.log")


def _down(lab: Lab) -> None:
    if "django.db" in sys.modules:
        sys.modules["django.db"].connections.close_all()
    for _ in range(3):
        try:
            lab.service("down")
        except (RuntimeError, subprocess.TimeoutExpired):
            time.sleep(2)
        else:
            return
    lab.service("down")
