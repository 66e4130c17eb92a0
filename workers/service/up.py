# SPDX-License-Identifier: GPL-2.0-or-later
"""Bringing the service of one machine up, and down: each step is harmless when it is done already."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from lab.environment import is_loopback, read_flag, read_number, read_variable
from lab.errors import SettingWrong
from workers.errors import MachineUnfit, ServiceDown, ServiceFailed
from workers.service import leftover_processes as left
from workers.service import postgres, programs, redis
from workers.service.place import ROOT, ServicePlace, write
from workers.service.programs import Program, ServiceOptions
from workers.service.supervising import MARK, Supervisor, environment

Say = Callable[[str], None]
# PostgreSQL's empty cluster takes 60 MiB; a disk with less than this is full tomorrow.
LEAST_BYTES = 1 << 30
WEB_S = 180.0
# Environment variables that the service keeps, for its processes and for commands on this machine.
KEPT = re.compile(r"KPERFLAB_\w+|AWS_\w+|WEB_CONCURRENCY")
OF_THIS_RUN = ("KPERFLAB_HOME", MARK)


def service_options(port: int) -> ServiceOptions:
    """Return the options in the environment. Raises SettingWrong."""
    address = read_variable("KPERFLAB_LISTEN")
    bind = read_variable("KPERFLAB_BIND") or "127.0.0.1"
    _refuse_plain(bind)
    return ServiceOptions(
        bind=bind,
        port=port,
        own_database=not read_variable("KPERFLAB_DATABASE"),
        own_redis=not read_variable("KPERFLAB_REDIS"),
        database=postgres.PostgresNetwork(address, int(read_number("KPERFLAB_POSTGRES_PORT", 5432, least=1))),
        redis=redis.RedisNetwork(address, int(read_number("KPERFLAB_REDIS_PORT", 6379, least=1))),
    )


def _refuse_plain(bind: str) -> None:
    """Raise SettingWrong where passwords would cross a network in the clear, unless that was asked for."""
    if (
        is_loopback(bind)
        or read_variable("KPERFLAB_URL").startswith("https://")
        or read_flag("KPERFLAB_PLAIN")
    ):
        return
    raise SettingWrong(
        f"KPERFLAB_BIND={bind[:80]} lets others reach the pages without TLS, and their passwords be read in transit: put a proxy with a "
        "certificate in front and set KPERFLAB_URL=https://…, or KPERFLAB_PLAIN=1 on a network that you trust"
    )


def bring_up(place: ServicePlace, options: ServiceOptions, say: Say) -> int:
    """Start whatever does not run yet; returns how many experiments the lab has.

    Raises MachineUnfit, ServiceFailed.
    """
    with _alone(place):
        supervisor = Supervisor(place)
        _need_port(options, supervisor)
        answer = _bring_up_stores(place, options, supervisor, say)
        own, targets = programs.own(options), programs.for_targets(answer["targets"])
        everything = [*programs.stores(place, options), *own]
        write(place.configuration, programs.configuration(place, everything))
        write(place.targets, programs.sections(place, targets))
        supervisor.start()
        supervisor.begin(program.name for program in [*everything, *targets])
        _wait_for_pages(place, options, own)
    return int(answer["experiments"])


def bring_up_stores(place: ServicePlace, options: ServiceOptions, say: Say) -> None:
    """Start the database and Redis alone, with their tables: for looking at them, or filling them, before anybody works."""
    with _alone(place):
        _bring_up_stores(place, options, Supervisor(place), say)


def _bring_up_stores(
    place: ServicePlace, options: ServiceOptions, supervisor: Supervisor, say: Say
) -> dict[str, Any]:
    if options.own_database:
        postgres.make_cluster(place)
    stores = programs.stores(place, options)
    running = {state.name for state in supervisor.states()} if supervisor.alive() else set()
    others = running - {store.name for store in stores}
    changed = _changed_settings(place, options) if running else []
    if changed:
        # Before the new ones are written: if this fails, the next command sees the change, too.
        say(f"settings have changed ({', '.join(changed)}): everything is restarted with the new ones")
        supervisor.end(others)
    if changed or not running:
        # The stores' own settings may have changed, too: where they listen, and their passwords.
        write(place.configuration, programs.configuration(place, stores))
        write(place.targets, "")
        supervisor.start()
    _write_environment(place, options)
    supervisor.begin(store.name for store in stores)
    if options.own_database:
        postgres.make_database(place, options.database)
    if options.own_redis:
        redis.wait(place, options.redis)
    if others and not changed and _settled(place, "look")["new_code"]:
        say("the code is new: what runs the old one is stopped first")
        supervisor.end(others)
    return _settled(place, "settle")


def bring_down(place: ServicePlace, say: Say) -> None:
    """Stop everything and see that nothing is left. Raises ServiceDown where nothing was up, ServiceFailed."""
    supervisor = Supervisor(place)
    up = supervisor.alive()
    if up:
        with suppress(ServiceFailed, ServiceDown):
            # While the tables still answer, so that work under way is returned.
            supervisor.end(
                state.name for state in supervisor.states() if state.name not in ("postgres", "redis")
            )
            for line in _settled(place, "sweep")["removed"]:
                say(f"removed {line}")
        supervisor.shut_down()
    killed = left.end_all(place)
    for line in killed:
        say(f"ended what was left: {line}")
    place.environment.unlink(missing_ok=True)
    shutil.rmtree(place.sockets, ignore_errors=True)
    if not up and not killed:
        raise ServiceDown(f"no service of {place.home} was up")


@contextmanager
def _alone(place: ServicePlace) -> Iterator[None]:
    """Allow one `make up` at a time; the second waits and finds everything done. Raises MachineUnfit."""
    _need_room(place)
    place.make()
    with place.alone():
        yield


def _need_room(place: ServicePlace) -> None:
    above = next(path for path in [place.home, *place.home.parents] if path.exists())
    free = shutil.disk_usage(above).free
    if free < LEAST_BYTES:
        raise MachineUnfit(
            f"{above} has {free >> 20} MiB free, the service wants {LEAST_BYTES >> 20}: make room, or give another KPERFLAB_HOME"
        )


def _need_port(options: ServiceOptions, supervisor: Supervisor) -> None:
    """Refuse a port that somebody else has; one that our own pages have is fine."""
    if supervisor.alive() and any(
        program.name == "web" and program.state == "RUNNING" for program in supervisor.states()
    ):
        return
    with socket.socket(socket.AF_INET6 if ":" in options.bind else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((options.bind, options.port))
        except OSError as exc:
            raise MachineUnfit(
                f"{options.bind}:{options.port} is not available ({exc.strerror}): choose another port, for example PORT=8001 make up"
            ) from exc


def _changed_settings(place: ServicePlace, options: ServiceOptions) -> list[str]:
    """Return the names of the settings that differ from those that the running processes took over, sorted."""
    try:
        before: dict[str, str] = json.loads(place.environment.read_text())
    except FileNotFoundError:
        return []
    now = _settings(place, options)
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def _write_environment(place: ServicePlace, options: ServiceOptions) -> None:
    """Keep the settings for every process of this home."""
    write(place.environment, json.dumps(_settings(place, options), indent=1))


def _settings(place: ServicePlace, options: ServiceOptions) -> dict[str, str]:
    """Return the settings for processes of this home: those of the environment, and the URLs of our own stores."""
    kept = {
        name: value for name, value in os.environ.items() if KEPT.fullmatch(name) and name not in OF_THIS_RUN
    }
    if options.own_database:
        kept["KPERFLAB_DATABASE"] = postgres.url(place, options.database)
    if options.own_redis:
        kept["KPERFLAB_REDIS"] = redis.url(place, options.redis)
    kept.setdefault("KPERFLAB_URL", f"http://127.0.0.1:{options.port}")
    kept.setdefault("KPERFLAB_STATIC", str(place.static))
    return kept


def _settled(place: ServicePlace, what: str) -> dict[str, Any]:
    """Return settled.py's answer. Raises ServiceFailed with its last lines."""
    done = subprocess.run(
        [sys.executable, "-m", "workers.service.settled", what],
        env=environment(place),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        log = place.logs / "up.log"
        log.write_text(done.stderr)
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise ServiceFailed(
            f"the lab's tables could not be brought up to date ({last[0][:300]}); all of it is in {log}"
        )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _wait_for_pages(place: ServicePlace, options: ServiceOptions, own: Sequence[Program]) -> None:
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(options.bind, options.bind)  # noqa: S104
    end = monotonic() + WEB_S
    while True:
        if _answers(f"http://{host}:{options.port}/health"):
            return
        if monotonic() > end:
            log = place.logs / f"{own[0].name}.log"
            tail = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            raise ServiceFailed(f"the pages do not answer at {host}:{options.port}; the log is {log}", tail)
        sleep(0.2)


def _answers(address: str) -> bool:
    with suppress(URLError, OSError), urlopen(address, timeout=5) as answer:  # noqa: S310  http, from our own settings
        return bool(answer.status == 200)
    return False
