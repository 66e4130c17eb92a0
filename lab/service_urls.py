# SPDX-License-Identifier: GPL-2.0-or-later
"""Translate the URLs of database, cache and mail server into Django's settings."""

import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

import dj_database_url

from lab.environment import is_loopback
from lab.errors import SettingWrong

# How long a connection is kept for further requests; it is checked before each use, since the server may have restarted.
CONN_MAX_AGE_S = 60
# A server that is gone, or a network that was cut, is noticed within about 15 s on either side. A transaction that was left
# open by a machine that vanished would hold its rows for ever.
_SERVER_SIDE = {
    "tcp_keepalives_idle": "5s",
    "tcp_keepalives_interval": "3s",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15s",
    "idle_in_transaction_session_timeout": "60s",
    # Seeks are fast, and most data of pages is in memory: some hundred look-ups cost less than reading a whole table.
    "random_page_cost": "1.1",
    # Compiling a plan takes longer than any of ours runs.
    "jit": "off",
    # Of the prepared statements (lab/leases/prepared.py): one plan for all values.
    "plan_cache_mode": "force_generic_plan",
}
# Where Debian, Fedora and Alpine keep the authorities they trust.
AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
POSTGRES_OPTIONS: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    # Django's own cursors prepare nothing; those of lab/leases/prepared.py do so at once.
    "prepare_threshold": 0,
    "options": " ".join(f"-c {name}={value}" for name, value in _SERVER_SIDE.items()),
}


def database(url: str, home: Path) -> dict[str, Any]:
    """Django's DATABASES["default"]: PostgreSQL at a URL, or SQLite in the home without one. Raises SettingWrong."""
    if not url:
        return _sqlite(home)
    if urlsplit(url).scheme not in ("postgres", "postgresql"):
        # The URL holds a password: it is not repeated.
        raise SettingWrong(
            "KPERFLAB_DATABASE is not a PostgreSQL URL: give postgres://user:password@host:port/name"
        )
    try:
        first, several = _several(url)
        settings: dict[str, Any] = dict(
            dj_database_url.parse(first, conn_max_age=CONN_MAX_AGE_S, conn_health_checks=True)
        )
    except (ValueError, KeyError) as exc:
        raise SettingWrong(
            f"KPERFLAB_DATABASE cannot be read: {type(exc).__name__}; see its form in lab/settings.py"
        ) from exc
    if not settings.get("NAME"):
        raise SettingWrong("KPERFLAB_DATABASE names no database: end the URL with /name")
    asked: dict[str, Any] = settings.get("OPTIONS", {})
    if several:
        settings["HOST"], settings["PORT"] = (",".join(each) for each in zip(*several, strict=True))
        # Of a primary and its standbys, whichever is the primary now.
        asked = {"target_session_attrs": "read-write"} | asked
    settings["OPTIONS"] = POSTGRES_OPTIONS | _verified(str(settings.get("HOST") or ""), asked) | asked
    return settings


def _several(url: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a URL with its first host alone, and host and port of each where it names several, separated by commas.

    libpq takes such lists; the library that reads our URLs does not.
    """
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    names = hosts.split(",")
    if len(names) == 1:
        return url, []
    each = [urlsplit(f"//{name}") for name in names]
    first = urlunsplit(parts._replace(netloc=f"{login}{at}{names[0]}"))
    return first, [(unquote(host.hostname or ""), str(host.port or 5432)) for host in each]


def _verified(host: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by which a remote server must prove its name, unless the URL says otherwise (?sslmode=require)."""
    mode = str(asked.get("sslmode", "" if _is_here(host) else "verify-full"))
    # Other modes get no authorities: libpq refuses them beside `system`, and would verify by a file.
    return {"sslmode": mode, "sslrootcert": authorities()} if mode.startswith("verify-") else {}


def _is_here(hosts: str) -> bool:
    return all(not host or host.startswith("/") or is_loopback(host) for host in hosts.split(","))


def authorities() -> str:
    """Return the file of certificate authorities that this machine trusts; SSL_CERT_FILE names another one.

    psycopg's wheels bring an OpenSSL whose own folder of authorities no machine has: libpq's `system` is empty there.
    """
    paths = (os.environ.get("SSL_CERT_FILE", ""), *AUTHORITIES)
    return next((path for path in paths if path and Path(path).is_file()), "system")


def close_tables(connection: Any, **_about: Any) -> None:
    """Make the file of an SQLite database private as soon as it exists."""
    if connection.vendor == "sqlite" and (name := str(connection.settings_dict["NAME"])).startswith("/"):
        make_private(Path(name))


def make_private(path: Path) -> None:
    """Close a file and what SQLite keeps beside it to other users; SQLite makes them by the umask."""
    for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))):
        with suppress(FileNotFoundError, PermissionError):
            # Not opened: closing it again would drop SQLite's own locks.
            if stat.S_IMODE(each.stat().st_mode) & 0o077:
                each.chmod(0o600)


def _sqlite(home: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(home / "kperflab.sqlite3"),
        # WAL lets the pages read while a worker writes; IMMEDIATE takes the write lock at BEGIN, so
        # that two writers wait for each other instead of failing half way.
        "OPTIONS": {
            "timeout": 30,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
        # A file of its own: the queue's tests race threads, which an in-memory database cannot.
        "TEST": {"NAME": str(Path(tempfile.gettempdir()) / f"kperflab-{os.getpid()}.sqlite3")},
    }


def caches(redis_url: str) -> dict[str, dict[str, Any]]:
    """Django's CACHES: Redis, which all processes share, or each process its own memory. Raises SettingWrong."""
    if not redis_url:
        return {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    if urlsplit(redis_url).scheme not in ("redis", "rediss", "unix"):
        raise SettingWrong(
            "KPERFLAB_REDIS is not a Redis URL: give redis://:password@host:port/0 or unix:///path"
        )
    # A lab without Redis starts a tenth faster this way.
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return {
        "default": {
            "BACKEND": "lab.operations.cache.ForgivingRedis",
            "LOCATION": redis_url,
            "KEY_PREFIX": "kperflab",
            # A connection that a restart left dead is reopened once; the library's own retries wait for seconds.
            "OPTIONS": {"socket_connect_timeout": 2, "socket_timeout": 2, "retry": Retry(NoBackoff(), 1)},
        }
    }


def mail_server(url: str) -> SplitResult:
    """Return the parts of the mail server's URL; without a host where it is empty. Raises SettingWrong."""
    parts = urlsplit(url)
    try:
        known = not url or (parts.scheme in ("smtp", "smtps") and parts.hostname and parts.port != 0)
    except ValueError:
        known = False
    if not known:
        # The URL holds a password: it is not repeated.
        raise SettingWrong(
            "KPERFLAB_SMTP is not a mail server's URL: give smtp://user:password@host:port or smtps://…"
        )
    return parts
