# SPDX-License-Identifier: GPL-2.0-or-later
"""People with tokens, and clients that send JSON with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.core.cache import cache
from django.test import Client

from lab.models import User
from lab.people.tokens import issue_token, scopes_of
from lab.tests.factories import make_user
from lab.tests.fetchers import at_hand

API = "/api/v1/"
PASSWORD = "correct horse"
As = Callable[..., "Asking"]


class Asking:
    """A client of the API: sends JSON, reads JSON, checks that problems are problems."""

    def __init__(self, token: str = "") -> None:
        self.headers = {"Authorization": f"Token {token}"} if token else {}
        self.client = Client(raise_request_exception=True)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        added = {name.replace("_", "-"): value for name, value in headers.items()}
        kind = "application/json"
        response = self.client.generic(
            method,
            path if path.startswith("/") else API + path,
            data=body if isinstance(body, bytes) else encoded(body),
            content_type=kind,
            headers=self.headers | added,
        )
        if response.status_code >= 400:
            assert response["Content-Type"] == "application/problem+json", response.content
            problem = response.json()
            assert problem["status"] == response.status_code
            assert problem["title"]
        return response

    def get(self, path: str, **headers: str) -> Any:
        return self("GET", path, None, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self("POST", path, body, **headers)


def encoded(body: Any) -> bytes:
    import json

    return b"" if body is None else json.dumps(body).encode()


@pytest.fixture(autouse=True)
def _unhurried(settings: Any) -> Iterator[None]:
    """Nobody is throttled unless a test says so."""
    settings.API_RATES = dict.fromkeys(settings.API_RATES, "1000000/min")
    cache.clear()
    yield
    cache.clear()


@pytest.fixture(autouse=True)
def _trees_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tree has to be fetched, unless a test says so."""
    monkeypatch.setattr("lab.submission.web_process.check_here", at_hand)


@pytest.fixture
def people(db: None) -> dict[str, User]:
    return make_people()


def make_people() -> dict[str, User]:
    """Return a person of each role by name, and a second submitter."""
    return {
        name: make_user(name, User.Role(role), password=make_password(PASSWORD))
        for name, role in (
            ("bob", "viewer"),
            ("alice", "submitter"),
            ("dora", "submitter"),
            ("charlie", "operator"),
        )
    }


@pytest.fixture
def ask(people: dict[str, User]) -> As:
    """`ask()` is a stranger, `ask("alice")` has her token, `ask("alice", "read")` one with just these scopes."""

    def asking(name: str = "", *scopes: str) -> Asking:
        if not name:
            return Asking()
        user = people[name]
        return Asking(issue_token(user=user, name="t", scopes=scopes or scopes_of(user))[1])

    return asking
