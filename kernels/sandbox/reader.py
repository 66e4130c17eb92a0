# SPDX-License-Identifier: GPL-2.0-or-later
"""Read strangers' files in a separate process, which has no privileges and can reach nothing else.

A caller names a reader ("package.module:function"), a request of JSON values and open files. The function gets the
request first: it may import and load what it needs, and returns a second function. The second gets the files once the
process has given up its privileges (reader_server.py), and returns JSON and blobs of bytes.

The answer is as untrusted as the files: callers check it against their request.
"""

import atexit
import contextlib
import json
import os
import selectors
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernels.errors import ReaderUnavailable, ReadingStopped

_TOP = Path(__file__).resolve().parents[2]
REQUEST_BYTES = 64 << 10
TRAILER = struct.Struct("<4sid")
"""After the answer: a mark, the wait status of the reader, its CPU seconds."""
MARK = b"KPAR"
LENGTH = struct.Struct("<Q")
# A reader that waits for the CPUs of a busy host has done nothing wrong: its deadline is this many times its CPU seconds. If it has
# used more than the share below by then, the file made more work than an honest one does.
WALL_FACTOR = 10
_HONEST_SHARE = 0.1
_GRACE_S = 10.0
_MOST_BLOBS = 16
_MOST_DETAIL = 16 << 10


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """Limits of one reading: CPU seconds, bytes of memory beyond the interpreter's, bytes of the answer."""

    seconds: float = 60.0
    memory: int = 2 << 30
    answer: int = 96 << 20


@dataclass(frozen=True, slots=True)
class ReaderAnswer:
    """A reader's unchecked answer."""

    value: Any
    blobs: tuple[bytes, ...]


def read_apart(
    reader: str,
    request: Mapping[str, Any],
    files: Sequence[int],
    *,
    what: str,
    limits: ReaderLimits | None = None,
) -> ReaderAnswer:
    """Run a reader over open files. what: names them in messages ("the guest's records").

    Raises ReadingStopped, the sender's fault, when the reader hits a limit or fails unexpectedly;
    ReaderUnavailable, the lab's fault, when it cannot be started or the host is too busy for it.
    """
    limits = limits or ReaderLimits()
    with _readers.lock:
        pipe = _readers.ask(reader, request, files, limits)
    with contextlib.closing(pipe):
        data = _read_all(pipe, limits)
    if len(data) < TRAILER.size:
        raise ReaderUnavailable(f"the process that reads {what} ended without an answer")
    mark, status, cpu = TRAILER.unpack(data[-TRAILER.size :])
    if mark != MARK or len(data) > limits.answer + TRAILER.size:
        raise ReadingStopped(f"reading {what} gave more than {limits.answer >> 20} MiB")
    if status:
        raise _stopped(what, status, cpu, limits)
    value, blobs = _parsed(memoryview(data)[: -TRAILER.size], what)
    if "stopped" in value:
        raise _refused(value["stopped"], what, limits)
    return ReaderAnswer(value.get("answer"), blobs)


@contextlib.contextmanager
def opened(*paths: Path) -> Iterator[list[int]]:
    """Yield descriptors of regular files, for read_apart. Raises ReaderUnavailable for anything else: a folder, a link, a device."""
    with contextlib.ExitStack() as stack:
        yield [_open(path, stack) for path in paths]


def _open(path: Path, stack: contextlib.ExitStack) -> int:
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        raise ReaderUnavailable(f"{path.name} cannot be read: {exc.strerror}") from exc
    stack.callback(os.close, number)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        raise ReaderUnavailable(f"{path.name} is not a regular file, and is not read")
    return number


