# SPDX-License-Identifier: GPL-2.0-or-later
"""A PostgreSQL of our own: a private cluster below the state root, with Debian's programs, on a socket."""

import os
import secrets
import subprocess
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import quote

import psycopg
from psycopg import sql

from kernels.files.scratch import remove_tree
from kernels.processes.environment import minimal
from workers.errors import MachineUnfit, ServiceFailed
from workers.service.place import ServicePlace, account, folder_of, write

# Debian keeps each version's programs in a folder of its own.
PROGRAMS = Path("/usr/lib/postgresql")
USER, NAME = "postgres", "kperflab"
# After a crash it reads its journal first.
READY_S = 120.0
_INITDB_S = 120.0


@dataclass(frozen=True, slots=True)
class PostgresNetwork:
    """The address for other machines; without one only the socket is open."""

    address: str = ""
    port: int = 5432


def programs(cluster: Path) -> Path:
    """Return the folder of PostgreSQL's programs: of the version that made the cluster, else the newest. Raises MachineUnfit."""
    made_by = (cluster / "PG_VERSION").read_text().strip() if (cluster / "PG_VERSION").is_file() else ""
    folders = {path.parents[1].name: path.parent for path in PROGRAMS.glob("*/bin/postgres")}
    if made_by:
        if made_by not in folders:
            raise MachineUnfit(
                f"{cluster} was made by PostgreSQL {made_by}, which is not installed; run: apt-get install postgresql-{made_by}"
            )
        return folders[made_by]
    if not folders:
        raise MachineUnfit("PostgreSQL is missing; run: apt-get install postgresql")
    return folders[
        max(folders, key=lambda version: [int(part) for part in version.split(".") if part.isdecimal()])
    ]


def make_cluster(place: ServicePlace) -> None:
    """Make the cluster where there is none yet. Raises MachineUnfit, ServiceFailed."""
    owner = account(USER)
    folder_of(place.cluster, owner)
    if (place.cluster / "PG_VERSION").is_file():
        return
    # initdb writes PG_VERSION early: if it is killed, the folder looks like a cluster and is none.
    begun = place.cluster.with_name(f"{place.cluster.name}.begun")
    if begun.exists():
        remove_tree(begun)
    folder_of(begun, owner)
    secret = place.folder / "postgres.password"
    write(secret, secrets.token_urlsafe(32))
    handed = place.sockets / "postgres.password"
    write(handed, secret.read_text() + "\n", owner)
    command = [str(programs(place.cluster) / "initdb"), "--pgdata", str(begun), "--username", USER]
    command += [
        "--auth",
        "scram-sha-256",
        "--pwfile",
        str(handed),
        "--encoding",
        "UTF8",
        "--locale",
        "C.UTF-8",
    ]
    failed = f"PostgreSQL's cluster could not be made in {place.cluster}"
    try:
        done = subprocess.run(
            [*as_user(USER), *command],
            capture_output=True,
            text=True,
            timeout=_INITDB_S,
            cwd="/",
            env=minimal(),
        )
    except FileNotFoundError as exc:
        raise MachineUnfit(f'program "{exc.filename}" is missing; run: apt-get install util-linux') from exc
    except subprocess.TimeoutExpired as exc:
        raise ServiceFailed(f"{failed} in {_INITDB_S:g} s") from exc
    finally:
        handed.unlink()
    if done.returncode:
        raise ServiceFailed(failed, done.stderr[-2000:])
    begun.rename(place.cluster)


def as_user(name: str) -> list[str]:
    """Return the prefix that runs a command as this user; empty where all run as ourselves."""
    owner = account(name)
    return (
        []
        if owner is None
        else ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--init-groups"]
    )


def command(place: ServicePlace, network: PostgresNetwork) -> list[str]:
    """Return the command that starts the server. Raises MachineUnfit."""
    sockets = place.sockets / "postgres"
    folder_of(sockets, account(USER))
    settings = {
        "listen_addresses": network.address,
        "port": str(network.port),
        "unix_socket_directories": str(sockets),
        "hba_file": str(_write_hba(place, network)),
        # A worker holds three connections, a web process one a thread.
        "max_connections": "300",
        "cluster_name": NAME,
        "log_line_prefix": "%m [%p] ",
        "log_timezone": "UTC",
        "timezone": "UTC",
    }
    return [
        str(programs(place.cluster) / "postgres"),
        "-D",
        str(place.cluster),
        *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
    ]


def _write_hba(place: ServicePlace, network: PostgresNetwork) -> Path:
    """Write the access rules: with a password, over the socket and, where it listens to others, over the network."""
    path = place.cluster / "kperflab_hba.conf"
    lines = ["local all all scram-sha-256"]
    if network.address:
        lines += ["host all all 0.0.0.0/0 scram-sha-256", "host all all ::/0 scram-sha-256"]
    path.write_text("\n".join(lines) + "\n")
    owner = account(USER)
    if owner is not None:
        path.chmod(0o640)
        os.chown(path, owner.pw_uid, owner.pw_gid)
    return path


def url(place: ServicePlace, network: PostgresNetwork) -> str:
    """Return the URL of the lab's database, for KPERFLAB_DATABASE on this machine."""
    password = quote(place.password("database"), safe="")
    host = quote(str(place.sockets / "postgres"), safe="")
    return f"postgres://{NAME}:{password}@{host}:{network.port}/{NAME}"


def make_database(place: ServicePlace, network: PostgresNetwork) -> None:
    """Wait for the server, then make the lab's role and database where they are not. Raises ServiceFailed."""
    with _connect(place, network) as connection:
        password = sql.Literal(place.password("database"))
        known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (NAME,)).fetchone()
        role = "ALTER ROLE {} PASSWORD {}" if known else "CREATE ROLE {} LOGIN CREATEDB PASSWORD {}"
        connection.execute(sql.SQL(role).format(sql.Identifier(NAME), password))
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (NAME,)).fetchone():
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(*[sql.Identifier(NAME)] * 2))


def _connect(place: ServicePlace, network: PostgresNetwork) -> psycopg.Connection[tuple[object, ...]]:
    end = monotonic() + READY_S
    while True:
        try:
            return psycopg.connect(
                host=str(place.sockets / "postgres"),
                port=network.port,
                user=USER,
                password=(place.folder / "postgres.password").read_text(),
                dbname="postgres",
                autocommit=True,
                connect_timeout=5,
            )
        except psycopg.OperationalError as exc:
            if monotonic() > end or "authentication failed" in str(exc):
                raise ServiceFailed(
                    f"PostgreSQL does not answer; its log is {place.logs / 'postgres.log'}", str(exc)
                ) from exc
        sleep(0.1)
