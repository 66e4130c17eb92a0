# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers that do what no reader does, for the lock around them to be tried from inside."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernels.artifacts.elf_sections import Readable

Result = tuple[Any, Sequence[bytes]]


def prepare(request: Mapping[str, Any]) -> Callable[[Sequence[Readable]], Result]:
    """Return the attack that the request names."""
    attack = _ATTACKS[request["attack"]]

    def read(files: Sequence[Readable]) -> Result:
        return attack(files), ()

    return read


def refuse(_request: Mapping[str, Any]) -> Callable[[Sequence[Readable]], Result]:
    """Fail before the lock."""
    raise OSError("nothing to load")


def _spin(_files: Sequence[Readable]) -> Any:
    while True:
        pass


def _sleep(_files: Sequence[Readable]) -> Any:
    # The call that sleeps is refused, which Python reports: what is left is to burn the time.
    time.sleep(60)


def _exit(_files: Sequence[Readable]) -> Any:
    os._exit(3)


def _nest(_files: Sequence[Readable]) -> Any:
    deep: list[Any] = []
    for _ in range(900):
        deep = [deep]
    return deep


def _overflow(files: Sequence[Readable]) -> Any:
    return _overflow(files)


def _lie(files: Sequence[Readable]) -> Any:
    return {"size": files[0].stat().st_size, "text": files[0].read_bytes().decode()}


def _unlimit(_files: Sequence[Readable]) -> Any:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _trace(_files: Sequence[Readable]) -> Any:
    if ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) < 0:
        raise PermissionError("ptrace")


def _unshare(_files: Sequence[Readable]) -> Any:
    if ctypes.CDLL(None).unshare(0x10000000) < 0:
        raise PermissionError("unshare")


_ATTACKS: Mapping[str, Callable[[Sequence[Readable]], Any]] = {
    "nothing": _lie,
    "open a file": lambda files: Path("/etc/passwd").read_text(),
    "write a file": lambda files: Path("/tmp/kperflab-attack").write_text("x"),
    "list a folder": lambda files: list(Path("/").iterdir()),
    "remove a file": lambda files: Path(__file__).unlink(),
    "start a program": lambda files: subprocess.run(["/bin/true"], check=True),
    "fork": lambda files: os.fork(),
    "connect": lambda files: socket.create_connection(("127.0.0.1", 6379), 1),
    "kill its parent": lambda files: os.kill(os.getppid(), signal.SIGKILL),
    "become root": lambda files: os.setuid(0),
    "trace its parent": _trace,
    "lift its limits": _unlimit,
    "change its priority": lambda files: os.nice(-10),
    "make a namespace": _unshare,
    "who it is": lambda files: [os.getuid(), os.geteuid(), os.getgid(), sorted(os.environ)],
    "spin": _spin,
    "sleep": _sleep,
    "fill memory": lambda files: len(bytes(3 << 30)),
    "answer without end": lambda files: "x" * (4 << 20),
    "exit": _exit,
    "crash": lambda files: ctypes.string_at(0),
    "recurse": _overflow,
    "answer what is not JSON": lambda files: {1, 2},
    "answer something deep": _nest,
}
