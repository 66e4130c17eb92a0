# SPDX-License-Identifier: GPL-2.0-or-later
"""Python processes that start fresh for the lab's own code, at half the price of new ones.

A process that has imported libraries alone waits, and is forked for each command. The fork gets the command's environment and
folder before it imports anything of ours, so settings are read as in a new process. What a command costs at its start, and which
libraries it imports, is seen in a new one only.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

# What most commands import, and what takes longest. Nothing here reads Django's settings.
LIBRARIES = (
    *("numpy", "scipy.special", "pydantic", "httpx", "requests", "typer", "rich.console", "rich.table"),
    *("celery", "celery.app.base", "kombu.transport.redis", "redis", "psycopg", "dj_database_url"),
    *("django.core.management", "django.db.models", "django.db.backends.sqlite3.base", "django.forms"),
    *("django.http", "django.template.defaulttags", "django.test", "django.urls", "django.views.generic"),
    *("cryptography.hazmat.primitives.asymmetric.ed25519", "prometheus_client", "pythonjsonlogger.json"),
)
OURS = {"bench", "kernels", "lab", "web", "workers", "workloads"}
_MOST_BYTES = 1 << 17


def run_python(
    command: Sequence[str], env: Mapping[str, str], cwd: str | Path = "."
) -> subprocess.CompletedProcess[str]:
    """Run what follows `python` in a command line (`-m module …`, `-c code …` or `file.py …`) and wait for its end."""
    asked = json.dumps({"command": list(command), "env": dict(env), "cwd": str(Path(cwd).resolve())})
    assert len(asked.encode()) < _MOST_BYTES
    with TemporaryFile() as out, TemporaryFile() as err:
        channel = _waiting()
        socket.send_fds(channel, [asked.encode()], [out.fileno(), err.fileno()])
        status = int(channel.recv(16))
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode())
    return subprocess.CompletedProcess(list(command), status, *said)


@cache
def _waiting() -> socket.socket:
    """Start the process that is forked; it ends with this one, or as soon as nobody can ask any more."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    number = theirs.fileno()
    process = subprocess.Popen([sys.executable, __file__, str(number)], pass_fds=[number])
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _fork_for_each(channel: socket.socket) -> None:
    """Answer requests with the exit status of a fork each. Returns in the forks, as what they are to be."""
    for name in LIBRARIES:
        import_module(name)
    assert not OURS & set(sys.modules)
    gc.freeze()
    while True:
        asked, files, _, _ = socket.recv_fds(channel, _MOST_BYTES, 2)
        if not asked:
            sys.exit()
        child = os.fork()
        if not child:
            channel.close()
            return _become(json.loads(asked), files)
        for file in files:
            os.close(file)
        channel.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def _become(asked: dict[str, object], files: Sequence[int]) -> None:
    env, cwd, command = asked["env"], str(asked["cwd"]), asked["command"]
    assert isinstance(env, dict)
    assert isinstance(command, list)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    for number, file in enumerate((os.open(os.devnull, os.O_RDONLY), *files)):
        os.dup2(file, number)
        os.close(file)
    sys.path[:1] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    if command[0] == "-m":
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    elif command[0] == "-c":
        sys.argv = ["-c", *command[2:]]
        exec(compile(command[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = command
        sys.path[0] = str(Path(command[0]).resolve().parent)
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    _fork_for_each(socket.socket(fileno=int(sys.argv[1])))
