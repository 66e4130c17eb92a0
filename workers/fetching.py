# SPDX-License-Identifier: GPL-2.0-or-later
"""Carries out fetches: a child process each, watched for its time, its bytes and its memory, beside all other work.

The table limits their number in the whole lab. A child that passes a limit, or whose fetch was cancelled, is killed
with everything that it started; nothing that a stranger's host does keeps this process from its other work.
"""

import logging
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from time import monotonic

from lab.environment import for_own_processes
from lab.errors import FetchLost, FieldRefused, LabError, LabUnable
from lab.experiments import limits
from lab.figures import duration
from lab.leases.process import worker_identity
from lab.models import Fetch
from lab.models.states import FetchState
from lab.submission.fetches.queue import (
    cancel_unwatched,
    claim_fetch,
    fail_fetch,
    forget_fetches,
    renew_fetch,
    return_dead_fetches,
    return_interrupted_fetch,
)
from workers.fetch_child import TRY_AGAIN
from workers.processes import Usage, end_all, usage_of
from workers.repeating import Timetable, repeating

log = logging.getLogger(__name__)

LOOK_S = 0.5
# How often the lease is renewed, dead fetches are put back, and old results removed.
RENEW_S, RETURN_S, FORGET_S = 1.0, 5.0, 3600.0
FAULT_S = 5.0
# It dies with this process, however that ends.
CHILD = ("setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-m", "workers.fetch_child")
# A child that uses the processor, as git does on received data, is not silent.
BUSY_CPU_S = 0.5


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one fetch: seconds, seconds without a byte, bytes received, bytes of memory."""

    deadline_s: float = limits.FETCH_DEADLINE_S
    silent_s: float = limits.FETCH_SILENT_S
    received: int = limits.FETCH_BYTES
    memory: int = limits.FETCH_MEMORY_BYTES


@dataclass(slots=True)
class Child:
    """A child process at a fetch. grew_at: when it last received something or used the processor."""

    row: Fetch
    process: subprocess.Popen[bytes]
    began: float = field(default_factory=monotonic)
    grew_at: float = field(default_factory=monotonic)
    renewed_at: float = 0.0
    usage: Usage = field(default_factory=Usage)
    _counted: Usage = field(default_factory=Usage)

    def note(self, usage: Usage) -> None:
        """Take a new measurement."""
        if usage.received > self._counted.received or abs(usage.cpu_s - self._counted.cpu_s) > BUSY_CPU_S:
            self.grew_at, self._counted = monotonic(), usage
        self.usage = usage


class FetchChildren:
    """All children of this process. `step` is called often; `end` at the end."""

    def __init__(self, bounds: Bounds | None = None, command: tuple[str, ...] = CHILD) -> None:
        self._bounds = bounds or Bounds()
        self._command = command
        self._children: list[Child] = []
        self._chores = Timetable(
            (_return_dead, RETURN_S), (cancel_unwatched, RETURN_S), (forget_fetches, FORGET_S)
        )

    def step(self) -> None:
        """Watch the children, then start waiting fetches while there are free slots."""
        for child in list(self._children):
            if self._is_over(child):
                self._children.remove(child)
        self._chores.do_due(lambda chore: chore())
        while (row := claim_fetch(by=worker_identity())) is not None:
            self._children.append(self._begin(row))

    def end(self) -> None:
        """Kill all children; their fetches are carried out again by the next worker."""
        for child in self._children:
            end_all(child.process)
        self._children.clear()

    def _begin(self, row: Fetch) -> Child:
        log.info("%s of %s begins", row, row.user.username)
        process = subprocess.Popen(
            [*self._command, str(row.pk)],
            stdin=subprocess.PIPE,
            start_new_session=True,
            env=for_own_processes(),
        )
        with suppress(BrokenPipeError), process.stdin or nullcontext() as pipe:
            if pipe is not None:
                pipe.write(f"{row.token}\n".encode())
        return Child(row, process)

    def _is_over(self, child: Child) -> bool:
        code = child.process.poll()
        if code is not None:
            self._ended(child, code)
            return True
        child.note(usage_of(child.process.pid))
        problem = self._problem(child)
        if problem is not None:
            end_all(child.process)
            _fail(child.row, problem)
            return True
        if monotonic() - child.renewed_at < RENEW_S:
            return False
        child.renewed_at = monotonic()
        if renew_fetch(child.row.pk, child.row.token, received_bytes=child.usage.received):
            return False
        if Fetch.objects.filter(pk=child.row.pk, state__in=(FetchState.DONE, FetchState.FAILED)).exists():
            # It has written its result, and ends by itself.
            return False
        log.info("%s was cancelled", child.row)
        end_all(child.process)
        return True

    def _ended(self, child: Child, code: int) -> None:
        log.info("%s is over after %.1f s", child.row, monotonic() - child.began)
        if code == TRY_AGAIN:
            if return_interrupted_fetch(child.row.pk, child.row.token):
                log.warning("%s lost the database", child.row)
        elif code:
            lost = LabUnable(f"the worker's process for this ended with status {code}; see the worker's log")
            _fail(child.row, lost)

    def _problem(self, child: Child) -> LabError | None:
        """Return the limit that a child has exceeded, if any."""
        bounds, now = self._bounds, monotonic()
        if child.usage.received > bounds.received:
            return _refused(
                child,
                f"it sent more than {bounds.received >> 20:,} MiB, which is the most that one fetch may receive",
            )
        if child.usage.memory > bounds.memory:
            return _refused(
                child,
                f"reading it takes more than {bounds.memory >> 20:,} MiB of memory, the most that one fetch may",
            )
        if now - child.began > bounds.deadline_s:
            return _refused(
                child,
                f"it was not over within {duration(bounds.deadline_s)}, the most that one fetch may take",
            )
        if now - child.grew_at > bounds.silent_s:
            return _refused(child, f"the other host sent nothing for {duration(bounds.silent_s)}")
        return None


def _refused(child: Child, why: str) -> LabError:
    """Return the error for an exceeded limit, at the field of the description that it is about."""
    row = Fetch.objects.filter(pk=child.row.pk).only("place", "progress").first()
    place, line = (row.place, row.progress) if row else ("", "")
    doing = f"{line}: " if line else ""
    return FieldRefused(
        place or "form", f"{doing}{why}; name a smaller or nearer source, or upload the patches"
    )


def _fail(row: Fetch, problem: LabError) -> None:
    try:
        fail_fetch(row.pk, row.token, problem)
    except FetchLost:
        return
    log.warning("%s was ended: %s", row, problem)


def _return_dead() -> None:
    for number in return_dead_fetches():
        log.warning("fetch %s was left by a process that is gone", number)


def fetching() -> AbstractContextManager[None]:
    """Carry out fetches in a thread, and their processes, for as long as the block runs."""
    children = FetchChildren()
    return repeating("fetching", children.step, every_s=LOOK_S, fault_s=FAULT_S, end=children.end)
