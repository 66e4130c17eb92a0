# SPDX-License-Identifier: GPL-2.0-or-later
"""containers/postgres/start is killed at each of its steps: the next start makes the cluster and its database all the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.tests.debianbase import ROOT

pytestmark = pytest.mark.process

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
# Stands in front of a program, and kills its caller: once the program ran, if `kill_after` names it and its call's number.
SHIM = """#!/bin/sh
echo >>"$0.calls"
call="$(basename "$0") $(wc -l <"$0.calls")"
[ "$(basename "$0")" = initdb ] && set -- --no-sync "$@"
PATH=${PATH#*:}
case "$(basename "$0") $*" in
    "postgres -c "*) exec postgres --single -D "$PGDATA" -j lab </dev/null ;;
esac
"$(basename "$0")" "$@" || exit
[ "$call" != "$kill_after" ] || kill -9 $PPID
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    # Nobody but its owner may enter a folder of pytest's.
    folder = Path(tempfile.mkdtemp(prefix="kpl-pg-start-", dir="/tmp"))
    shutil.copy(ROOT / "containers/postgres/start", folder)
    (folder / "password").write_text("x\n")
    (folder / "data").mkdir()
    (folder / "shims").mkdir()
    for name in ("initdb", "postgres", "mv"):
        (folder / "shims" / name).write_text(SHIM)
        (folder / "shims" / name).chmod(0o755)
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "postgres:", folder], check=True)
    yield folder
    shutil.rmtree(folder)


def start(folder: Path, kill_after: str = "") -> int:
    """Run the program in a container's environment; its server ends at once, with an error if there is no database."""
    environment = {
        "PATH": f"{folder / 'shims'}:{_PLACES[0]}:/usr/bin:/bin",
        "PGDATA": str(folder / "data"),
        "POSTGRES_USER": "lab",
        "POSTGRES_DB": "lab",
        "POSTGRES_PASSWORD_FILE": str(folder / "password"),
        "kill_after": kill_after,
    }
    as_server = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    command = [*(as_server if os.geteuid() == 0 else []), "sh", str(folder / "start")]
    return subprocess.run(command, env=environment, cwd="/", check=False, timeout=60).returncode


@pytest.mark.parametrize("moment", ["initdb 1", "postgres 1", "mv 1", "mv 2", "mv 3"])
def test_a_first_start_that_is_killed_is_taken_up_by_the_next(folder: Path, moment: str) -> None:
    assert start(folder, moment) != 0
    assert start(folder) == 0
    assert (folder / "data/pg_hba.conf").read_text().count("host all all all scram-sha-256") == 1
    assert start(folder) == 0
