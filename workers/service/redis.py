# SPDX-License-Identifier: GPL-2.0-or-later
"""A Redis of our own, with Debian's program, on a socket: wake-ups and a cache, nothing that must outlive it."""

import shutil
from dataclasses import dataclass
from time import monotonic, sleep
from urllib.parse import quote

from redis import Redis
from redis.exceptions import RedisError

from workers.errors import MachineUnfit, ServiceFailed
from workers.service.place import ServicePlace, account, folder_of, write

USER = "redis"
READY_S = 30.0


@dataclass(frozen=True, slots=True)
class RedisNetwork:
    """The address for other machines; without one only the socket is open."""

    address: str = ""
    port: int = 6379


def command(place: ServicePlace, network: RedisNetwork) -> list[str]:
    """Return the command that starts the server. Raises MachineUnfit."""
    program = shutil.which("redis-server")
    if program is None:
        raise MachineUnfit("Redis is missing; run: apt-get install redis-server")
    sockets = place.sockets / "redis"
    folder_of(sockets, account(USER))
    settings = {
        "port": str(network.port) if network.address else "0",
        "unixsocket": str(sockets / "redis.sock"),
        "unixsocketperm": "700",
        "daemonize": "no",
        # Waiting clients poll the database: nothing here needs a disk.
        "save": "",
        "appendonly": "no",
        "dir": str(sockets),
        "maxmemory": "256mb",
        # Evicts from the cache, never wake-ups, which do not expire.
        "maxmemory-policy": "volatile-lru",
    }
    secret = sockets / "password.conf"
    if network.address:
        settings["bind"] = network.address
        # In a file, since every user of this machine can read the arguments of programs.
        write(secret, f"requirepass {place.password('redis')}\n", account(USER))
    configuration = [str(secret)] if network.address else []
    return [
        program,
        *configuration,
        *(part for name, value in settings.items() for part in (f"--{name}", value)),
    ]


def url(place: ServicePlace, network: RedisNetwork) -> str:
    """Return the URL for KPERFLAB_REDIS on this machine."""
    login = f":{quote(place.password('redis'), safe='')}@" if network.address else ""
    return f"unix://{login}{place.sockets / 'redis' / 'redis.sock'}"


def wait(place: ServicePlace, network: RedisNetwork) -> None:
    """Wait until it answers. Raises ServiceFailed."""
    client = Redis.from_url(url(place, network), socket_timeout=2)
    end = monotonic() + READY_S
    while True:
        try:
            client.ping()
            client.close()
            return
        except RedisError as exc:
            if monotonic() > end:
                raise ServiceFailed(
                    f"Redis does not answer; its log is {place.logs / 'redis.log'}", str(exc)
                ) from exc
        sleep(0.1)
