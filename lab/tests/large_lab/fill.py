# SPDX-License-Identifier: GPL-2.0-or-later
"""Fill an empty database with a lab's work of some months, so much of it as asked for.

A hundred experiments are made one by one and compared by the lab's own code; PostgreSQL copies them. The base drifts with one step;
some patches cost something, some save something. Some of it waits and runs, where there is more than one target for it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from django.db import connection, transaction
from django.utils import timezone

from lab.models import Tree, Trend, User
from lab.tests.large_lab import copies, fleet, talk
from lab.tests.large_lab.open_work import add_open_work
from lab.tests.large_lab.profile_bodies import profile_body
from lab.tests.large_lab.size import LabSize
from lab.tests.large_lab.template import EVERY, Ground, Plan, make_template
from lab.trends.summary import refresh_trends

TREES = ("mainline", "vfs", "mm", "net-next", "tip")
_BODIES = 200


def fill(size: LabSize, *, seed: int = 1, say: Callable[[str], None] = print) -> None:
    """Make all of it. Copies need PostgreSQL, and a role that may switch the checks of keys off."""
    if size.copies > 1 and connection.vendor != "postgresql":
        raise SystemExit(
            f"more than {size.templates} experiments are copied by PostgreSQL: set KPERFLAB_DATABASE"
        )
    ground = _ground(size, np.random.default_rng(seed))
    draw = np.random.default_rng(seed)
    for number in range(min(size.templates, size.experiments)):
        with transaction.atomic():
            make_template(Plan(number, size.boots, size.iterations, size.profiles_each), ground, draw)
    say("templates made and compared")
    if connection.vendor == "postgresql" and size.experiments >= size.templates:
        _multiply(size, say)
        Trend.objects.update(stale=True)
    refresh_trends()
    now = timezone.now()
    fleet.make_history(ground.targets, now)
    talk.make_talk(max(1, size.experiments // 100), ground.people, ground.trees, now)
    with connection.cursor() as cursor:
        alone = connection.vendor == "postgresql" and not connection.in_atomic_block
        cursor.execute("VACUUM ANALYZE" if alone else "ANALYZE")


def _multiply(size: LabSize, say: Callable[[str], None]) -> None:
    apart_s = EVERY.total_seconds() * size.templates
    copying = copies.templates(apart_s, step_at=max(2, 6 * size.copies // 10))
    with copies.unchecked():
        for copy in range(1, size.copies):
            copying.copy(copy, (*copies.PLANNED, *copies.MEASURED))
            if copy % 10 == 0:
                say(f"{copy * size.templates:,} experiments copied")
        add_open_work(copying, size.copies, size.open)


def _ground(size: LabSize, draw: np.random.Generator) -> Ground:
    trees = [
        Tree.objects.create(name=name, kind="git", location=f"/srv/{name}", default_revision="master")
        for name in TREES
    ]
    talk.make_revisions(trees, copies.REVISIONS_EACH * (size.copies + 10))
    people = [
        User.objects.create(username=f"person-{at:02d}", role=User.Role.SUBMITTER)
        for at in range(max(3, size.copies // 2))
    ]
    return Ground(
        trees=trees,
        targets=fleet.make_targets(size.targets),
        people=people,
        start=timezone.now() - EVERY * (size.templates * size.copies + 1),
        bodies=[profile_body(draw) for _ in range(min(_BODIES, size.profiles_each * size.templates))],
    )
