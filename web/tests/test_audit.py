# SPDX-License-Identifier: GPL-2.0-or-later
"""The audit log: who changed what, what was refused, and that strangers cannot fill it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from lab.audit import log as audit
from lab.models import AuditEntry, User
from lab.people.tokens import issue_token

pytestmark = [pytest.mark.hostile, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _unhurried() -> None:
    cache.clear()


def entries() -> list[tuple[str, str, str, str, int]]:
    rows = AuditEntry.objects.order_by("pk")
    return [(row.name, row.method, row.route, row.rule, row.count) for row in rows]


def test_a_change_is_kept_with_who_made_it_and_from_where(operator: Client) -> None:
    operator.post("/people/add", {"username": "eve", "role": "viewer"}, REMOTE_ADDR="192.0.2.9")
    entry = AuditEntry.objects.get()
    assert (entry.name, entry.address, entry.method, entry.path) == (
        "charlie",
        "192.0.2.9",
        "POST",
        "/people/add",
    )
    assert (entry.rule, entry.status) == ("", 200)


def test_reading_a_page_is_no_entry(operator: Client) -> None:
    assert operator.get("/lab/").status_code == 200
    assert entries() == []


def test_a_refused_page_is_an_entry(viewer: Client) -> None:
    assert viewer.get("/people/").status_code == 403
    assert entries() == [("bob", "GET", "people", "not allowed", 1)]


def test_a_token_is_named_by_its_person(client: Client, alice: User) -> None:
    headers = {"Authorization": f"Token {issue_token(user=alice, name='ci', scopes=['read'])[1]}"}
    answer = client.post("/api/v1/notes/", {"text": "x"}, "application/json", headers=headers)
    assert answer.status_code == 403
    assert entries() == [("alice", "POST", "api-notes-list", "not allowed", 1)]


def test_a_wrong_password_is_an_entry_though_its_page_is_a_200(client: Client, alice: User) -> None:
    assert client.post("/sign-in/", {"username": "alice", "password": "wrong"}).status_code == 200
    assert entries() == [("", "POST", "login", "wrong password", 1)]


def test_equal_refusals_of_a_minute_are_one_row_that_counts_them(client: Client, monkeypatch: Any) -> None:
    minute = timezone.now()
    monkeypatch.setattr("django.utils.timezone.now", lambda: minute)
    for number in range(50):
        client.post(f"/experiments/{number}/cancel")
    assert entries() == [("", "POST", "experiment_cancel", "not signed in", 50)]
    assert AuditEntry.objects.get().path == "", "a stranger's paths would fill the table"


def test_an_address_that_lets_somebody_in_is_not_written_down(client: Client, operator: Client) -> None:
    assert client.get("/sign-in/here/topsecret").status_code == 403
    assert operator.get("/sign-in/here/topsecret").status_code == 403
    assert [row.path for row in AuditEntry.objects.order_by("pk")] == ["", "/sign-in/here/***"]


def test_an_answer_comes_without_its_entry_where_the_database_cannot_write(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(request: audit.Request) -> None:
        raise DatabaseError("full")

    monkeypatch.setattr("web.audit.note_request", refuse)
    assert operator.post("/people/add", {"username": "eve", "role": "viewer"}).status_code == 200


def test_only_operators_read_it(viewer: Client, submitter: Client, operator: Client) -> None:
    assert [who.get("/lab/audit").status_code for who in (viewer, submitter, operator)] == [403, 403, 200]


def test_its_page_shows_hostile_names_as_text(operator: Client, charlie: User) -> None:
    User.objects.filter(pk=charlie.pk).update(username="<script>alert(1)</script>")
    operator.post("/people/add", {"username": "eve", "role": "viewer"})
    text = operator.get("/lab/audit").content.decode()
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_what_a_command_on_the_labs_machine_did_is_not_anybodys(operator: Client) -> None:
    command = audit.Request(None, "", "labctl", "withdraw-trust", "lab withdraw-trust linux", 0, "")
    audit.note_request(command)
    text = operator.get("/lab/audit").content.decode()
    assert "labctl lab withdraw-trust linux" in text
    assert ("the lab's machine" in text, "anybody" in text) == (True, False)


def test_it_is_read_by_person_and_by_refusal(operator: Client, viewer: Client) -> None:
    viewer.get("/people/")
    operator.post("/people/add", {"username": "eve", "role": "viewer"})
    text = operator.get("/lab/audit?refused=1").content.decode()
    assert ("not allowed" in text, "POST /people/add" in text) == (True, False)
    assert "not allowed" not in operator.get("/lab/audit?person=charlie").content.decode()


@pytest.mark.parametrize(
    "query", ["page=0", "page=99999999999999999999", "page=x", "person=%00", "person=" + "a" * 4000]
)
def test_odd_questions_of_it_are_answered(operator: Client, query: str) -> None:
    assert operator.get(f"/lab/audit?{query}").status_code == 200


def test_old_entries_and_those_beyond_the_most_are_forgotten(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    for days in (audit.KEPT_DAYS + 1, 3, 2, 1):
        AuditEntry.objects.create(at=now - timedelta(days=days), method="POST", route="x", status=200)
    monkeypatch.setattr(audit, "MOST_ROWS", 2)
    assert audit.forget_audit() == 2
    assert [(now - row.at).days for row in AuditEntry.objects.order_by("-at")] == [1, 2]
    assert audit.forget_audit() == 0
