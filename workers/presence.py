# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker's sign of life: a row that says which queues it works on, or why on none, refreshed by a separate thread.

The same thread does the chores that must not wait for beat to return: any remaining process lets leases of dead workers expire.
"""

import logging
import shutil
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event, Thread

from django.conf import settings
from django.db import close_old_connections, connections

from lab.leases.process import worker_identity
from lab.leases.version import code_version
from lab.one_line import error_line
from lab.runs.workers import ReportAnswer, WorkerReport, report_worker, worker_left
from workers.readiness import why_idle

log = logging.getLogger(__name__)

# After some missed reports others take a worker for gone.
REPORT_S = 5.0
# The chore that one of all workers does every few seconds; the answer to a report says whether another has lately done it.
KEEP_GOING, KEPT_GOING_S = "keep_going", 4.0
# A stop does not wait longer for a database that does not answer.
LAST_S = 5.0


@dataclass
class Presence:
    """Says every 5 s that this process is there, from `start` to `end`, and does `also` each time.

    also: receives whether another worker has lately done the chore that all share.
    """

    queues: Sequence[str]
    builds: bool
    also: Callable[[bool], None] = lambda _done: None
    _lab: str | None = None
    _hindrance: str = ""
    _told: str = ""
    _stopped: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def start(self) -> None:
        """Begin; the first report is made before this returns, or fails in the log alone."""
        self._report()
        self._thread = Thread(target=self._go_on, name="presence", daemon=True)
        self._thread.start()

    def say(self, hindrance: str) -> None:
        """Report at once what else keeps this process from work, until the next call; "" where nothing does."""
        self._hindrance = hindrance
        self._report()

    def end(self) -> None:
        """Stop, and take the row away."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(LAST_S)
        try:
            worker_left(worker_identity())
        except Exception:
            log.exception("this worker could not sign off")

    def _go_on(self) -> None:
        while not self._stopped.wait(REPORT_S):
            done = self._report()
            try:
                self.also(done)
            except Exception:
                log.exception("what is done beside a report failed")
                close_old_connections()
        connections.close_all()

    def _report(self) -> bool:
        """Report; returns whether another worker has lately done the chore that all share, False if the database does not answer."""
        try:
            idle, answer = self._say_now()
            known, self._lab = self._lab, answer.lab
            if known not in (None, answer.lab):  # with it the text of the report may have changed
                idle, answer = self._say_now()
            self._tell(idle)
        except Exception as exc:
            # As while the database restarts: the next report is 5 s away.
            log.warning("this worker could not report: %s", error_line(exc))
            close_old_connections()
            return False
        return answer.done

    def _say_now(self) -> tuple[str, ReportAnswer]:
        usage = shutil.disk_usage(settings.HOME)
        idle = self._hindrance or why_idle(builds=self.builds, lab=self._lab)
        report = WorkerReport(
            name=worker_identity(),
            host=socket.gethostname(),
            queues=list(self.queues),
            version=code_version(),
            disk_free=usage.free,
            disk_total=usage.total,
            idle_reason=idle,
        )
        return idle, report_worker(report, chore=KEEP_GOING, within_s=KEPT_GOING_S)

    def _tell(self, idle: str) -> None:
        """Say in the log why nothing is taken, when that changes."""
        if idle != self._told:
            log.warning("nothing is taken: %s", idle) if idle else log.info("work is taken again")
        self._told = idle
