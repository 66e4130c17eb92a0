# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole lab of its own on this machine, brought up as people bring up theirs, with a second host on a wire."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.db import connections

from bench.faults.machine import (
    Lies,
    Wire,
    address_in_use,
    kill,
    make_lies,
    remove_disk,
    remove_wire,
    server_of,
    small_disk,
    wired,
)
from bench.faults.store import StoreStandIn
from workers.service.leftover_processes import end_all, processes
from workers.service.place import ServicePlace
from workers.service.supervising import MARK

GROUP = "fakes"
FAR = "fake-far"
# The target whose guests are real, under libvirt: the one that every new lab has.
GUEST = "guest"
_START_S = 900


@dataclass(frozen=True, slots=True)
class LabSetup:
    """Settings of the lab under test. boot_s: how long a fake boot takes; machine: with disks to fill and another host.

    kernel: the artifact of a real kernel that guests under libvirt boot; without it there are none.
    """

    home: Path
    seed: int = 1
    targets: int = 2
    boot_s: float = 1.0
    lease_s: float = 5.0
    machine: bool = True
    kernel: Path | None = None


@dataclass
class FarHost:
    """A worker of one target on another host: other name, other network, a clock and a disk that may be wrong; started again when it ends."""

    wire: Wire
    lies: Lies
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
    """A lab that is up. far: None where the machine cannot have one. unable: by need of a fault, why it cannot be met here."""

    setup: LabSetup
    port: int
    # As it was before Django adopted the service's own: `up` would take its database for somebody else's.
    environment: dict[str, str] = field(default_factory=dict)
    far: FarHost | None = None
    unable: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """Its state root."""
        return self.setup.home

    @property
    def targets(self) -> list[str]:
        """Its fake targets on this host."""
        return [f"fake-{number}" for number in range(1, self.setup.targets + 1)]

    @property
    def store(self) -> StoreStandIn:
        """Its store, which can be made to answer badly."""
        return StoreStandIn(self.home / "store")

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
def running(setup: LabSetup, port: int) -> Iterator[Lab]:
    """The lab for a block. Sets this process's environment: set Django up inside."""
    with ExitStack() as stack:
        lab = Lab(setup, port)
        _adopt(setup)
        # The far host's target is its own.
        os.environ["KPERFLAB_TARGETS"] = ",".join([*lab.targets, *([GUEST] if setup.kernel else [])])
        wire = _machine(setup, stack) if setup.machine else None
        stack.callback(lab.store.stop)
        lab.store.start(wire.server if wire else "127.0.0.1")
        os.environ |= lab.store.variables
        lab.environment |= os.environ
        stack.callback(take_down, lab)
        lab.service("stores", "--port", str(port))
        _make_targets(lab)
        bring_up(lab)
        if wire is not None:
            lab.far = _far(lab, wire)
            lab.far.start()
            stack.callback(lab.far.stop)
        yield lab


@contextmanager
def left_behind(setup: LabSetup, port: int) -> Iterator[Lab]:
    """The lab of a piece that was cut short, brought up once more without its second host, and removed at the end.

    Sets this process's environment, as `running` does.
    """
    lab = Lab(setup, port)
    _adopt(setup)
    os.environ |= lab.store.variables
    lab.environment |= os.environ
    for pid, command in processes(ServicePlace(setup.home)).items():
        if FAR in command:  # nobody starts it again
            kill(pid)
    try:
        bring_up(lab)
        import workers.app  # noqa: F401  Django is set up with the lab's environment

        yield lab
    finally:
        take_down(lab)
        lab.store.stop()
        remove(setup.home)


def fresh_places(count: int) -> list[tuple[Path, int]]:
    """Make so many state roots whose labs can be up side by side; returns each with a port for its pages."""
    places: dict[str, Path] = {}
    while len(places) < count:
        home = Path(tempfile.mkdtemp(prefix="kperflab-faults-", dir="/var/tmp"))
        server = server_of(wire_of(home)[1])
        if server in places or address_in_use(server):
            home.rmdir()
            continue
        # PostgreSQL's user passes through.
        home.chmod(0o755)
        places[server] = home
    return list(zip(places.values(), free_ports(count), strict=True))


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback address that nobody uses now."""
    with ExitStack() as stack:
        # All at once, or two may be the same.
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [int(listener.getsockname()[1]) for listener in sockets]


def remove(home: Path) -> None:
    """Remove what a lab's machine left: processes, disks, cable and state root."""
    end_all(ServicePlace(home))
    StoreStandIn(home / "store").stop()
    name, _ = wire_of(home)
    remove_wire(name)
    images = _images(home)
    remove_disk(images / "service", home / "service")
    remove_disk(images / "home", home)
    shutil.rmtree(images, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)


