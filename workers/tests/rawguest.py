# SPDX-License-Identifier: GPL-2.0-or-later
"""A driver whose guests are bytes: a real session over sockets, into which a test writes whatever it likes."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from workers.drivers.base import BootRequest
from workers.drivers.fake_guest import showgids_line
from workers.drivers.guest_session import Ending, GuestSession
from workers.drivers.streams import LocalStreams
from workloads.guest.records import Record, encode_record

PIECE = 1 << 16


@dataclass
class RawGuest:
    """The guest's end: writes records, and anything else."""

    release: str
    records: socket.socket
    console: socket.socket
    seq: int = 0

    def says(self, kind: str, name: str = "-", payload: bytes | object = b"") -> None:
        """Send the next record; payload: bytes, or what is written as JSON."""
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.seq += 1
        self.raw(encode_record(Record(self.seq, kind, name, data)))

    def raw(self, data: bytes) -> None:
        """Send bytes as they are; a host that hung up is no error here."""
        with suppress(OSError):
            self.records.sendall(data)

    def greets(self, **more: object) -> None:
        """Say hello as the agent does."""
        self.says("hello", "-", {"release": self.release, "cpus": 2, "clocksource": "tsc", **more})

    def measures(self, lines: bytes | None = None, status: object = 0) -> None:
        """Run the two steps of showgids; lines: what it prints instead of three good iterations."""
        good = "".join(showgids_line(index, 1000.0, warmup=index == 0) for index in range(3)).encode()
        for step, out in (("soft-roce", b""), ("open", good if lines is None else lines)):
            self.says("step", step, {"kind": "measure"})
            for at in range(0, len(out), PIECE):
                self.says("out", step, out[at : at + PIECE])
            self.says("exit", step, {"status": status, "signal": 0, "timed_out": False})

    def leaves(self) -> None:
        """Say bye."""
        self.says("bye", "-", {"completed": True, "clocksource": "tsc"})


@dataclass
class _Remote:
    """The machine from outside: gone by itself."""

    def how_it_ended(self) -> Ending:
        return "itself"

    def interrupt(self) -> None:
        """Nothing shows."""


@dataclass
class RawDriver:
    """Boots guests that do what `acts` says; counts them."""

    acts: Callable[[RawGuest], None]
    boots: int = 0
    deadline_s: float = 20.0
    requests: list[BootRequest] = field(default_factory=list)

    @contextmanager
    def boot(self, request: BootRequest) -> Iterator[GuestSession]:
        """See base.Driver.boot."""
        self.boots += 1
        self.requests.append(request)
        request.directory.mkdir(parents=True, exist_ok=True)
        console, our_console = socket.socketpair()
        records, our_records = socket.socketpair()
        for ours in (our_console, our_records):
            ours.setblocking(False)
        streams = LocalStreams(
            our_console, our_records, request.console.open("wb"), request.raw_records.open("wb")
        )
        guest = RawGuest(request.release, records, console)

        def act() -> None:
            self.acts(guest)
            for end in (console, records):
                end.close()

        playing = threading.Thread(target=act, daemon=True)
        playing.start()
        try:
            session = GuestSession(request, streams, _Remote(), {"machine": "raw"})
            session.greet()
            yield session
        finally:
            streams.close()
            playing.join(self.deadline_s)
