# SPDX-License-Identifier: GPL-2.0-or-later
"""Two that note at once that the same trends changed. On SQLite, and with KPERFLAB_TEST_DATABASE=postgres."""

from __future__ import annotations

from threading import Event

import pytest
from django.db import transaction

from lab.models import Trend
from lab.tests.at_once import at_once, until_one_waits
from lab.tests.factories import make_experiment
from lab.trends.stale import mark_stale, mark_unplaced

KEYS = ["a", "b"]


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
            until_one_waits()
            mark_stale(KEYS[1:])

    def learn() -> None:
        assert begun.wait(5)
        with transaction.atomic():
            mark_unplaced(tree)

    at_once(end, learn)
    assert list(Trend.objects.order_by("key").values_list("changes", flat=True)) == [3, 3]
