# SPDX-License-Identifier: GPL-2.0-or-later
"""A PostgreSQL of a test's own: a fresh cluster in a folder, on a socket in it, gone with the block."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

# Where Debian keeps what only the server's own user calls.
_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


@contextmanager
def cluster(name: str = "lab") -> Iterator[str]:
    """Start a server with an empty database; yields its URL as KPERFLAB_DATABASE takes it."""
    assert _PLACES, "there is no PostgreSQL: run ./bootstrap dev"
    place = _PLACES[0]
    # A socket's path has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="kpl-pg-", dir="/tmp"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    data = folder / "data"
    _run(place / "initdb", "-D", data, "-A", "trust", "-U", "lab", "-E", "UTF8", "--locale=C", "--no-sync")
    options = f"-k {folder} -c listen_addresses= -c fsync=off -c shared_buffers=16MB -c max_connections=30"
    try:
        _run(place / "pg_ctl", "-D", data, "-l", folder / "log", "-o", options, "-w", "start")
        _run(place / "createdb", "-h", folder, "-U", "lab", name)
        yield f"postgres://lab@{quote(str(folder), safe='')}/{name}"
    finally:
        _run(place / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop", check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _run(*command: str | Path, check: bool = True) -> None:
    """Run one of the server's programs, which refuse to be root."""
    as_server = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    # Its log must not be ours, or we would wait for the server's end.
    done = subprocess.run(
        [*as_server, *map(str, command)],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if check else subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=60,
    )
    assert not check or done.returncode == 0, done.stderr
