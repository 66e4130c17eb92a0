# SPDX-License-Identifier: GPL-2.0-or-later
"""Two that note at once that the same trends changed. On SQLite, and with KPERFLAB_TEST_DATABASE=postgres."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from django.db import connection, transaction

from lab.models import Tree, Trend
from lab.tests.factories import make_experiment
from lab.trends.stale import mark_stale, mark_unplaced

KEYS = ["a", "b"]


def wait_for_one_that_waits(seconds: float = 5.0) -> None:
    """Return once a statement waits for a lock; SQLite does not say, and lets one write after the other anyway."""
    until = time.monotonic() + seconds
    while connection.vendor == "postgresql" and time.monotonic() < until:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            if cursor.fetchone():
                return
        time.sleep(0.01)


@pytest.mark.django_db(transaction=True)
def test_an_experiment_that_ends_while_places_are_learnt_does_not_wait_for_ever() -> None:
    tree = make_experiment().tree
    for key in reversed(KEYS):
        Trend.objects.create(key=key, tree=tree, margin=0.01, latest_case=1, unplaced=1)
    begun = Event()

    def end() -> None:
        with transaction.atomic():
            mark_stale(KEYS[:1])
            begun.set()
            wait_for_one_that_waits()
            mark_stale(KEYS[1:])
        connection.close()

    def learn(tree: Tree) -> None:
        assert begun.wait(5)
        with transaction.atomic():
            mark_unplaced(tree)
        connection.close()

    with ThreadPoolExecutor(2) as pool:
        for work in [pool.submit(end), pool.submit(learn, tree)]:
            work.result(timeout=30)
    assert list(Trend.objects.order_by("key").values_list("changes", flat=True)) == [3, 3]
