# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.test.utils import CaptureQueriesContext

from lab.models import User
from lab.operations import readiness
from lab.people.tokens import issue_token
from lab.tests.stores import choose, told_by
from web.tests.conftest import signed_in

STRANGER: dict[str, Any] = {"REMOTE_ADDR": "203.0.113.9"}


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "_last", None)


@pytest.fixture
def no_database(monkeypatch: pytest.MonkeyPatch, db: None) -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise DatabaseError("connection to server failed:\n  is it running?")

    with connection.execute_wrapper(refuse):
        yield


def test_a_process_that_answers_is_alive_whatever_its_database_does(
    client: Client, no_database: None, settings: Any
) -> None:
    for private in (False, True):
        settings.ANONYMOUS_MAY_READ = not private
        for address in ("/health", "/health/"):
            answer = client.get(address)
            assert (answer.status_code, answer.content) == (200, b"ok\n")


def test_a_lab_is_ready_with_a_line_for_each_thing_it_needs(client: Client, db: None) -> None:
    answer = client.get("/ready/")
    report = answer.json()
    assert (answer.status_code, report["ready"]) == (200, True)
    assert [check["name"] for check in report["checks"]] == ["database", "migrations", "disk"]
    assert all(check["ok"] and check["said"] and "\n" not in check["said"] for check in report["checks"])
    assert "no-cache" in answer.headers["Cache-Control"]


def test_a_lab_without_its_database_is_not_ready_and_says_so_in_one_line(
    client: Client, no_database: None
) -> None:
    answer = client.get("/ready/")
    assert answer.status_code == 503
    (database, disk) = answer.json()["checks"]
    assert database == {
        "name": "database",
        "ok": False,
        "said": "does not answer: connection to server failed: is it running?",
    }
    assert disk["ok"]


def test_a_lab_whose_tables_are_older_than_its_code_is_not_ready(client: Client, db: None) -> None:
    MigrationRecorder(connection).record_unapplied("lab", "0036_step_decisions")
    answer = client.get("/ready/")
    assert answer.status_code == 503
    assert "1 to apply (lab.0036_step_decisions): run manage.py migrate" in answer.content.decode()


def test_a_lab_whose_tables_are_newer_goes_on_while_its_processes_are_replaced(
    client: Client, db: None
) -> None:
    MigrationRecorder(connection).record_applied("lab", "9999_of_tomorrow")
    answer = client.get("/ready/")
    assert answer.status_code == 200
    assert "1 of newer code" in answer.content.decode()


def test_a_redis_that_is_away_is_told_without_its_password(client: Client, db: None, settings: Any) -> None:
    settings.REDIS = "redis://:hunter2@127.0.0.1:1/0"
    answer = client.get("/ready/")
    assert answer.status_code == 503
    assert "hunter2" not in answer.content.decode()
    assert [check["name"] for check in answer.json()["checks"] if not check["ok"]] == ["redis"]


def test_a_full_disk_is_told(client: Client, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "LEAST_FREE", 1 << 62)
    assert client.get("/ready/").status_code == 503


def test_a_store_that_is_away_is_told_by_name(
    client: Client, db: None, settings: Any, tmp_path: Path
) -> None:
    choose(settings, told_by({"KPERFLAB_STORE": str(tmp_path / "unmounted")}))
    answer = client.get("/ready/")
    assert answer.status_code == 503
    assert [check for check in answer.json()["checks"] if not check["ok"]] == [
        {
            "name": "store",
            "ok": False,
            "said": f"the store {tmp_path / 'unmounted'}: there is no directory {tmp_path / 'unmounted'}: create it, or mount it",
        }
    ]
    assert client.get("/ready/", **STRANGER).json() == {"ready": False}


def test_strangers_learn_whether_and_not_why(client: Client, no_database: None) -> None:
    answer = client.get("/ready/", **STRANGER)
    assert (answer.status_code, answer.json()) == (503, {"ready": False})


def test_operators_and_allowed_networks_learn_why(
    client: Client, charlie: User, alice: User, settings: Any
) -> None:
    def sees_checks(by: Client, **more: Any) -> bool:
        return "checks" in by.get("/ready/", **STRANGER, **more).json()

    def token(user: User, *scopes: str) -> dict[str, str]:
        return {"Authorization": f"Token {issue_token(user=user, name='x', scopes=scopes, days=1)[1]}"}

    assert not sees_checks(client)
    assert sees_checks(signed_in(charlie))
    assert not sees_checks(signed_in(alice))
    assert sees_checks(client, headers=token(charlie, "read", "operate"))
    assert not sees_checks(client, headers=token(charlie, "read"))
    assert not sees_checks(client, headers=token(alice, "read", "submit"))
    assert not sees_checks(client, headers={"Authorization": "Token nonsense"})
    settings.METRICS_FROM = (ip_network("203.0.113.0/24"),)
    assert sees_checks(client)


def test_many_questions_in_a_second_are_one_to_the_database(client: Client, db: None) -> None:
    client.get("/ready/")
    with CaptureQueriesContext(connection) as asked:
        for _ in range(20):
            client.get("/ready/")
            client.get("/health/")
    assert len(asked) == 0
