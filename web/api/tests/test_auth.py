# SPDX-License-Identifier: GPL-2.0-or-later
import base64
from typing import Any

import pytest
from django.test import Client

from lab.models import Fetch, Token, User
from lab.people.tokens import issue_token
from lab.tests.factories import make_grid
from web.api.tests.conftest import As, Asking


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def test_a_token_says_who_asks_and_what_they_may(ask: As) -> None:
    assert ask("alice").get("me/").json() == {
        "username": "alice",
        "role": "submitter",
        "scopes": ["read", "submit"],
        "may": ["read", "submit"],
        "email": "",
        "finish_mails": True,
    }
    assert ask("charlie", "read").get("me/").json()["may"] == ["read"]


def test_people_turn_their_own_mails_off_and_on(ask: As) -> None:
    for on in (False, True):
        assert ask("alice")("PATCH", "me/", {"finish_mails": on}).json()["finish_mails"] is on
        assert ask("alice").get("me/").json()["finish_mails"] is on
        assert ask("dora").get("me/").json()["finish_mails"] is True
    assert ask("alice")("PATCH", "me/", {}).json()["finish_mails"] is True
    for body in ({"finish_mails": "yes"}, {"finish_mails": False, "email": "x@example.org"}):
        assert ask("alice")("PATCH", "me/", body).status_code == 400, body
    assert ask("alice", "read")("PATCH", "me/", {"finish_mails": False}).status_code == 403
    assert ask()("PATCH", "me/", {"finish_mails": False}).status_code == 401


def test_a_stranger_reads_unless_the_lab_is_private(ask: As, settings: Any) -> None:
    assert ask().get("me/").json() == {
        "username": "",
        "role": None,
        "scopes": None,
        "may": ["read"],
        "email": "",
        "finish_mails": False,
    }
    assert ask().get("experiments/").status_code == 200
    settings.ANONYMOUS_MAY_READ = False
    refused = ask().get("experiments/")
    assert refused.status_code == 401
    assert refused["WWW-Authenticate"] == "Token"
    assert ask("bob").get("experiments/").status_code == 200


def test_a_token_that_does_not_count_is_refused_even_where_strangers_may_read(ask: As) -> None:
    for text in ("nonsense", "", "a b", "\xff\xfe"):
        response = Asking(text or " ").get("experiments/")
        assert response.status_code == 401, text
        assert response["WWW-Authenticate"] == "Token"


def test_a_token_with_too_small_a_scope_is_told_which_it_lacks(ask: As) -> None:
    experiment = make_grid()
    response = ask("charlie", "read").post(f"experiments/{experiment.pk}/cancel/")
    assert response.status_code == 403
    assert 'no scope "submit", only read' in response.json()["detail"]


def test_a_viewer_is_told_whom_to_ask(ask: As) -> None:
    response = ask("bob").post("experiments/", {})
    assert response.status_code == 403
    assert "a viewer may not submit; ask an operator" in response.json()["detail"]


