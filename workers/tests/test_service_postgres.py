# SPDX-License-Identifier: GPL-2.0-or-later
"""Wait for PostgreSQL's server: as long as it starts, and no longer than it makes sense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from workers.errors import ServiceFailed
from workers.service import postgres
from workers.service.place import ServicePlace


class Server:
    """Stands in for psycopg.connect: refuses with each of these words, and then answers."""

    def __init__(self, *refusals: str) -> None:
        self.refusals, self.asked = list(refusals), 0

    def __call__(self, **_: object) -> str:
        self.asked += 1
        if self.refusals:
            raise psycopg.OperationalError(self.refusals.pop(0))
        return "a connection"


@pytest.fixture
def ask_postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Server], object]:
    place = ServicePlace(tmp_path)
    place.folder.mkdir()
    (place.folder / "postgres.password").write_text("x")
    monkeypatch.setattr(postgres, "sleep", lambda seconds: None)

    def ask(server: Server) -> object:
        monkeypatch.setattr(psycopg, "connect", server)
        return postgres._connect(place, postgres.PostgresNetwork())

    return ask


def test_a_postgresql_that_still_starts_is_asked_until_it_answers(
    ask_postgres: Callable[[Server], object],
) -> None:
    server = Server(*["the database system is starting up"] * 3)
    assert ask_postgres(server) == "a connection"
    assert server.asked == 4


def test_a_postgresql_that_knows_another_password_is_asked_once(
    ask_postgres: Callable[[Server], object],
) -> None:
    server = Server("password authentication failed for user", "again")
    with pytest.raises(ServiceFailed, match=r"its log is .*postgres\.log"):
        ask_postgres(server)
    assert server.asked == 1


def test_a_postgresql_that_never_answers_is_told_with_its_log(
    ask_postgres: Callable[[Server], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "READY_S", -1.0)
    server = Server("connection refused", "connection refused")
    with pytest.raises(ServiceFailed, match=r"its log is .*postgres\.log"):
        ask_postgres(server)
    assert server.asked == 1
