# SPDX-License-Identifier: GPL-2.0-or-later
"""Write to a process and read its output, within a deadline and a limit of bytes."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from threading import Thread
from typing import IO, cast

from kernels.errors import OutputTooLong

# Bytes of stderr to keep: the last line matters, and a remote server may send any number of lines.
LAST_COMPLAINTS = 64 << 10
_CHUNK = 1 << 16
_END_S = 10.0
# The time between two reports of progress.
_LOOK_S = 0.5


class _Reader:
    """One pipe of a process, read to its end by a thread of its own."""

    def __init__(
        self, stream: IO[bytes], process: subprocess.Popen[bytes], limit: int, *, keep_last: bool
    ) -> None:
        self.data = bytearray()
        self.exceeded = False
        self._stream, self._process, self._limit, self._keep_last = stream, process, limit, keep_last
        self.thread = Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        with self._stream as stream:
            while chunk := os.read(stream.fileno(), _CHUNK):
                self.data += chunk
                if len(self.data) <= self._limit:
                    continue
                if self._keep_last:
                    del self.data[: -self._limit]
                    continue
                self.exceeded = True
                kill_group(self._process)
                return


def talk(
    process: subprocess.Popen[bytes],
    data: bytes | IO[bytes],
    *,
    seconds: float,
    most_output: int,
    watch: Callable[[bytes], None] | None = None,
) -> tuple[bytes, bytes]:
    """Send data, wait for the end of a process that leads its own session, and return its stdout and the end of its stderr.

    data: bytes, or an open file, of which the rest is sent.
    watch: gets the end of stderr from time to time, in the caller's thread, and once when all of it is read. Raises OutputTooLong,
    subprocess.TimeoutExpired; then the process and all that it started are killed.
    """
    ends = time.monotonic() + seconds
    stdin, stdout, stderr = (
        cast(IO[bytes], pipe) for pipe in (process.stdin, process.stdout, process.stderr)
    )
    out = _Reader(stdout, process, most_output, keep_last=False)
    err = _Reader(stderr, process, LAST_COMPLAINTS, keep_last=True)
    writer = Thread(target=_write, args=(stdin, data), daemon=True)
    writer.start()
    try:
        for thread in (out.thread, err.thread, writer):
            while thread.is_alive():
                left = ends - time.monotonic()
                if left <= 0:
                    raise subprocess.TimeoutExpired(process.args, seconds)
                thread.join(min(left, _LOOK_S) if watch else left)
                if watch:
                    watch(bytes(err.data))
        process.wait(max(0.0, ends - time.monotonic()))
    finally:
        if process.poll() is None:
            kill_group(process)
            process.wait()
        for thread in (out.thread, err.thread, writer):
            thread.join(_END_S)
    if out.exceeded:
        raise OutputTooLong(f"it wrote more than the {most_output >> 10:,} KiB that are allowed")
    return bytes(out.data), bytes(err.data)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and everything that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _write(stream: IO[bytes], data: bytes | IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError), stream:
        if isinstance(data, bytes):
            stream.write(data)
        else:
            shutil.copyfileobj(data, stream, 1 << 20)