def test_a_session_reads_and_needs_its_csrf_token_to_write(people: dict[str, User]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(people["alice"])
    assert client.get("/api/v1/me/").json()["username"] == "alice"
    refused = client.post("/api/v1/experiments/", "{}", content_type="application/json")
    assert refused.status_code == 403
    assert refused["Content-Type"] == "application/problem+json"
    assert "CSRF" in refused.json()["detail"]


def test_a_password_gives_a_token_once(people: dict[str, User]) -> None:
    made = Asking().post("login/", {"name": "laptop"}, Authorization=basic("alice", "correct horse"))
    assert made.status_code == 201
    issued = made.json()
    assert issued["scopes"] == ["read", "submit"]
    assert Asking(issued["token"]).get("me/").json()["username"] == "alice"
    assert Token.objects.get().name == "laptop"


def test_a_wrong_password_gives_none_and_is_counted(people: dict[str, User], settings: Any) -> None:
    settings.API_RATES = settings.API_RATES | {"login": "3/min"}
    for name in ("alice", "nobody", "a\0b"):
        assert Asking().post("login/", Authorization=basic(name, "wrong")).status_code == 401
    refused = Asking().post("login/", Authorization=basic("alice", "correct horse"))
    assert refused.status_code == 429
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert not Token.objects.exists()


def test_a_name_that_is_locked_is_told_so_and_how_long(people: dict[str, User]) -> None:
    wrong = [Asking().post("login/", Authorization=basic("alice", f"wrong {number}")) for number in range(10)]
    assert {answer.status_code for answer in wrong[:9]} == {401}
    refused = Asking().post("login/", Authorization=basic("alice", "correct horse"))
    assert refused.status_code == 429
    assert "wrong passwords" in refused.json()["detail"]
    assert 1 <= int(refused["Retry-After"]) <= 900
    assert not Token.objects.exists()


def test_a_password_without_a_name_is_refused(people: dict[str, User]) -> None:
    assert Asking().post("login/").status_code == 401
    assert Asking().post("login/", Authorization="Basic %%%").status_code == 401


def test_a_token_makes_no_tokens_and_ends_itself_only(ask: As, people: dict[str, User]) -> None:
    asking = ask("alice")
    refused = asking.post("tokens/", {"name": "x", "scopes": ["read"]})
    assert refused.status_code == 403
    assert "login/" in refused.json()["detail"]
    other, _ = issue_token(user=people["alice"], name="other", scopes=["read"])
    assert asking("DELETE", f"tokens/{other.token_key}/").status_code == 403
    own = next(token for token in asking.get("tokens/").json() if token["name"] == "t")
    assert asking("DELETE", f"tokens/{own['id']}/").status_code == 204
    assert asking.get("tokens/").status_code == 401


def test_a_person_makes_and_ends_tokens(people: dict[str, User]) -> None:
    client = Client()
    client.force_login(people["alice"])
    body = {"name": "ci", "scopes": ["read"], "days": 7}
    made = client.post("/api/v1/tokens/", body, content_type="application/json")
    assert made.status_code == 201
    assert [token["name"] for token in client.get("/api/v1/tokens/").json()] == ["ci"]
    assert "token" not in client.get("/api/v1/tokens/").json()[0]
    assert client.delete(f"/api/v1/tokens/{made.json()['id']}/").status_code == 204
    assert client.get("/api/v1/tokens/").json() == []
    assert Asking().get("tokens/").status_code == 401


def test_a_scope_beyond_the_role_is_told_with_its_field(people: dict[str, User]) -> None:
    client = Client()
    client.force_login(people["alice"])
    body = {"name": "ci", "scopes": ["operate"]}
    refused = client.post("/api/v1/tokens/", body, content_type="application/json")
    assert refused.status_code == 422
    assert refused.json()["errors"] == [
        {"detail": "a submitter may not operate; choose from read, submit", "pointer": "/scopes"}
    ]


@pytest.mark.parametrize(("name", "rate"), [("alice", "person"), ("", "stranger")])
def test_who_asks_too_often_is_told_when_to_come_back(ask: As, settings: Any, name: str, rate: str) -> None:
    settings.API_RATES = settings.API_RATES | {rate: "2/min"}
    asking = ask(name)
    assert [asking.get("targets/").status_code for _ in range(3)] == [200, 200, 429]
    refused = asking.get("targets/", X_Forwarded_For="203.0.113.9")
    assert refused.status_code == 429
    assert 1 <= int(refused["Retry-After"]) <= 60


def test_an_operators_token_shows_anothers_fetch_only_if_it_may_operate(
    ask: As, people: dict[str, User]
) -> None:
    row = Fetch.objects.create(user=people["alice"], kind="preview", request={"description": {}}, digest="d")
    assert ask("charlie", "operate").get(f"fetches/{row.pk}/").status_code == 200
    for scopes in (["read"], ["read", "submit"]):
        assert ask("charlie", *scopes).get(f"fetches/{row.pk}/").status_code == 404
