# SPDX-License-Identifier: GPL-2.0-or-later
"""The service's parts: its programs, and supervisord's description of them."""

import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.service import postgres, redis
from workers.service.place import ROOT, ServicePlace

LOG_BYTES, LOGS_KEPT = 20 << 20, 3
LABCTL = (sys.executable, "-m", "workers.labctl", "work")
# The name of a target's worker: this, and the target's name.
TARGET = "target-"
# Programs that the others depend on are started first and stopped last.
FIRST, LATER = 10, 100


@dataclass(frozen=True, slots=True)
class Program:
    """One program. ends_by: the signal that stops it in good order; patience_s: how long that may take."""

    name: str
    command: Sequence[str]
    priority: int = LATER
    ends_by: str = "TERM"
    patience_s: int = 40
    user: str = ""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The options of `make up`: the address of the pages, the database and Redis, and the address for other machines."""

    bind: str
    port: int
    own_database: bool
    own_redis: bool
    database: postgres.PostgresNetwork
    redis: redis.RedisNetwork


def stores(place: ServicePlace, options: ServiceOptions) -> list[Program]:
    """Return the database and Redis, unless somebody else's were named. Raises MachineUnfit."""
    programs = []
    if options.own_database:
        command = postgres.command(place, options.database)
        # INT is its fast shutdown: clients are disconnected, nothing is lost.
        programs.append(Program("postgres", command, FIRST, "INT", 60, postgres.USER))
    if options.own_redis:
        programs.append(Program("redis", redis.command(place, options.redis), FIRST, user=redis.USER))
    return programs


def own(options: ServiceOptions) -> list[Program]:
    """Return the lab's own programs, but the workers of its targets."""
    gunicorn = [str(Path(sys.executable).with_name("gunicorn")), "-c", "python:web.serving"]
    return [
        Program("web", [*gunicorn, "--bind", f"{options.bind}:{options.port}", "web.wsgi"]),
        Program("beat", [*LABCTL, "--beat"]),
        Program("upkeep", [*LABCTL, "--upkeep"]),
        Program("builds", [*LABCTL, "--builds"]),
        Program("targets", [sys.executable, "-m", "workers.service.targets"]),
    ]


def for_targets(names: Iterable[str]) -> list[Program]:
    """Return a worker for each target."""
    return [Program(f"{TARGET}{name}", [*LABCTL, "--target", name]) for name in names]


def configuration(place: ServicePlace, programs: Sequence[Program]) -> str:
    """Return supervisord's configuration. Each program dies with supervisord, however that ends."""
    socket = place.sockets / "supervisor.sock"
    parts = [
        ("unix_http_server", {"file": str(socket), "chmod": "0700"}),
        (
            "supervisord",
            {
                "logfile": str(place.logs / "supervisord.log"),
                "pidfile": str(place.folder / "supervisord.pid"),
                "childlogdir": str(place.logs),
                "directory": str(ROOT),
                # Set explicitly, or supervisord warns that it runs as root.
                **({"user": "root"} if os.geteuid() == 0 else {}),
            },
        ),
        (
            "rpcinterface:supervisor",
            {"supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"},
        ),
        ("supervisorctl", {"serverurl": f"unix://{socket}"}),
        ("include", {"files": str(place.targets)}),
    ]
    return _written(parts) + sections(place, programs)


def sections(place: ServicePlace, programs: Iterable[Program]) -> str:
    """Return the part of the configuration that describes programs."""
    return _written((f"program:{program.name}", _section(place, program)) for program in programs)


def _written(parts: Iterable[tuple[str, dict[str, str]]]) -> str:
    lines = []
    for title, fields in parts:
        lines += [f"[{title}]", *(f"{key} = {value.replace('%', '%%')}" for key, value in fields.items()), ""]
    return "\n".join([*lines, ""])


def _section(place: ServicePlace, program: Program) -> dict[str, str]:
    before = ["setpriv", "--pdeathsig", program.ends_by]
    if program.user:
        before += postgres.as_user(program.user)[1:]
    return {
        "command": shlex.join([*before, "--", *program.command]),
        "priority": str(program.priority),
        # Programs that depend on the database are started once its tables are there.
        "autostart": "true" if program.priority == FIRST else "false",
        "autorestart": "true",
        "startsecs": "1",
        "startretries": "1000",
        "stopsignal": program.ends_by,
        "stopwaitsecs": str(program.patience_s),
        "killasgroup": "true",
        "redirect_stderr": "true",
        "stdout_logfile": str(place.logs / f"{program.name}.log"),
        "stdout_logfile_maxbytes": str(LOG_BYTES),
        "stdout_logfile_backups": str(LOGS_KEPT),
    }
