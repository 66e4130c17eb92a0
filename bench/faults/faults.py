# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults for a lab: each is a context manager that strikes, lasts beyond its block, and is repaired at its end."""

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bench.faults.blow import Blow, Fault, Preparation, holder, pid_of
from bench.faults.database import failed_over, standby
from bench.faults.guests import guest_worker_killed, qemu_frozen, qemu_killed
from bench.faults.hosts import disk_said_free, disk_said_full, ignored, older_worker, store_answers
from bench.faults.machine import descendants, filled, free_bytes, kill
from bench.faults.patience import patiently
from lab.models import Run, Target
from lab.tests.bad_store import BADLY
from workers.service.place import ServicePlace
from workers.service.supervising import Supervisor

_NEXT_BOOT_S = 15.0


def killed(program: str) -> Fault:
    """kill -9 of a program of the service."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        name = blow.draw.choice(blow.lab.targets) if program == "target" else program
        pid = holder(blow, f"target-{name}" if program == "target" else name)
        blow.victims.add(pid)
        blow.landed = kill(pid)
        yield

    return fault


def frozen(program: str) -> Fault:
    """A program that stands still for longer than its lease, and then goes on as if nothing had been."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        name = blow.draw.choice(blow.lab.targets) if program == "target" else program
        pid = holder(blow, f"target-{name}" if program == "target" else name)
        blow.victims.add(pid)
        blow.landed = kill(pid, signal.SIGSTOP)
        try:
            yield
            time.sleep(blow.lab.setup.lease_s * blow.draw.uniform(1.3, 2.0))
        finally:
            kill(pid, signal.SIGCONT)

    return fault


@contextmanager
def make_killed(blow: Blow) -> Iterator[None]:
    """kill -9 of the builder's make, or of whatever else the build has started by then."""
    below = descendants(pid_of(blow.lab, "builds"))
    makes = [pid for pid, name in below.items() if name == "make"] or list(below)
    blow.landed = bool(makes) and kill(blow.draw.choice(makes))
    yield


def restarted(program: str) -> Fault:
    """A program of the service is stopped in good order and started again."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        supervisor = Supervisor(ServicePlace(blow.lab.home))
        blow.landed = bool(pid_of(blow.lab, program))
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
        blow.landed = bool(client.flushall())
    yield


@contextmanager
def postmaster_killed(blow: Blow) -> Iterator[None]:
    """kill -9 of PostgreSQL's first process: it recovers from its journal."""
    blow.landed = kill(pid_of(blow.lab, "postgres"))
    yield


def disk_full(folder: str) -> Fault:
    """No room where the objects and artifacts are, or where the database is."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        with filled(blow.lab.home / folder):
            blow.landed = free_bytes(blow.lab.home / folder) < 1 << 20
            yield
            time.sleep(blow.draw.uniform(0.5, 3.0))

    return fault


def clock_stepped(hours: float) -> Fault:
    """The far host's wall clock is wrong at once, and right again later."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        far = blow.lab.far
        assert far is not None
        far.lies.clock(hours * 3600)
        blow.landed = bool(far.pid)
        try:
            yield
            time.sleep(blow.draw.uniform(1.0, 2 * blow.lab.setup.lease_s))
        finally:
            far.lies.clock(0)

    return fault


def wire_cut(leases: float) -> Fault:
    """The far host is cut off for so many lease periods."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        far = blow.lab.far
        assert far is not None
        blow.victims.add(far.pid)
        blow.landed = bool(far.pid)
        far.wire.cut()
        try:
            yield
            time.sleep(leases * blow.lab.setup.lease_s)
        finally:
            far.wire.mend()

    return fault


@contextmanager
def far_killed(blow: Blow) -> Iterator[None]:
    """kill -9 of the worker on the other host: its lease alone tells."""
    far = blow.lab.far
    assert far is not None
    blow.victims.add(far.pid)
    blow.landed = kill(far.pid)
    yield


def guests(behaviour: str) -> Fault:
    """Every guest of one target behaves so for a while; the fault lands where one boots meanwhile."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        name = blow.draw.choice(blow.lab.targets)
        row = Target.objects.get(name=name)
        Target.objects.filter(pk=row.pk).update(access=row.access | {"behaviour": behaviour})
        before = _last_start(row)
        try:
            yield
            # On a busy machine it takes a while until the target boots again.
            end = time.monotonic() + _NEXT_BOOT_S
            while not blow.landed and time.monotonic() < end:
                time.sleep(0.2)
                blow.landed = patiently(lambda: _last_start(row)) != before
            time.sleep(2 * blow.lab.setup.boot_s)
        finally:
            Target.objects.filter(pk=row.pk).update(access=row.access)

    return fault


def _last_start(target: Target) -> object:
    """Return when the last boot of a target began."""
    runs = Run.objects.filter(target=target, started_at__isnull=False).order_by("-started_at")
    return runs.values_list("started_at", flat=True).first()


# How each fault of bench/faults/kinds.py is carried out.
STRIKES: Mapping[str, Fault] = {
    "kill builds": killed("builds"),
    "kill target": killed("target"),
    "kill beat": killed("beat"),
    "kill web": killed("web"),
    "kill upkeep": killed("upkeep"),
    "kill make": make_killed,
    "freeze builds": frozen("builds"),
    "freeze target": frozen("target"),
    "restart redis": restarted("redis"),
    "flush redis": redis_flushed,
    "restart postgres": restarted("postgres"),
    "kill postgres": postmaster_killed,
    "guests panic": guests("panics"),
    "guests hang": guests("hangs"),
    "guests reboot": guests("reboots"),
    "guests lost": guests("lost"),
    "disk full: objects": disk_full(""),
    "disk full: runs": disk_full(""),
    "disk full: database": disk_full("service"),
    "far clock +5 h": clock_stepped(5.0),
    "far clock -5 h": clock_stepped(-5.0),
    "far cut, half a lease": wire_cut(0.5),
    "far cut, three leases": wire_cut(3.0),
    "far kill": far_killed,
    "far disk, said full": disk_said_full,
    "far disk, said free": disk_said_free,
    "older worker": ignored,
    "postgres fails over": failed_over,
    **{f"store {how}": store_answers(how) for how in BADLY},
    "libvirt, kill qemu": qemu_killed,
    "libvirt, freeze qemu": qemu_frozen,
    "libvirt, kill worker": guest_worker_killed,
}
PREPARATIONS: Mapping[str, Preparation] = {"older worker": older_worker, "postgres fails over": standby}
