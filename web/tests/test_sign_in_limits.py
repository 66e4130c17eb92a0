# SPDX-License-Identifier: GPL-2.0-or-later
"""Passwords tried for many names from one address, and what a new password ends."""

from __future__ import annotations

import base64

import pytest
from django.contrib.auth.hashers import make_password
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from lab.models import Token, User
from lab.people import sign_in as limits
from lab.people.accounts import password_link
from lab.people.tokens import issue_token
from lab.tests.factories import make_user

pytestmark = [pytest.mark.hostile, pytest.mark.django_db]
PASSWORD = "correct horse"
# Each wrong password is a request.
FEW = 12


@pytest.fixture(autouse=True)
def _unhurried(settings: pytest.MonkeyPatch) -> None:
    settings.API_RATES = dict.fromkeys(settings.API_RATES, "1000000/min")  # type: ignore[attr-defined]
    cache.clear()


@pytest.fixture
def dora(db: None) -> User:
    return make_user("dora", password=make_password(PASSWORD))


def sign_in(name: str, password: str, address: str) -> int:
    client = Client(REMOTE_ADDR=address)
    return int(client.post("/sign-in/", {"username": name, "password": password}).status_code)


def log_in(name: str, password: str, address: str) -> int:
    """Ask the API for a token."""
    basic = base64.b64encode(f"{name}:{password}".encode()).decode()
    client = Client(REMOTE_ADDR=address, headers={"Authorization": f"Basic {basic}"})
    return int(client.post("/api/v1/login/", {"name": "x"}, "application/json").status_code)


@pytest.mark.parametrize(
    ("tries", "owner", "others"),
    [
        (["192.0.2.1"], "192.0.2.1", ["192.0.2.2"]),
        (["2001:db8::1"], "2001:db8::1", ["2001:db8:0:1::1", "192.0.2.1"]),
        ([f"2001:db8::{number:x}" for number in range(1, 9)], "2001:db8::ffff", []),
    ],
)
def test_an_address_that_tried_many_names_waits_with_the_right_password_too_and_no_other_does(
    dora: User, tries: list[str], owner: str, others: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MOST_WRONG", FEW)
    for number in range(FEW):
        assert sign_in(f"name{number}", "wrong", tries[number % len(tries)]) == 200
    assert sign_in("dora", PASSWORD, owner) == 429
    assert log_in("dora", PASSWORD, owner) == 429
    assert [sign_in("dora", PASSWORD, other) for other in others] == [302] * len(others)


def test_a_changed_password_ends_all_tokens(dora: User) -> None:
    for name in ("ci", "laptop"):
        issue_token(user=dora, name=name, scopes=["read"])
    client = Client()
    client.force_login(dora)
    new = {"old_password": PASSWORD, "new_password1": "hlist-bl-43", "new_password2": "hlist-bl-43"}
    said = client.post("/account/password", new, follow=True).content.decode()
    assert "2 API tokens ended" in said
    assert not Token.objects.exists()


def test_a_refused_change_ends_none(dora: User) -> None:
    issue_token(user=dora, name="ci", scopes=["read"])
    client = Client()
    client.force_login(dora)
    new = {"old_password": "wrong", "new_password1": "hlist-bl-43", "new_password2": "hlist-bl-43"}
    assert client.post("/account/password", new).status_code == 200
    assert Token.objects.count() == 1


def test_a_password_chosen_by_an_operators_link_ends_all_tokens(dora: User) -> None:
    issue_token(user=dora, name="stolen", scopes=["read"])
    user, secret = password_link(dora)
    client = Client()
    page = client.get(reverse("choose_password", args=[user, secret]))
    new = {"new_password1": "hlist-bl-43", "new_password2": "hlist-bl-43"}
    assert client.post(page.headers["Location"], new).status_code == 302
    assert not Token.objects.exists()


def test_the_tokens_of_others_stay(dora: User) -> None:
    other = make_user("erin")
    issue_token(user=other, name="ci", scopes=["read"])
    client = Client()
    client.force_login(dora)
    new = {"old_password": PASSWORD, "new_password1": "hlist-bl-43", "new_password2": "hlist-bl-43"}
    client.post("/account/password", new)
    assert Token.objects.get().user == other
