# SPDX-License-Identifier: GPL-2.0-or-later
"""Follow a preview or submission that a worker of the server carries out until it is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from workers.ctl.clients.base import Asking, Json, Say
from workers.ctl.clients.errors import ClientError, Refused, ServerAway, ServerStrange
from workers.ctl.clients.problems import refusal_of
from workers.ctl.plaintext import plain_line

if TYPE_CHECKING:
    from workers.ctl.clients.http import Server

ACCEPTED = 202
# Polled often at first: a tree that the lab has already takes a second.
_FIRST_S, _MOST_S = 0.3, 3.0
_OPEN = ("waiting", "running")


class ServerFetch:
    """One fetch of a server."""

    def __init__(self, server: Server, say: Say, sleep: Callable[[float], None] = time.sleep) -> None:
        self._server, self._say, self._sleep = server, say, sleep

    def result(self, row: Json) -> Json:
        """Wait until it is over; return it. An interrupt cancels it at the server.

        Raises Refused with the server's words, ServerAway where the lab is at fault.
        """
        path = self._path(row)
        last_line, pause = "", _FIRST_S
        try:
            while row.get("state") in _OPEN:
                line = _line(row)
                if line != last_line:
                    self._say(line)
                    last_line = line
                self._sleep(pause)
                pause = min(_MOST_S, pause * 1.3)
                row = self._read(path)
        except KeyboardInterrupt:
            with suppress(ClientError):
                self._server.ask(Asking("POST", f"{path}cancel/", again=False))
            raise
        return self._over(row)

    def _over(self, row: Json) -> Json:
        if row.get("state") == "done":
            return row
        if row.get("state") == "cancelled":
            raise Refused(f"this was cancelled at {self._server.url}; nothing was queued")
        problem = row.get("problem")
        if not isinstance(problem, dict):
            raise ServerStrange(f"{self._server.url} reported a failed fetch without a reason")
        if int(problem.get("status", 422)) >= 500:
            raise ServerAway(plain_line(problem.get("detail") or "the lab cannot do this now"))
        raise refusal_of(problem)

    def _path(self, row: Json) -> str:
        path = urlsplit(str(row.get("url", ""))).path
        if not path.startswith("/api/v1/fetches/"):
            raise ServerStrange(f"{self._server.url} reported a fetch without an address")
        return path

    def _read(self, path: str) -> Json:
        row = self._server.ask(Asking("GET", path)).json()
        if not isinstance(row, dict):
            raise ServerStrange(f"{self._server.url} returned no object for GET {path}")
        return row


def _line(row: Json) -> str:
    if row.get("state") == "waiting":
        before = row.get("before")
        return f"waiting for a worker, {before} ahead of it" if before else "waiting for a worker"
    size = int(row.get("received_bytes") or 0) >> 20
    said = plain_line(row.get("progress") or "in progress")
    return f"{said}, {size:,} MiB received" if size else said