class _Readers:
    """The one server of this process, which forks a reader for each request; started when first needed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._owner = 0
        self._server: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def ask(
        self, reader: str, request: Mapping[str, Any], files: Sequence[int], limits: ReaderLimits
    ) -> socket.socket:
        """Send a request; return our end of the socket pair through which the answer comes."""
        text = {"reader": reader, "request": request, "seconds": limits.seconds, "memory": limits.memory}
        message = json.dumps({**text, "answer": limits.answer}).encode()
        if len(message) > REQUEST_BYTES:
            raise ReaderUnavailable(f"a request of {len(message)} bytes is too long for a reader")
        ours, theirs = socket.socketpair()
        with contextlib.closing(theirs):
            for last in (False, True):
                try:
                    socket.send_fds(self._started(), [message], [theirs.fileno(), *files])
                except OSError as exc:
                    self.stop()
                    if last:
                        ours.close()
                        raise ReaderUnavailable(f"the process that starts readers is gone: {exc}") from exc
                else:
                    break
        return ours

    def stop(self) -> None:
        """End the server; the next request starts another."""
        if self._socket is not None:
            self._socket.close()
        if self._server is not None and self._owner == os.getpid():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._server.wait(_GRACE_S)
        self._server = self._socket = None

    def _started(self) -> socket.socket:
        # A forked child shares our socket, so it needs a server of its own.
        if self._socket is not None and self._owner == os.getpid():
            return self._socket
        if self._socket is not None:
            self._socket.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with contextlib.closing(theirs):
            try:
                self._server = subprocess.Popen(
                    [sys.executable, "-m", "kernels.sandbox.reader_server"],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    cwd="/",
                    env=_environment(),
                    start_new_session=True,
                )
            except OSError as exc:
                ours.close()
                raise ReaderUnavailable(f"no process can be started to read apart: {exc.strerror}") from exc
        self._socket, self._owner = ours, os.getpid()
        return ours


_readers = _Readers()
atexit.register(_readers.stop)


def _environment() -> dict[str, str]:
    """Return only the paths of programs and of our code: no password is ever in a reader's memory."""
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(_TOP),
        "LC_ALL": "C.UTF-8",
        # Each thread would need a stack of its own, and count as a process.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


def _read_all(pipe: socket.socket, limits: ReaderLimits) -> bytes:
    """Return everything until the other end closes; stop once it is more than is allowed."""
    most_s = WALL_FACTOR * limits.seconds + _GRACE_S
    end = time.monotonic() + most_s
    data = bytearray()
    pipe.setblocking(False)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while len(data) <= limits.answer + TRAILER.size:
            if not selector.select(max(0.0, end - time.monotonic())):
                raise ReaderUnavailable(
                    f"a reader has not answered within {most_s:.0f} s: this host is too busy"
                )
            try:
                piece = pipe.recv(1 << 18)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                break
            if not piece:
                break
            data += piece
    return bytes(data)


def _stopped(what: str, status: int, cpu: float, limits: ReaderLimits) -> ReadingStopped | ReaderUnavailable:
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGALRM and cpu < _HONEST_SHARE * limits.seconds:
        seconds = WALL_FACTOR * limits.seconds
        return ReaderUnavailable(f"{what} could not be read within {seconds:.0f} s: this host is too busy")
    if number in (signal.SIGXCPU, signal.SIGALRM):
        used = f"{cpu:.0f} of {limits.seconds:.0f} s of CPU time"
        return ReadingStopped(f"reading {what} took {used} and was stopped")
    how = (
        f"was ended by signal {number}"
        if number
        else f"ended with status {os.waitstatus_to_exitcode(status)}"
    )
    return ReadingStopped(f"the process that reads {what} {how}")


def _refused(why: Any, what: str, limits: ReaderLimits) -> ReadingStopped | ReaderUnavailable:
    kind, detail = str(why.get("kind", "")), str(why.get("detail", ""))[-_MOST_DETAIL:]
    if kind == "setup":
        return ReaderUnavailable(f"the process that reads {what} could not give up its privileges", detail)
    if kind == "memory":
        return ReadingStopped(f"reading {what} takes more than {limits.memory >> 20} MiB of memory", detail)
    name = str(why.get("name", "")) if str(why.get("name", "")).isidentifier() else "an error"
    return ReadingStopped(f"{what} cannot be read: the reader failed unexpectedly ({name})", detail)


def _parsed(data: memoryview, what: str) -> tuple[dict[str, Any], tuple[bytes, ...]]:
    parts: list[bytes] = []
    while data and len(parts) <= _MOST_BLOBS:
        size = LENGTH.unpack_from(data)[0] if len(data) >= LENGTH.size else len(data)
        if size > len(data) - LENGTH.size:
            break
        parts.append(bytes(data[LENGTH.size : LENGTH.size + size]))
        data = data[LENGTH.size + size :]
    try:
        value = json.loads(parts[0]) if parts and not data else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("stopped", {}), dict):
        raise ReadingStopped(f"the process that reads {what} gave a malformed answer")
    return value, tuple(parts[1:])
