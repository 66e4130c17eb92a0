# SPDX-License-Identifier: GPL-2.0-or-later
"""Keeps tests out of the installation's own state, and quick; loaded by `-p`, before Django reads its settings.

On disk, not in a temporary folder: the kernels that `make test` builds are found built the next time.
"""

from __future__ import annotations

import gc
import os
from functools import cache
from typing import Any

from hypothesis import HealthCheck, settings

# The same examples each time: what passed here passes in CI. KPERFLAB_SEARCH=1 looks for new ones.
# How fast the host is decides no test.
_SPEED: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fixed", derandomize=True, **_SPEED)
settings.register_profile("search", max_examples=2_000, **_SPEED)
settings.load_profile("search" if os.environ.get("KPERFLAB_SEARCH") == "1" else "fixed")

# KPERFLAB_TEST_DATABASE=postgres runs them on a PostgreSQL of their own. Those that run side by side share their parent's.
if os.environ.get("KPERFLAB_TEST_DATABASE") != "postgres":
    os.environ.pop("KPERFLAB_DATABASE", None)
elif "PYTEST_XDIST_WORKER" not in os.environ:
    from lab.tests.postgres import start_cluster

    os.environ["KPERFLAB_DATABASE"] = start_cluster()

os.environ.setdefault("KPERFLAB_HOME", f"/var/tmp/kperflab-tests-{os.getuid()}")
# Each new state root would compile the front first. Its own tests ask for it, and make sets it for tests of real kernels.
os.environ.setdefault("KPERFLAB_FRONT", "0")


# What is imported and collected stays: Python need not look through it for garbage again and again, which took an
# eighth of the CPU time.
gc.set_threshold(2_000, 20, 100)


# Megabytes of what tests try were parts of their names, which go from process to process with every report.
_LONGEST_NAME = 200


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a long text by its beginning and its length; None leaves the name to pytest."""
    if not isinstance(val, str | bytes) or len(val) <= _LONGEST_NAME:
        return None
    begin = val[:40]
    return f"{ascii(begin)[1 + isinstance(begin, bytes) : -1]}... of {len(val)}"


def pytest_collection_finish() -> None:
    """Take what is there now out of all later searches for garbage."""
    gc.freeze()


def pytest_runtest_setup() -> None:
    """Count requests from zero: those of the tests before, in the same process and minute, would be too many for this one."""
    from django.core.cache import cache

    cache.clear()


def pytest_configure() -> None:
    """Passwords are hashed for a second on purpose, which no test is about."""
    from django.conf import settings as django_settings

    from lab.tests.template_database import use_template

    use_template()
    django_settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Each test's client starts the middleware again: it looks for static files when asked, and does not list them all.
    django_settings.WHITENOISE_AUTOREFRESH = True
    _flush_swapped_tables()
    _keep_the_guest()
    _remember_toolchain()


def _remember_toolchain() -> None:
    """Ask each compiler and linker for its version once: no test changes what /usr/bin has."""
    from kernels.builds import toolchain

    toolchain._version = cache(toolchain._version)


def _flush_swapped_tables() -> None:
    """Between two tests PostgreSQL empties tables only together with those that refer to them.

    knox leaves such a one behind, of its own model that ours stands in for: Django does not know it.
    """
    from django.db.backends.postgresql.operations import DatabaseOperations

    whole = DatabaseOperations.sql_flush

    def sql_flush(self: Any, style: Any, tables: Any, **named: Any) -> Any:
        return whole(self, style, tables, **named | {"allow_cascade": True})

    DatabaseOperations.sql_flush = sql_flush  # type: ignore[method-assign]


def _keep_the_guest() -> None:
    """A test that empties the tables takes along what a migration put there: every installation's own target."""
    from django.db.models.signals import post_migrate

    def add(sender: Any, **named: Any) -> None:
        # A migration names its plan, emptied tables have none.
        if sender.name == "lab" and "plan" not in named:
            sender.get_model("Target").objects.using(named["using"]).get_or_create(name="guest")

    post_migrate.connect(add, weak=False)
