# SPDX-License-Identifier: GPL-2.0-or-later
"""Taking a chore: once a period, by one of many, and on PostgreSQL in one statement."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from lab.leases.upkeep import begin_chore, end_chore, is_done
from lab.models import Chore

on_postgres = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite takes a chore by the ORM: it has one writer"
)


@pytest.mark.django_db
def test_a_chore_is_free_until_somebody_takes_it_and_again_when_it_is_due() -> None:
    assert not is_done("sweep", 60.0)
    assert begin_chore("sweep", 60.0)
    assert not begin_chore("sweep", 60.0)
    end_chore("sweep", {"home": {"run": 3}})
    assert is_done("sweep", 60.0)
    assert not begin_chore("sweep", 60.0)
    Chore.objects.update(done_at=timezone.now() - timedelta(seconds=61))
    assert not is_done("sweep", 60.0)
    assert begin_chore("sweep", 60.0)
    assert Chore.objects.get().found == {"home": {"run": 3}}


@pytest.mark.django_db
def test_what_a_killed_worker_began_is_free_after_a_period() -> None:
    assert begin_chore("sweep", 60.0)
    Chore.objects.update(begun_at=timezone.now() - timedelta(seconds=61))
    assert begin_chore("sweep", 60.0)


@pytest.mark.django_db
def test_a_time_in_the_future_counts_for_nothing() -> None:
    Chore.objects.create(name="sweep", done_at=timezone.now() + timedelta(hours=2))
    assert not is_done("sweep", 60.0)
    assert begin_chore("sweep", 60.0)


@on_postgres
@pytest.mark.django_db
def test_taking_a_chore_is_one_statement_and_so_is_ending_it() -> None:
    for _ in ("new", "due"):
        with CaptureQueriesContext(connection) as statements:
            assert begin_chore("sweep", 0.0)
            assert not begin_chore("sweep", 60.0)
            end_chore("sweep", {})
        assert len(statements) == 3


@on_postgres
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("known", [False, True])
def test_of_many_that_want_a_chore_at_once_one_gets_it(known: bool) -> None:
    if known:
        Chore.objects.create(name="sweep", done_at=timezone.now() - timedelta(hours=1))

    def take(_: int) -> bool:
        try:
            return begin_chore("sweep", 60.0)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(16))) == 1
