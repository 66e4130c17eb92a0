# SPDX-License-Identifier: GPL-2.0-or-later
"""A database that fails over: a synchronous standby streams from the primary, is promoted when that is killed, and takes its address.

The standby runs on a port of its own until it is promoted; then its cluster becomes the service's, as where an address moves to
another host. What the primary had confirmed, the standby has: PostgreSQL waits for it before it confirms a commit.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg

from bench.faults.blow import Blow, pid_of
from bench.faults.lab import Lab
from bench.faults.machine import kill
from bench.faults.patience import patiently
from kernels.processes.environment import minimal
from workers.service import postgres
from workers.service.place import ServicePlace, account, folder_of
from workers.service.supervising import Supervisor

_WAIT_S = 120.0
_STANDBY_PORT = 55433


@dataclass(frozen=True, slots=True)
class Standby:
    """A standby of a service's cluster: its own cluster, beside the primary's."""

    place: ServicePlace

    @property
    def cluster(self) -> Path:
        """Return its data."""
        return self.place.folder / "standby"

    @property
    def sockets(self) -> Path:
        """Return the folder of its socket."""
        return self.place.sockets / "standby"

    def make(self) -> None:
        """Copy the primary's cluster and follow it; every commit waits for it from then on."""
        self.remove()
        _let_in(self.place)
        folder_of(self.cluster, account(postgres.USER))
        folder_of(self.sockets, account(postgres.USER))
        primary = [
            "-h",
            str(self.place.sockets / "postgres"),
            "-p",
            str(_port(self.place)),
            "-U",
            postgres.USER,
        ]
        self._program("pg_basebackup", "-D", str(self.cluster), "-R", "-X", "stream", "-c", "fast", *primary)
        options = f"-p {_STANDBY_PORT} -k {self.sockets} -c listen_addresses='' -c max_connections=300"
        log = self.cluster / "standby.log"
        self._program("pg_ctl", "start", "-w", "-D", str(self.cluster), "-l", str(log), "-o", options)
        _ask(self.place, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        _ask(self.place, "SELECT pg_reload_conf()")
        _until(lambda: _ask(self.place, "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))

    def promote(self) -> None:
        """Make it a primary, still on its own port, and stop it, so that its cluster can move."""
        self._program("pg_ctl", "promote", "-w", "-D", str(self.cluster))
        self._program("pg_ctl", "stop", "-w", "-m", "fast", "-D", str(self.cluster))

    def take_over(self) -> None:
        """Put its cluster in the primary's place."""
        old = self.place.folder / "postgres.old"
        shutil.rmtree(old, ignore_errors=True)
        self.place.cluster.rename(old)
        self.cluster.rename(self.place.cluster)
        shutil.rmtree(old)

    def remove(self) -> None:
        """Stop it and remove its data."""
        if (self.cluster / "postmaster.pid").exists():
            with suppress(subprocess.CalledProcessError):
                self._program("pg_ctl", "stop", "-w", "-m", "immediate", "-D", str(self.cluster))
        shutil.rmtree(self.cluster, ignore_errors=True)
        shutil.rmtree(self.sockets, ignore_errors=True)

    def _program(self, name: str, *arguments: str) -> None:
        program = postgres.programs(self.place.cluster) / name
        subprocess.run(
            [*postgres.as_user(postgres.USER), str(program), *arguments],
            env=minimal() | {"PGPASSWORD": _password(self.place)},
            cwd="/",
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=_WAIT_S,
        )


@contextmanager
def standby(lab: Lab) -> Iterator[Standby]:
    """A standby that follows for the block; without a failover the primary waits for nobody afterwards."""
    follower = Standby(ServicePlace(lab.home))
    try:
        follower.make()
        yield follower
    finally:
        if follower.cluster.exists():
            patiently(lambda: _ask(follower.place, "ALTER SYSTEM RESET synchronous_standby_names"))
            patiently(lambda: _ask(follower.place, "SELECT pg_reload_conf()"))
        follower.remove()


@contextmanager
def failed_over(blow: Blow) -> Iterator[None]:
    """kill -9 of the primary, which stays away; the standby is promoted and takes its address."""
    follower = blow.prepared
    assert isinstance(follower, Standby)
    supervisor = Supervisor(follower.place)
    struck = kill(pid_of(blow.lab, "postgres"))
    # Nobody may start it again: supervisord would.
    supervisor.end(["postgres"])
    try:
        follower.promote()
        follower.take_over()
        blow.landed = struck
    finally:
        supervisor.begin(["postgres"])
    yield


def _let_in(place: ServicePlace) -> None:
    """Let a standby connect: replication is a database of its own to PostgreSQL's access rules."""
    rules = place.cluster / "kperflab_hba.conf"
    line = "local replication all scram-sha-256"
    text = rules.read_text()
    if line not in text:
        rules.write_text(f"{text}{line}\n")
        _ask(place, "SELECT pg_reload_conf()")


def _password(place: ServicePlace) -> str:
    return (place.folder / "postgres.password").read_text()


def _port(place: ServicePlace) -> int:
    """Return the primary's port, as the service's own URL has it."""
    url = urlsplit(json.loads(place.environment.read_text())["KPERFLAB_DATABASE"])
    return int(unquote(url.netloc).rpartition(":")[2])


def _ask(place: ServicePlace, question: str) -> object:
    """Return the first row of an answer of the primary, None without one."""
    with psycopg.connect(
        host=str(place.sockets / "postgres"),
        port=_port(place),
        user=postgres.USER,
        password=_password(place),
        dbname="postgres",
        autocommit=True,
        connect_timeout=10,
    ) as connection:
        answer = connection.execute(question)
        return answer.fetchone() if answer.description else None


def _until(holds: object) -> None:
    assert callable(holds)
    end = time.monotonic() + _WAIT_S
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError("the standby does not follow the primary")
        time.sleep(0.1)
