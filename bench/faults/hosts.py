# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts and stores that lie: about their disk, about their version; a store that answers badly."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection

from bench.faults.blow import Blow, Fault
from bench.faults.lab import Lab
from bench.faults.machine import filled, free_bytes
from bench.faults.patience import patiently
from lab.models import Worker
from lab.storage.artifacts import artifacts_of, in_store, unless_in_use
from lab.tests.bad_store import Behaviour
from workers.presence import REPORT_S
from workers.tests.live import copied_code

_START_S = 180.0
_PLENTY = 1 << 40


@contextmanager
def disk_said_full(blow: Blow) -> Iterator[None]:
    """The far host believes that its disk is full: it must say so and take nothing, and what it is at must go on."""
    far = blow.lab.far
    assert far is not None
    far.lies.disk(0)
    try:
        yield
        blow.landed = _within(3 * REPORT_S, lambda: _says(far.wire.name, "GiB free"))
    finally:
        far.lies.disk(None)


@contextmanager
def disk_said_free(blow: Blow) -> Iterator[None]:
    """The far host believes that its disk, which is full, has plenty of room: it takes work and meets the truth."""
    far = blow.lab.far
    assert far is not None
    far.lies.disk(_PLENTY)
    try:
        with filled(blow.lab.home):
            blow.landed = bool(far.pid) and free_bytes(blow.lab.home) < 1 << 20
            yield
            time.sleep(blow.draw.uniform(1.0, 4.0))
    finally:
        far.lies.disk(None)


def store_answers(how: Behaviour) -> Fault:
    """The store answers so for a while, and kernels must come from it: what this machine keeps at hand of them is dropped."""

    @contextmanager
    def fault(blow: Blow) -> Iterator[None]:
        _drop_at_hand(blow.lab)
        before = blow.lab.store.spoilt
        with blow.lab.store.behaving(how):
            yield
            time.sleep(blow.draw.uniform(2.0, 2 * blow.lab.setup.lease_s))
            blow.landed = blow.lab.store.spoilt > before

    return fault


def _drop_at_hand(lab: Lab) -> None:
    artifacts = artifacts_of(lab.home)
    for path in artifacts.root.glob("[0-9a-f]*"):
        with unless_in_use(lab.home, path.name) as free:
            if free and in_store(path.name):
                artifacts.remove(path.name)


@dataclass(frozen=True, slots=True)
class OlderWorker:
    """A worker that runs other code than the lab's."""

    process: subprocess.Popen[bytes]

    @property
    def name(self) -> str:
        """Return how the names of its claims begin."""
        return f"{os.uname().nodename}:{self.process.pid}:"


@contextmanager
def older_worker(lab: Lab) -> Iterator[OlderWorker]:
    """A worker of another checkout that would serve a target of this lab, once it has reported for the first time."""
    code = lab.home / "older"
    if not code.exists():
        copied_code(code)
        with (code / "lab/models/states.py").open("a") as file:
            file.write("# A line that the lab's own code does not have.\n")
    environment = lab.environment | {"PYTHONPATH": str(code), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "workers.labctl", "work", "--target", lab.targets[0]]
    with (lab.home / "older.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=code, env=environment, stdout=log, stderr=log)
    worker = OlderWorker(process)
    try:
        _within(_START_S, lambda: Worker.objects.filter(name__startswith=worker.name).exists())
        yield worker
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def ignored(blow: Blow) -> Iterator[None]:
    """That worker listens beside the lab's own for more than a lease: it must say why it takes nothing, and take nothing."""
    older = blow.prepared
    assert isinstance(older, OlderWorker)
    yield
    time.sleep(blow.lab.setup.lease_s)
    blow.landed = older.process.poll() is None and patiently(
        lambda: _says(older.name, "update it, then restart it")
    )
    if taken := patiently(lambda: _claims_of(older.name)):
        blow.broken = f"a worker of another version took {taken} pieces of work"


def _claims_of(name: str) -> int:
    """Return how often the diary has a worker at anything."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM diary.entry WHERE holder LIKE %s", [f"{name}%"])
        return int(cursor.fetchone()[0])


def _says(worker: str, reason: str) -> bool:
    """Return whether a worker, by the beginning of its name, says this of why it is idle."""
    return Worker.objects.filter(name__startswith=worker, idle_reason__contains=reason).exists()


def _within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if patiently(holds):
            return True
        time.sleep(0.2)
    return False
