# SPDX-License-Identifier: GPL-2.0-or-later
"""The two byte streams of a machine, console and records, each into its file and watched on arrival."""

from __future__ import annotations

import fcntl
import os
import selectors
import socket
import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from lab.runs import guest_limits
from workers.collect.dmesg import FATAL, PANIC, scan_console
from workers.errors import GuestEndless, GuestPanicked, TargetLost
from workloads.errors import RecordCorrupt
from workloads.guest.records import Record, RecordReader

CONSOLE_LIMIT = guest_limits.CONSOLE_BYTES
RECORDS_LIMIT = guest_limits.RECORDS_BYTES
"""No guest may fill the disk: what comes after this is read and thrown away, or ends the run."""
FIFO_BYTES = 1 << 20
PANIC_GRACE_S = 0.5
"""From the panic's first line to the report: its call trace comes within milliseconds, then the reset."""
TAIL_BYTES = 16 << 10


def listen(path: Path) -> socket.socket:
    """Return a socket that QEMU will connect to; libvirt gives it to QEMU's user."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(1)
    return server


def accept(server: socket.socket, deadline_s: float) -> socket.socket:
    """Return the one connection. Raises TargetLost."""
    server.settimeout(deadline_s)
    try:
        stream, _ = server.accept()
    except TimeoutError:
        raise TargetLost(
            f"QEMU did not connect to {server.getsockname()} within {deadline_s:.0f} s"
        ) from None
    stream.setblocking(False)
    return stream


class Stream(Protocol):
    """Our end of a guest's output; never blocks."""

    def fileno(self) -> int:
        """Return the descriptor for select()."""

    def recv(self, size: int, /) -> bytes:
        """Return the received bytes, b"" after the end. Raises BlockingIOError, ConnectionResetError."""

    def close(self) -> None:
        """Stop listening."""


class Fifo:
    """A named pipe that QEMU writes to: FIFO_BYTES fit in unread.

    A socket is full after some 280 writes of one byte, each of which takes as much room as a packet. A guest with an
    instruction clock writes byte by byte and must not notice whether the host had time to read.
    """

    def __init__(self, path: Path) -> None:
        # QEMU's names for the two directions of a "pipe" called `path`. QEMU opens both, we write to neither.
        for name in (f"{path}.in", f"{path}.out"):
            os.mkfifo(name, 0o600)
        self._file = os.open(f"{path}.out", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.fcntl(self._file, fcntl.F_SETPIPE_SZ, FIFO_BYTES)

    def __enter__(self) -> Fifo:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def fileno(self) -> int:
        """See Stream."""
        return self._file

    def recv(self, size: int, /) -> bytes:
        """See Stream."""
        return os.read(self._file, size)

    def close(self) -> None:
        """See Stream; a second time does nothing."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


class Streams(ABC):
    """Reads both streams in one thread, whatever their source; knows when the last record came.

    ended: nothing will come any more. last_record_at: of time.monotonic().
    """

    def __init__(self, console_file: BinaryIO, records_file: BinaryIO) -> None:
        self.console_file = console_file
        self.records_file = records_file
        self.ended = False
        self.last_record_at = time.monotonic()
        self._reader = RecordReader()
        self._ready: deque[Record] = deque()
        self._tail = bytearray()
        self._console_bytes = self._records_bytes = 0
        self._panic_at = 0.0

    @abstractmethod
    def read(self, timeout_s: float) -> None:
        """Wait at most timeout_s for data, and take it. Raises RecordCorrupt, GuestEndless."""

    def close(self) -> None:
        """Close everything; the files are then complete."""
        self.console_file.close()
        self.records_file.close()

    def next(self, deadline: float) -> Record | None:
        """Return the next record; nothing if none came by the deadline (time.monotonic()) or the guest has ended.

        Raises GuestPanicked, RecordCorrupt, GuestEndless.
        """
        while not self._ready and not self.ended:
            until = min(deadline, self._panic_at + PANIC_GRACE_S) if self._panic_at else deadline
            # Even at a deadline that has passed: what came while the caller was busy counts.
            self.read(max(0.0, until - time.monotonic()))
            if time.monotonic() >= until:
                break
        if self._ready:
            return self._ready.popleft()
        if self._panic_at:
            raise self.panicked()
        return None

    def drain(self, timeout_s: float) -> bool:
        """Put remaining output into the files and the tail; return True once the guest has hung up."""
        end = time.monotonic() + timeout_s
        while not self.ended and (left := end - time.monotonic()) > 0:
            # Damage was already reported.
            with suppress(RecordCorrupt, GuestEndless):
                self.read(left)
        self._ready.clear()
        return self.ended

    def tail(self) -> str:
        """Return the console's last lines."""
        return self._tail.decode(errors="replace")

    def panicked(self) -> GuestPanicked:
        """Return the error for a panic; its first cause is the title."""
        causes = [finding.title for finding in scan_console(bytes(self._tail)) if finding.kind in FATAL]
        return GuestPanicked(causes[0] if causes else "the guest panicked", self.tail())

    def take_console(self, data: bytes) -> None:
        """Write console output to its file and search it."""
        if self._console_bytes < CONSOLE_LIMIT:
            self.console_file.write(data)
            self.console_file.flush()
        self._console_bytes += len(data)
        self.watch_console(data)

    def watch_console(self, data: bytes) -> None:
        """Look for a panic in new console output; the caller stores the output."""
        # A panic's line may come in two pieces.
        seen = max(0, len(self._tail) - len(PANIC))
        self._tail += data
        if not self._panic_at and self._tail.find(PANIC, seen) >= 0:
            self._panic_at = time.monotonic()
        del self._tail[:-TAIL_BYTES]

    def take_records(self, data: bytes) -> None:
        """Read received records. Raises RecordCorrupt, GuestEndless."""
        self._records_bytes += len(data)
        if self._records_bytes > RECORDS_LIMIT:
            raise GuestEndless(f"the guest sent more than {RECORDS_LIMIT >> 20} MiB of records", self.tail())
        self.records_file.write(data)
        self._ready.extend(self._reader.feed(data))
        self.last_record_at = time.monotonic()


class LocalStreams(Streams):
    """Streams that QEMU writes to on this host."""

    def __init__(
        self, console: Stream, records: Stream, console_file: BinaryIO, records_file: BinaryIO
    ) -> None:
        super().__init__(console_file, records_file)
        self.console = console
        self.records = records
        self._selector = selectors.DefaultSelector()
        self._selector.register(console, selectors.EVENT_READ)
        self._selector.register(records, selectors.EVENT_READ)

    def close(self) -> None:
        """See Streams."""
        self._selector.close()
        self.console.close()
        self.records.close()
        super().close()

    def read(self, timeout_s: float) -> None:
        """See Streams."""
        for key, _ in self._selector.select(timeout_s):
            stream = self.console if key.fileobj is self.console else self.records
            try:
                data = stream.recv(1 << 16)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                data = b""
            if not data:
                self._selector.unregister(stream)
                self.ended = not self._selector.get_map()
            elif stream is self.console:
                self.take_console(data)
            else:
                self.take_records(data)
