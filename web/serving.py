# SPDX-License-Identifier: GPL-2.0-or-later
"""Gunicorn's configuration for the service: `gunicorn -c python:web.serving web.wsgi`; command line options override it."""

import gc
import os
import shutil
import socket
import tempfile
from typing import Any

from gunicorn.glogging import Logger

from lab.environment import adopt, read_variable, state_root
from lab.operations.logs import set_up
from web.slowclients import PatientWorker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")
# Read before Django's settings are.
adopt(state_root())
COUNTED = "PROMETHEUS_MULTIPROC_DIR"


class ServerLog(Logger):  # type: ignore[misc]  # the library has no types
    """Gunicorn's own lines in the lab's form."""

    def setup(self, cfg: Any) -> None:
        """Set up the log in the first process; the others inherit it."""
        super().setup(cfg)
        set_up()


class PagesWorker(PatientWorker):
    """A worker that accepts no connections while it stops; Gunicorn 23's own accepts them, and then drops them."""

    def accept(self, server: Any, listener: socket.socket) -> None:
        """Accept a connection, or leave it to the next process if this one is stopping and the socket stays open."""
        if self.alive:
            super().accept(server, listener)


logger_class = ServerLog
worker_class = PagesWorker
workers = int(read_variable("WEB_CONCURRENCY") or min(4, os.cpu_count() or 1))
threads = 4
# Gunicorn's own 2 s are shorter than a pause between two clicks: the next request would meet a closing connection.
keepalive = 75
# A series is applied to its tree while somebody waits.
timeout = 120
# Each process ends now and then, at a time of its own, and with it slow readers and leaks of libraries.
max_requests = 20_000
max_requests_jitter = 2_000


def on_starting(server: Any) -> None:
    """Set the directory of the counts, which all processes inherit; `on_exit` removes it."""
    os.environ[COUNTED] = os.environ.get(COUNTED) or tempfile.mkdtemp(prefix="kperflab-web-")


def post_worker_init(worker: Any) -> None:
    """Import modules early that the first page would otherwise wait for."""
    import scipy.stats  # noqa: F401

    # Half a million objects of modules live as long as the process: pages of many rows let the collector walk through all of them.
    gc.collect()
    gc.freeze()


def child_exit(server: Any, worker: Any) -> None:
    """Keep the counts of a process that ended; remove its live gauges."""
    # Imported only here: the library decides on import how it counts.
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def on_exit(server: Any) -> None:
    """Remove the counts, unless a newer server was started that still counts there."""
    if not server.reexec_pid:
        shutil.rmtree(os.environ[COUNTED], ignore_errors=True)
