# SPDX-License-Identifier: GPL-2.0-or-later
"""The program behind reader.py: waits for requests on standard input and forks a reader for each.

Before a reader sees the first byte of its files it drops its privileges: root becomes the build user; CPU time, memory,
files and processes are limited; it can gain no new privileges; and seccomp forbids every system call but those that read
open files, manage memory, write the answer and exit. It can open no file, start no program and reach no network.
The server itself holds no secret: it starts with a minimal environment and never reads a stranger's file.
"""

import contextlib
import ctypes
import errno
import importlib
import json
import os
import pwd
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyseccomp

from kernels.sandbox.command import BUILD_USER
from kernels.sandbox.reader import LENGTH, MARK, REQUEST_BYTES, TRAILER, WALL_FACTOR

_MOST_FILES = 16
_NOBODY = 65534
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_LIBC = ctypes.CDLL(None)
_ALLOWED = [
    *("read", "pread64", "readv", "write", "close", "fstat", "newfstatat", "lseek", "mmap", "munmap"),
    *("mremap", "mprotect", "madvise", "brk", "futex", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn"),
    *("sigaltstack", "restart_syscall", "getpid", "gettid", "getuid", "geteuid", "getgid", "getegid"),
    *("clock_gettime", "gettimeofday", "getrandom", "sched_yield", "sched_getaffinity", "getrusage", "exit"),
    "exit_group",
]

Result = tuple[Any, Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file that was opened for a reader, with the methods of a Path that readers use."""

    number: int
    name: str

    def read_bytes(self) -> bytes:
        """Return its bytes."""
        size, parts, at = os.fstat(self.number).st_size, [], 0
        while at < size and (part := os.pread(self.number, min(size - at, 1 << 30), at)):
            parts.append(part)
            at += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def stat(self) -> os.stat_result:
        """Its size and more."""
        return os.fstat(self.number)


def serve() -> None:
    """Answer requests until the other end hangs up."""
    # The kernel reaps the attendants.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    asked = socket.socket(fileno=0)
    while True:
        message, files, _, _ = socket.recv_fds(asked, REQUEST_BYTES, _MOST_FILES)
        if not message:
            return
        request = json.loads(message)
        module, _, name = request["reader"].partition(":")
        prepare = getattr(importlib.import_module(module), name)
        if os.fork() == 0:
            # os._exit: none of the server's exit handlers may run in its children.
            try:
                asked.close()
                _attend(files, request, prepare)
            finally:
                os._exit(0)
        for number in files:
            os.close(number)


def _attend(files: list[int], request: dict[str, Any], prepare: Callable[..., Any]) -> None:
    """Run the reader, wait for it, and append its exit status and CPU time to its answer."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    answer = files[0]
    reader = os.fork()
    if reader == 0:
        try:
            _answer(answer, _result(files[1:], request, prepare))
        finally:
            os._exit(0)
    _, status, usage = os.wait4(reader, 0)
    with contextlib.suppress(OSError):
        _write(answer, TRAILER.pack(MARK, status, usage.ru_utime + usage.ru_stime))


def _result(files: list[int], request: dict[str, Any], prepare: Callable[..., Any]) -> Result:
    try:
        read: Callable[[list[HeldFile]], Result] = prepare(request["request"])
        names = request["request"].get("files", [])
        held = [HeldFile(number, str(name)) for number, name in zip(files, names, strict=True)]
        _lock(request["seconds"], request["memory"])
    except Exception:
        return {"stopped": {"kind": "setup", "detail": traceback.format_exc()}}, ()
    try:
        value, blobs = read(held)
    except MemoryError:
        return {"stopped": {"kind": "memory"}}, ()
    # Any exception that a file causes in a reader is an answer about that file.
    except Exception as exc:
        detail = "".join(traceback.format_tb(exc.__traceback__, 20))
        return {"stopped": {"kind": "unforeseen", "name": type(exc).__name__, "detail": detail}}, ()
    return {"answer": value}, blobs


def _answer(answer: int, result: Result) -> None:
    value, blobs = result
    for part in (json.dumps(value).encode(), *blobs):
        _write(answer, LENGTH.pack(len(part)))
        _write(answer, part)


def _write(answer: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(answer, view) :]


def _lock(seconds: float, memory: int) -> None:
    """Drop the privileges that a reader does not need. From here on nothing is trusted."""
    for kind, most in (
        (resource.RLIMIT_CPU, max(1, round(seconds))),
        (resource.RLIMIT_AS, _address_space() + memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        _, hard = resource.getrlimit(kind)
        unlimited = hard == resource.RLIM_INFINITY
        soft = most if unlimited else min(most, hard)
        # The kernel sends SIGXCPU at the soft limit of CPU time, SIGKILL at the hard one.
        resource.setrlimit(kind, (soft, soft + 1 if unlimited else hard))
    if os.geteuid() == 0:
        user, group = _unprivileged()
        os.setgroups([])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    # Changing the user resets both.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _LIBC.prctl(_PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, WALL_FACTOR * seconds)
    allowed = pyseccomp.SyscallFilter(pyseccomp.ERRNO(errno.EPERM))
    for name in _ALLOWED:
        allowed.add_rule(pyseccomp.ALLOW, name)
    # Also sets no_new_privs.
    allowed.load()


def _unprivileged() -> tuple[int, int]:
    try:
        entry = pwd.getpwnam(BUILD_USER)
    except KeyError:
        return _NOBODY, _NOBODY
    return entry.pw_uid, entry.pw_gid


def _address_space() -> int:
    """Return the bytes of address space that this process uses now."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    serve()
