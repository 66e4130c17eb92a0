# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of `manage.py check`: that the store works, and with --deploy those of a lab that other machines reach."""

import stat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import Error
from django.core.checks import Warning as Remark

from lab.environment import is_loopback
from lab.errors import LabError
from lab.storage.store import lab_store


def store_works(app_configs: Any, **kwargs: Any) -> list[Error]:
    """Check that the store, where there is one, takes a file and gives it back."""
    try:
        store = lab_store()
        if store is not None:
            store.check()
    except LabError as exc:
        return [Error(str(exc), id="lab.E001")]
    return []


def passwords_are_not_in_the_clear(app_configs: Any, **kwargs: Any) -> list[Remark]:
    """Plain http is for this machine alone."""
    if settings.HTTPS or _alone():
        return []
    return [
        Remark(
            f"people reach the pages at {settings.PUBLIC_URL}: their passwords and tokens cross the network in the clear",
            hint="put a proxy with a certificate in front, and set KPERFLAB_URL=https://… and KPERFLAB_PROXIES=1",
            id="lab.W001",
        )
    ]


def secrets_are_ours_alone(app_configs: Any, **kwargs: Any) -> list[Remark]:
    """A user who can read the home has the secret key, every console and, without PostgreSQL, the tables."""
    home = Path(settings.HOME)
    open_paths = []
    key = home / "secret.key"
    if _mode(home) & stat.S_IWOTH:
        open_paths.append((home, "0755", "lab.W002"))
    if _mode(key) & (stat.S_IRWXG | stat.S_IRWXO):
        open_paths.append((key, "0600", "lab.W003"))
    tables = home / "kperflab.sqlite3"
    if not settings.REDIS and _mode(tables) & stat.S_IROTH and _mode(home) & stat.S_IXOTH and not _alone():
        open_paths.append((tables, "0640", "lab.W004"))
    return [
        Remark(f"{path} is open to other users of this machine", hint=f"chmod {mode} {path}", id=number)
        for path, mode, number in open_paths
    ]


def mails_leave(app_configs: Any, **kwargs: Any) -> list[Remark]:
    """Invitations, alerts and new passwords go by mail."""
    if _alone() or not settings.EMAIL_BACKEND.endswith("console.EmailBackend"):
        return []
    hint = "set KPERFLAB_SMTP=smtps://user:password@host, and keep the password in the file of KPERFLAB_SMTP_FILE"
    return [Remark("mails only go to the log", hint=hint, id="lab.W005")]


def addresses_are_true(app_configs: Any, **kwargs: Any) -> list[Remark]:
    """A proxy that ends https in front of the pages hides all client addresses behind its own."""
    if not settings.HTTPS or _proxies():
        return []
    text = (
        "a proxy serves the pages by https, but KPERFLAB_PROXIES is 0: limits and lock-outs see the proxy's address "
        "for every client"
    )
    return [Remark(text, hint="set KPERFLAB_PROXIES=1, or the number of proxies in a row", id="lab.W006")]


def tables_stand_many_writers(app_configs: Any, **kwargs: Any) -> list[Remark]:
    """SQLite has one writer at a time and no other machines."""
    if settings.REDIS and settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        hint = "set KPERFLAB_DATABASE=postgres://user:password@host/name"
        return [Remark("several workers share one SQLite file", hint=hint, id="lab.W007")]
    return []


def figures_stay_inside(app_configs: Any, **kwargs: Any) -> list[Remark]:
    """/metrics names targets, workers and what fails."""
    wide = [
        str(network)
        for network in settings.METRICS_FROM
        if network.prefixlen < (8 if network.version == 4 else 16)
    ]
    if not wide:
        return []
    hint = "name the monitoring's own network, or give it an operator's token"
    return [Remark(f"KPERFLAB_METRICS_FROM lets {', '.join(wide)} read /metrics", hint=hint, id="lab.W008")]


CHECKS = (
    passwords_are_not_in_the_clear,
    secrets_are_ours_alone,
    mails_leave,
    addresses_are_true,
    tables_stand_many_writers,
    figures_stay_inside,
)


def _alone() -> bool:
    """Return whether people reach the pages from this machine only."""
    return is_loopback(urlsplit(settings.PUBLIC_URL).hostname or "")


def _proxies() -> int:
    return int(str(settings.REST_FRAMEWORK["NUM_PROXIES"]))


def _mode(path: Path) -> int:
    return path.stat().st_mode if path.exists() else 0
