# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeping a claim while work goes on: a thread renews it, and stops the work once the claim is lost.

A claim is lost when it was cancelled or taken back, when the database did not answer for as long as the lease lasts,
or when the work itself gave no sign of life for SILENT_S: then another worker may have it, or should.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from time import monotonic, sleep
from types import FrameType
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, connection, connections

from lab.one_line import error_line
from lab.runs.claim import Claim
from lab.runs.claiming import is_held, lease_seconds, renew
from workers.errors import ClaimLost

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

# How often the claim is checked, so how late its cancellation is noticed; it is renewed three times a lease. Each busy
# worker of a fleet queries the database that often.
LOOK_S = 2.0
RETRY_S = 0.5
# The work notices a lost claim at its next beat; if it makes none for this long, as in a wait, it is interrupted.
NOTICE_S = 1.0
# Work that no longer beats is stuck, in a library or in a call that does not return.
SILENT_S = 900.0
# The share of the lease for which an unconfirmed claim counts as ours: clocks do not run equally fast.
OURS = 0.95
INTERRUPT = signal.SIGRTMIN + 7
_JOIN_S = 10.0


class Lease:
    """A claim's heartbeat for as long as a `with` block lasts; the work calls `beat` often, at least once a minute.

    Within a transaction, as tests work, no other connection sees the claim: there `beat` renews it itself.
    """

    def __init__(self, claim: Claim, lease_s: float | None = None) -> None:
        self.claim = claim
        self._lease_s = lease_s or lease_seconds()
        self._good_until = monotonic() + OURS * self._lease_s
        self._renewed_at = self._beaten_at = monotonic()
        self._lost = ""
        self._over = threading.Event()
        self._recording = False
        self._thread: threading.Thread | None = None
        self._interruptible = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Lease:
        if connection.in_atomic_block:
            return self
        if self._interruptible:
            _watch(self)
        name = f"lease of {self.claim.kind} {self.claim.id}"
        self._thread = threading.Thread(target=self._keep, name=name, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        try:
            self._over.set()
        finally:
            # An interrupt may have come a moment before.
            self._over.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    def beat(self) -> None:
        """Give a sign of life. Raises ClaimLost when the claim is no longer ours."""
        self._beaten_at = monotonic()
        if self._thread is None and self._beaten_at - self._renewed_at > self._lease_s / 3:
            self._renew()
        self._check()

    def record(self, write: Callable[[], Answer]) -> Answer:
        """Write what was found; retry while the database is down, for as long as one lease lasts.

        Raises ClaimLost if the claim is lost before anything was written.
        """
        self.beat()
        # The write ends the claim, which does not count as its loss.
        self._recording = True
        until = monotonic() + self._lease_s
        while True:
            try:
                return write()
            except (OperationalError, InterfaceError) as exc:
                if connection.in_atomic_block or monotonic() > min(until, self._good_until):
                    raise
                log.warning("%s %s waits to be recorded: %s", self.claim.kind, self.claim.id, error_line(exc))
                connection.close()
                sleep(RETRY_S)

    def _check(self) -> None:
        if not self._lost and monotonic() > self._good_until:
            self._lost = f"the database confirmed it last {self._lease_s:g} s ago"
        if self._lost and not self._recording:
            raise ClaimLost(
                f"{self.claim.kind} {self.claim.id} is no longer claimed by this worker: {self._lost}"
            )

    def interrupted(self) -> None:
        """End a wait of the work. Raises ClaimLost, unless the work ended meanwhile."""
        if not self._over.is_set():
            self._check()

    def _keep(self) -> None:
        try:
            # A short lease is looked at often enough that one renewal may fail.
            while not self._lost and not self._over.wait(min(LOOK_S, self._lease_s / 6)):
                self._look()
            # Repeated: the first interrupt may come where it has no effect.
            while not self._over.wait(NOTICE_S):
                self._interrupt()
        finally:
            connections.close_all()

    def _look(self) -> None:
        """Renew the claim when due, else see whether it stands."""
        now = monotonic()
        try:
            if now - self._beaten_at > SILENT_S and not self._recording:
                self._lost = f"the work gave no sign of life for {SILENT_S:g} s"
            elif now - self._renewed_at > self._lease_s / 3:
                self._renew()
            elif not is_held(self.claim):
                self._lose()
        except (DatabaseError, InterfaceError) as exc:
            log.warning(
                "the claim of %s %s waits to be renewed: %s", self.claim.kind, self.claim.id, error_line(exc)
            )
            connection.close()
            # The worker may be in a wait, and must not continue longer than its lease.
            if monotonic() > self._good_until and not self._lost:
                self._lost = f"the database did not answer for {self._lease_s:g} s"

    def _renew(self) -> None:
        asked_at = monotonic()
        if renew(self.claim, lease_s=self._lease_s):
            self._renewed_at, self._good_until = asked_at, asked_at + OURS * self._lease_s
        else:
            self._lose()

    def _lose(self) -> None:
        if not self._recording:
            self._lost = "it was cancelled, or taken over by another worker"

    def _interrupt(self) -> None:
        if self._interruptible and self._lost and not self._recording:
            signal.pthread_kill(threading.main_thread().ident or 0, INTERRUPT)


# The lease of what the main thread works on. The handler stays: a signal may come when its lease is over.
_current: Lease | None = None


def _watch(lease: Lease) -> None:
    global _current
    _current = lease
    signal.signal(INTERRUPT, _interrupted)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    if _current is not None:
        _current.interrupted()
