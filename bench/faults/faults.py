# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults for a lab: each is a context manager that strikes, lasts beyond its block, and is repaired at its end."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

from bench.faults.lab import FAR, Lab
from bench.faults.machine import descendants, filled, kill
from bench.faults.stages import Moment, Stage, look
from lab.models import Target
from workers.service.place import ServicePlace
from workers.service.supervising import Supervisor


@dataclass(frozen=True, slots=True)
class Blow:
    """One strike against a lab. victims: processes that are gone or cut off, by their number; lasts_s: until it is mended."""

    lab: Lab
    moment: Moment
    draw: random.Random
    victims: set[int]


Fault = Callable[[Blow], AbstractContextManager[None]]


def pid_of(lab: Lab, program: str) -> int:
    """The process of one of the service's programs; 0 while there is none."""
    return next(
        (state.pid for state in Supervisor(ServicePlace(lab.home)).states() if state.name == program), 0
    )


def _holder(blow: Blow, program: str) -> int:
    """Whoever holds the work that was aimed at, else the program itself."""
    work = blow.moment.work
    kind = "build" if program == "builds" else "run" if program.startswith("target") else ""
    if work is not None and work.kind == kind:
        return int(work.holder.rsplit(":", 2)[1])
    return pid_of(blow.lab, program)


def killed(program: str) -> Fault:
    """kill -9 of a program of the service."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        name = blow.draw.choice(blow.lab.targets) if program == "target" else program
        pid = _holder(blow, f"target-{name}" if program == "target" else name)
        blow.victims.add(pid)
        kill(pid)
        yield

    return fault


def frozen(program: str) -> Fault:
    """A program that stands still for longer than its lease, and then goes on as if nothing had been."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        name = blow.draw.choice(blow.lab.targets) if program == "target" else program
        pid = _holder(blow, f"target-{name}" if program == "target" else name)
        blow.victims.add(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
            time.sleep(blow.lab.wishes.lease_s * blow.draw.uniform(1.3, 2.0))
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    return fault


@contextmanager
def make_killed(blow: Blow) -> Iterator[None]:
    """kill -9 of the builder's make, or of whatever else the build has started by then."""
    below = descendants(pid_of(blow.lab, "builds"))
    makes = [pid for pid, name in below.items() if name == "make"] or list(below)
    if makes:
        kill(blow.draw.choice(makes))
    yield


def restarted(program: str) -> Fault:
    """A program of the service is stopped in good order and started again."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        supervisor = Supervisor(ServicePlace(blow.lab.home))
        supervisor.end([program])
        try:
            yield
            time.sleep(blow.draw.uniform(0.0, 2.0))
        finally:
            supervisor.begin([program])

    return fault


@contextmanager
def redis_flushed(blow: Blow) -> Iterator[None]:
    """All of Redis is gone: the wake-ups and the cache."""
    from django.conf import settings
    from redis import Redis

    with Redis.from_url(settings.REDIS) as client:
        client.flushall()
    yield


@contextmanager
def postmaster_killed(blow: Blow) -> Iterator[None]:
    """kill -9 of PostgreSQL's first process: it recovers from its journal."""
    below = pid_of(blow.lab, "postgres")
    kill(below)
    yield


def disk_full(folder: str) -> Fault:
    """No room where the objects and artifacts are, or where the database is."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        with filled(blow.lab.home / folder):
            yield
            time.sleep(blow.draw.uniform(0.5, 3.0))

    return fault


def clock_stepped(hours: float) -> Fault:
    """The far host's wall clock is wrong at once, and right again later."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        far = blow.lab.far
        assert far is not None
        far.clock.step(hours * 3600)
        try:
            yield
            time.sleep(blow.draw.uniform(1.0, 2 * blow.lab.wishes.lease_s))
        finally:
            far.clock.step(0)

    return fault


def wire_cut(leases: float) -> Fault:
    """The far host is cut off for so many lease periods."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        far = blow.lab.far
        assert far is not None
        blow.victims.add(far.pid)
        far.wire.cut()
        try:
            yield
            time.sleep(leases * blow.lab.wishes.lease_s)
        finally:
            far.wire.mend()

    return fault


@contextmanager
def far_killed(blow: Blow) -> Iterator[None]:
    """kill -9 of the worker on the other host: its lease alone tells."""
    far = blow.lab.far
    assert far is not None
    blow.victims.add(far.pid)
    kill(far.pid)
    yield


def guests(behaviour: str) -> Fault:
    """Every guest of one target behaves so for a while."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        name = blow.draw.choice(blow.lab.targets)
        row = Target.objects.get(name=name)
        Target.objects.filter(pk=row.pk).update(access=row.access | {"behaviour": behaviour})
        try:
            yield
            time.sleep(2 * blow.lab.wishes.boot_s)
        finally:
            Target.objects.filter(pk=row.pk).update(access=row.access)

    return fault


BUILDING: tuple[Stage, ...] = ("queued", "building", "between")
BOOTING: tuple[Stage, ...] = ("between", "booting", "workload", "recording", "settling")
ANY: tuple[Stage, ...] = ("queued", "building", "between", "booting", "workload", "recording", "settling")

# name → what it does, and the stages at which it is worth doing.
FAULTS: Mapping[str, tuple[Fault, tuple[Stage, ...]]] = {
    "kill builds": (killed("builds"), BUILDING),
    "kill target": (killed("target"), BOOTING),
    "kill beat": (killed("beat"), ANY),
    "kill web": (killed("web"), ANY),
    "kill upkeep": (killed("upkeep"), ANY),
    "kill make": (make_killed, ("building",)),
    "freeze builds": (frozen("builds"), ("building",)),
    "freeze target": (frozen("target"), BOOTING),
    "restart redis": (restarted("redis"), ANY),
    "flush redis": (redis_flushed, ANY),
    "restart postgres": (restarted("postgres"), ANY),
    "kill postgres": (postmaster_killed, ANY),
    "guests panic": (guests("panics"), BOOTING),
    "guests hang": (guests("hangs"), BOOTING),
    "guests reboot": (guests("reboots"), BOOTING),
    "guests lost": (guests("lost"), BOOTING),
}
# These need disks to fill and another host.
OF_THE_MACHINE: Mapping[str, tuple[Fault, tuple[Stage, ...]]] = {
    "disk full: objects": (disk_full(""), BUILDING),
    "disk full: runs": (disk_full(""), BOOTING),
    "disk full: database": (disk_full("service"), ANY),
    "far clock +5 h": (clock_stepped(5.0), BOOTING),
    "far clock -5 h": (clock_stepped(-5.0), BOOTING),
    "far cut, half a lease": (wire_cut(0.5), BOOTING),
    "far cut, three leases": (wire_cut(3.0), BOOTING),
    "far kill": (far_killed, BOOTING),
}


def holders_of(victims: set[int]) -> dict[tuple[str, int], str]:
    """Claims that these processes hold now: kind and row, with the token."""
    return {
        (held.kind, held.id): held.token
        for held in look().held
        if int(held.holder.rsplit(":", 2)[1]) in victims
    }


__all__ = ["FAR", "FAULTS", "OF_THE_MACHINE", "Blow", "Fault", "holders_of", "pid_of"]
