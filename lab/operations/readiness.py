# SPDX-License-Identifier: GPL-2.0-or-later
"""Check that the lab can work: database and tables, Redis, the store, disk space; a line for each.

Cheap, and asked at most once a second by each process (the store every five): monitoring may ask as often as it likes.
"""

import shutil
from dataclasses import dataclass
from threading import Lock
from time import monotonic

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder

from lab.environment import open_secrets
from lab.leases.version import known_migrations, replaced_migrations
from lab.one_line import error_line
from lab.storage.store_check import store_answer

# How long an answer counts.
KEPT_S = 1.0
# With less, not even a console is written.
LEAST_FREE = 1 << 30
REDIS_S = 2.0


@dataclass(frozen=True, slots=True)
class ReadinessCheck:
    """One thing the lab needs; message: one line for operators, which names no password."""

    name: str
    ok: bool
    message: str


_lock = Lock()
_last: tuple[float, tuple[ReadinessCheck, ...]] | None = None


def readiness() -> tuple[ReadinessCheck, ...]:
    """Every check, as it was within the last second."""
    global _last
    with _lock:
        if _last is None or monotonic() - _last[0] > KEPT_S:
            checks = checked_now()
            _last = (monotonic(), checks)
        return _last[1]


def checked_now() -> tuple[ReadinessCheck, ...]:
    """Every check, made now."""
    database = _database()
    # A database that does not answer cannot be asked for its tables.
    checks = [database, _tables()] if database.ok else [database]
    if settings.REDIS:
        checks.append(_redis())
    if (store := store_answer()) is not None:
        checks.append(ReadinessCheck("store", store.ok, store.message))
    if lines := open_secrets():
        # It works, so nothing is taken out of service; the operator reads the remark.
        checks.append(ReadinessCheck("secrets", True, "; ".join(lines)))
    return (*checks, _disk())


def _database() -> ReadinessCheck:
    began = monotonic()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as exc:
        return ReadinessCheck("database", False, f"does not answer: {error_line(exc)}")
    return ReadinessCheck(
        "database", True, f"{connection.vendor}, answers in {1000 * (monotonic() - began):.0f} ms"
    )


def _tables() -> ReadinessCheck:
    try:
        applied = set(MigrationRecorder(connection).applied_migrations())
    except DatabaseError as exc:
        return ReadinessCheck("migrations", False, f"cannot be read: {error_line(exc)}")
    missing = sorted(f"{app}.{name}" for app, name in known_migrations() - applied)
    if missing:
        listed = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
        return ReadinessCheck(
            "migrations", False, f"{len(missing)} to apply ({listed}): run manage.py migrate"
        )
    newer = [key for key in applied - known_migrations() - replaced_migrations().keys() if key[0] == "lab"]
    # While a fleet is brought up to date its tables are ahead of its processes: docs/operations/upgrading.md.
    message = f"applied, and {len(newer)} of newer code" if newer else "applied"
    return ReadinessCheck("migrations", True, message)


def _redis() -> ReadinessCheck:
    options = {"socket_connect_timeout": REDIS_S, "socket_timeout": REDIS_S}
    try:
        with redis.Redis.from_url(settings.REDIS, **options) as server:
            server.ping()
    except (redis.RedisError, OSError, ValueError) as exc:
        return ReadinessCheck("redis", False, f"does not answer: {error_line(exc)}")
    return ReadinessCheck("redis", True, "answers")


def _disk() -> ReadinessCheck:
    try:
        room = shutil.disk_usage(settings.HOME)
    except OSError as exc:
        return ReadinessCheck("disk", False, f"{settings.HOME} cannot be read: {exc.strerror}")
    return ReadinessCheck(
        "disk", room.free >= LEAST_FREE, f"{room.free / (1 << 30):.1f} GiB free under {settings.HOME}"
    )
