# SPDX-License-Identifier: GPL-2.0-or-later
"""Refusals of workers are lines in the audit log, which no stranger can fill with them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from kernels.errors import PatchRejected, TreeUnreadable
from lab.audit import log
from lab.audit.log import note_refusal, refusals_of_the_day, rule_of
from lab.errors import FieldRefused, LabUnable, SubmissionRejected
from lab.models import AuditEntry, Fetch
from lab.models.states import FetchState
from lab.submission.fetches.queue import fail_fetch
from lab.tests.factories import make_user

pytestmark = [pytest.mark.hostile, pytest.mark.django_db]


def rows() -> list[tuple[str, str, str, str, str, int]]:
    return [
        (row.name, row.method, row.route, row.rule, row.path, row.count)
        for row in AuditEntry.objects.order_by("pk")
    ]


@pytest.fixture(autouse=True)
def one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it happens within one minute."""
    now = timezone.now()
    monkeypatch.setattr("lab.audit.log.timezone.now", lambda: now)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "rule"),
    [
        (TreeUnreadable("a\x1b[2J secret"), "tree unreadable"),
        (caused(FieldRefused("git", "x"), TreeUnreadable("y")), "tree unreadable"),
        (caused(SubmissionRejected("x"), caused(PatchRejected("y"), ValueError("z"))), "patch rejected"),
    ],
)
def test_a_rule_is_the_name_of_the_first_cause_and_nothing_of_its_text(error: Exception, rule: str) -> None:
    assert rule_of(error) == rule


def a_fetch() -> Fetch:
    return Fetch.objects.create(
        user=make_user("eve"), kind="preview", request={}, state=FetchState.RUNNING, token="t", slot=1
    )


def test_a_fetch_that_a_stranger_is_to_blame_for_is_a_line_with_their_name() -> None:
    row = a_fetch()
    fail_fetch(row.pk, "t", caused(FieldRefused("git", "x"), TreeUnreadable("\x1b]0;name\x07")))  # type: ignore[arg-type]
    assert rows() == [("eve", "worker", "fetch", "tree unreadable", "", 1)]


def test_a_fetch_that_the_lab_failed_is_none() -> None:
    row = a_fetch()
    fail_fetch(row.pk, "t", LabUnable("no disk"))
    assert rows() == []


def test_a_thousand_equal_refusals_are_one_row_that_counts() -> None:
    for _ in range(1000):
        note_refusal("guest", "record corrupt")
    assert rows() == [("", "worker", "guest", "record corrupt", "", 1000)]
    assert refusals_of_the_day() == {("guest", "record corrupt"): 1000}


def test_old_ones_are_not_counted() -> None:
    note_refusal("netboot", "second address", address="192.0.2.1")
    AuditEntry.objects.update(at=timezone.now() - timedelta(days=2))
    assert refusals_of_the_day() == {}


def test_a_database_that_is_away_keeps_no_worker_from_its_work(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(request: object) -> None:
        raise DatabaseError("away")

    monkeypatch.setattr(log, "note_request", fail)
    note_refusal("build", "artifact refused")
    assert "the audit log could not be written" in caplog.text


def test_operators_see_them_on_the_page_and_among_the_figures(client: Client) -> None:
    note_refusal("guest", "record corrupt", person=make_user("eve"))
    client.force_login(make_user("op", role="operator"))  # type: ignore[arg-type]
    page = client.get("/lab/audit").content.decode()
    assert "worker guest" in page
    assert "record corrupt" in page
    assert (
        'kperflab_refusals_day{where="guest",rule="record corrupt"} 1'
        in client.get("/metrics").content.decode()
    )
