# SPDX-License-Identifier: GPL-2.0-or-later
"""A PostgreSQL of the tests' own: Debian's programs, a new cluster in a temporary folder, reached by its socket alone."""

from __future__ import annotations

import atexit
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import psycopg

USER = "kperflab"
START_S = 180.0


class PostgresMissing(Exception):
    """Debian's package is not installed."""

    blame = "lab"
    retry = False


def programs(root: Path = Path("/usr/lib/postgresql")) -> Path:
    """The newest version's folder of programs. Raises PostgresMissing."""
    folders = [path.parent for path in root.glob("*/bin/initdb")]
    if not folders:
        raise PostgresMissing(f"there is no PostgreSQL under {root}: run ./bootstrap dev")
    return max(folders, key=lambda path: float(re.sub(r"[^\d.]", "", path.parent.name) or 0))


def start_cluster() -> str:
    """Start a cluster that ends with this process, and return its URL. Raises PostgresMissing."""
    where = programs()
    folder = Path(tempfile.mkdtemp(prefix="kperflab-pg-"))
    # PostgreSQL refuses to run as root.
    owner = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    os.chown(folder, owner.pw_uid, owner.pw_gid)
    ids = ["--reuid", str(owner.pw_uid), "--regid", str(owner.pw_gid), "--clear-groups"]
    down = ["setpriv", *(ids if os.geteuid() == 0 else []), "--pdeathsig", "INT", "--"]
    data = folder / "data"
    made = [
        str(where / "initdb"),
        "-D",
        str(data),
        "-U",
        USER,
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
    ]
    subprocess.run([*down, *made], check=True, capture_output=True, cwd="/", timeout=START_S)
    served = [str(where / "postgres"), "-D", str(data), "-k", str(folder), "-c", "listen_addresses="]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*down, *served, "-c", "fsync=on"], stdout=log, stderr=log, cwd="/")
    atexit.register(_stop, server, folder)
    _wait(server, folder)
    return f"postgres://{USER}@{quote(str(folder), safe='')}/postgres"


def _wait(server: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + START_S
    while True:
        try:
            psycopg.connect(host=str(folder), user=USER, dbname="postgres", connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > end or server.poll() is not None:
                raise
            time.sleep(0.1)


def _stop(server: subprocess.Popen[bytes], folder: Path) -> None:
    try:
        # An interrupt ends it without waiting for connections that a test left open.
        server.send_signal(signal.SIGINT)
        server.wait(20)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    shutil.rmtree(folder, ignore_errors=True)