def bring_up(lab: Lab) -> None:
    """Bring all of it up; on a busy machine the pages may take longer than `up` waits for them."""
    for left in (2, 1, 0):
        try:
            lab.service("up", "--port", str(lab.port))
        except RuntimeError as exc:
            if not left or "the pages do not answer" not in str(exc):
                raise
        else:
            return


def _adopt(setup: LabSetup) -> None:
    os.environ |= {
        "KPERFLAB_HOME": str(setup.home),
        "KPERFLAB_LEASE_S": f"{setup.lease_s:g}",
        "KPERFLAB_DISK_GIB": "1",
        "KPERFLAB_LOCAL_PATHS": "1",
    }


def _images(home: Path) -> Path:
    return home.with_name(f"{home.name}-disks")


def wire_of(home: Path) -> tuple[str, int]:
    """Return the name and the number of the cable of a lab: the same for every process that asks."""
    number = zlib.crc32(bytes(home))
    return f"kplfar{number % 10000}", number % 250


def _machine(setup: LabSetup, stack: ExitStack) -> Wire:
    images = _images(setup.home)
    stack.callback(images.rmdir)
    stack.enter_context(small_disk(images / "home", setup.home, 12 << 10))
    stack.enter_context(small_disk(images / "service", setup.home / "service", 4 << 10))
    wire = stack.enter_context(wired(*wire_of(setup.home)))
    os.environ |= {
        "KPERFLAB_LISTEN": wire.server,
        "KPERFLAB_POSTGRES_PORT": "55432",
        "KPERFLAB_REDIS_PORT": "56379",
    }
    return wire


def _make_targets(lab: Lab) -> None:
    """Fake targets, beside the one with guests that a new lab begins with, if there is a kernel for it."""
    import workers.app  # noqa: F401  Django is set up with the lab's environment
    from lab.models import Target

    Target.objects.exclude(driver="fake").update(enabled=lab.setup.kernel is not None)
    names = [*lab.targets, *([FAR] if lab.setup.machine else [])]
    for number, name in enumerate(names):
        access = {"seconds": lab.setup.boot_s, "seed": lab.setup.seed + number, "noise": 0.005}
        Target.objects.update_or_create(
            name=name, defaults={"driver": "fake", "access": access, "group": GROUP, "enabled": True}
        )


def _far(lab: Lab, wire: Wire) -> FarHost:
    kept = json.loads((lab.home / "service" / "environment.json").read_text())
    database, redis = urlsplit(kept["KPERFLAB_DATABASE"]), urlsplit(kept["KPERFLAB_REDIS"])
    lies = make_lies(lab.home / "far")
    login = database.netloc.rpartition("@")[0]
    environment = {
        **os.environ,
        **lies.environment,
        "KPERFLAB_DATABASE": urlunsplit(
            # The cable is ours alone: nobody shows a certificate on it.
            database._replace(netloc=f"{login}@{wire.server}:55432", query="sslmode=disable")
        ),
        "KPERFLAB_REDIS": f"redis://{redis.netloc.rpartition('@')[0]}@{wire.server}:56379/0",
        "PYTHONUNBUFFERED": "1",
        # So that it is ended with the service, should this process be killed.
        MARK: str(lab.home),
    }
    return FarHost(wire, lies, environment, lab.home / "far" / "worker.log")


def take_down(lab: Lab) -> None:
    """Stop all of it."""
    if settings.configured:
        connections.close_all()
    for _ in range(3):
        try:
            lab.service("down")
        except (RuntimeError, subprocess.TimeoutExpired):
            time.sleep(2)
        else:
            return
    lab.service("down")
