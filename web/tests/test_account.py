# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from lab.models import Delivery, Token, User
from lab.people.accounts import stop_secret
from lab.people.sign_in import issue_secret
from lab.tests.factories import make_experiment, make_user
from web.tests.conftest import Page, signed_in

PASSWORD = "rcu-walk-42"


@pytest.fixture
def dora(db: None) -> User:
    user = make_user("dora")
    user.set_password(PASSWORD)
    user.save()
    return user


def sign_in(client: Client, password: str, **more: str) -> int:
    return client.post("/sign-in/", {"username": "dora", "password": password} | more).status_code


def test_signing_in_leads_back_to_where_one_was(client: Client, dora: User) -> None:
    posted = {"username": "dora", "password": PASSWORD, "next": "/trends/"}
    assert client.post("/sign-in/", posted).headers["Location"] == "/trends/"
    assert "dora" in client.get("/experiments/").content.decode()


@pytest.mark.parametrize(
    ("came_from", "leads_to"),
    [
        ("http://testserver/experiments/7/?a=1", "/experiments/7/%3Fa%3D1"),
        ("https://elsewhere.example/x", "/"),
        ("", "/"),
    ],
)
def test_who_must_sign_in_to_send_a_form_comes_back_to_its_page(
    client: Client, db: None, came_from: str, leads_to: str
) -> None:
    answer = client.post("/experiments/7/notes", {"text": "x"}, headers={"referer": came_from})
    assert answer.headers["Location"] == f"/sign-in/?next={leads_to}"


def test_signing_in_leads_to_no_other_site(client: Client, dora: User) -> None:
    posted = {"username": "dora", "password": PASSWORD, "next": "https://elsewhere.example/"}
    assert client.post("/sign-in/", posted).headers["Location"] == "/"


def test_a_wrong_password_is_told_and_does_not_say_who_exists(client: Client, dora: User) -> None:
    alerts = [
        client.post("/sign-in/", {"username": name, "password": "x"}).content.decode().count('role="alert"')
        for name in ("dora", "nobody")
    ]
    assert alerts == [1, 1]


def test_after_ten_wrong_passwords_even_the_right_one_waits(client: Client, dora: User) -> None:
    assert {sign_in(client, f"wrong {number}") for number in range(9)} == {200}
    sign_in(client, "wrong again")
    assert sign_in(client, PASSWORD) == 429
    assert "_auth_user_id" not in client.session
    assert sign_in(Client(REMOTE_ADDR="192.0.2.7"), PASSWORD) == 302, "from elsewhere dora is not shut out"


def test_a_password_that_was_right_forgets_the_wrong_ones(client: Client, dora: User) -> None:
    for _ in range(3):
        for number in range(6):
            assert sign_in(client, f"wrong {number}") == 200
        assert sign_in(client, PASSWORD) == 302
        client.post("/sign-out/")


def test_signing_out_takes_a_form_of_ours(submitter: Client) -> None:
    assert submitter.get("/sign-out/").status_code == 405
    submitter.post("/sign-out/")
    assert submitter.get("/account/").status_code == 302


def test_a_link_of_the_terminal_signs_in_once(client: Client, db: None) -> None:
    address = f"/sign-in/here/{issue_secret()}"
    assert client.get(address).headers["Location"] == "/"
    assert client.get("/lab/").status_code == 200
    again = Client().get(address)
    assert (again.status_code, "labctl sign-in --local" in again.content.decode()) == (403, True)


def test_a_password_is_changed_by_who_knows_it(client: Client, dora: User) -> None:
    client.force_login(dora)
    new = "hlist-bl-43"
    posted = {"old_password": "wrong", "new_password1": new, "new_password2": new}
    assert client.post("/account/password", posted).status_code == 200
    answer = client.post("/account/password", posted | {"old_password": PASSWORD}, follow=True)
    assert "Your password is changed" in answer.content.decode()
    assert sign_in(Client(), new) == 302


def test_the_link_of_a_mail_turns_mails_off_without_a_sign_in(alice: User, settings: Any) -> None:
    settings.ANONYMOUS_MAY_READ = False
    link = f"/mails/stop/{stop_secret(alice)}"
    stranger = Client(enforce_csrf_checks=True)
    assert "Stop these mails?" in stranger.get(link).content.decode()
    assert User.objects.get(pk=alice.pk).finish_mails, "programs that check links look at them"
    # As RFC 8058 has mail programs do it.
    answer = stranger.post(link, {"List-Unsubscribe": "One-Click"})
    assert (answer.status_code, "No more mails" in answer.content.decode()) == (200, True)
    assert not User.objects.get(pk=alice.pk).finish_mails
    assert "_auth_user_id" not in stranger.session


@pytest.mark.parametrize("secret", ["x", "MQ:x", "a/b", "Mg:" + "A" * 43])
def test_a_link_that_is_not_whole_turns_off_nothing(secret: str, alice: User) -> None:
    assert Client().post(f"/mails/stop/{secret}").status_code == 404
    assert Client().post(f"/mails/stop/{stop_secret(alice)[:-1]}").status_code == 404
    other = make_user("other")
    mixed = stop_secret(alice).partition(":")[0] + ":" + stop_secret(other).partition(":")[2]
    assert Client().post(f"/mails/stop/{mixed}").status_code == 404
    assert set(User.objects.values_list("finish_mails", flat=True)) == {True}


def test_the_account_page_has_a_switch_for_mails(submitter: Client, alice: User) -> None:
    assert "has no mail address" in submitter.get("/account/").content.decode()
    User.objects.filter(pk=alice.pk).update(email="alice@kernel.example")
    assert "its conclusion is sent to alice@kernel.example" in submitter.get("/account/").content.decode()
    off = submitter.post("/account/mails", {"on": "no"}, follow=True).content.decode()
    assert "Send mails to alice@kernel.example" in off
    assert not User.objects.get(pk=alice.pk).finish_mails
    submitter.post("/account/mails", {"on": "yes"})
    assert User.objects.get(pk=alice.pk).finish_mails


def test_the_account_page_says_why_no_mail_comes(submitter: Client, alice: User, settings: Any) -> None:
    User.objects.filter(pk=alice.pk).update(email="alice@kernel.example")
    Delivery.objects.create(
        user=alice,
        event="experiment.done",
        subject="experiment/1",
        payload={},
        attempts=1,
        next_at=timezone.now(),
        answer="the mail server mx:25 is down <b>",
    )
    text = submitter.get("/account/").content.decode()
    assert "the lab will retry: the mail server mx:25 is down &lt;b&gt;" in text
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert "it has no mail server" in submitter.get("/account/").content.decode()


def test_a_token_is_shown_once_and_can_be_revoked(submitter: Client, alice: User) -> None:
    posted = {"name": "laptop <b>", "scopes": ["read", "submit"], "days": "30"}
    text = submitter.post("/account/tokens", posted).content.decode()
    secret = re.search(r'<code class="secret"[^>]*>([^<]+)</code>', text)
    assert secret
    token = Token.objects.get()
    assert (token.user, token.name, token.scopes) == (alice, "laptop <b>", ["read", "submit"])
    again = submitter.get("/account/").content.decode()
    assert secret[1] not in again
    assert "laptop &lt;b&gt;" in again
    submitter.post(f"/account/tokens/{token.token_key}/revoke")
    assert not Token.objects.exists()


@pytest.mark.parametrize(
    ("over", "field"),
    [
        ({"name": ""}, "name"),
        ({"days": "soon"}, "days"),
        ({"days": "0"}, "days"),
        ({"scopes": "operate"}, "scopes"),
    ],
)
def test_a_token_that_cannot_be_is_told_and_what_was_typed_stays(
    submitter: Client, over: dict[str, str], field: str
) -> None:
    posted = {"name": "kept", "scopes": "read", "days": "30"} | over
    answer = submitter.post("/account/tokens", posted)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert f'id="{field}-error"' in text
    assert field == "name" or 'value="kept"' in text
    assert not Token.objects.exists()


def test_nobody_revokes_the_token_of_another(submitter: Client, viewer: Client) -> None:
    submitter.post("/account/tokens", {"name": "mine", "scopes": "read", "days": "1"})
    assert viewer.post(f"/account/tokens/{Token.objects.get().token_key}/revoke").status_code == 404
    assert Token.objects.exists()


def test_the_account_page_is_kept_in_no_cache(submitter: Client) -> None:
    assert "no-store" in submitter.get("/account/").headers["Cache-Control"]


def test_an_operator_invites_somebody_who_then_chooses_a_password(operator: Client) -> None:
    text = operator.post("/people/add", {"username": "dora", "role": "submitter"}).content.decode()
    link = re.search(r"http://testserver(/choose-password/[^<\s]+)</code>", text)
    assert link
    guest = Client()
    form = guest.get(link[1], follow=True)
    assert "For dora." in form.content.decode()
    chosen = {"new_password1": PASSWORD, "new_password2": PASSWORD}
    done = guest.post(form.redirect_chain[-1][0], chosen)
    assert done.headers["Location"] == "/"
    assert guest.get("/experiments/new").status_code == 200
    assert "This link was already used" in Client().get(link[1], follow=True).content.decode()


def test_an_operator_changes_roles_and_shuts_people_out(
    operator: Client, submitter: Client, alice: User
) -> None:
    operator.post(f"/people/{alice.pk}/change", {"role": "viewer"})
    assert submitter.get("/experiments/new").status_code == 403
    operator.post(f"/people/{alice.pk}/change", {"email": "alice@lab.example"})
    assert User.objects.get(pk=alice.pk).email == "alice@lab.example"
    refused = operator.post(f"/people/{alice.pk}/change", {"email": "<b>nowhere"})
    assert refused.status_code == 422
    assert "&lt;b&gt;nowhere&quot; is not a mail address" in refused.content.decode()
    assert operator.post(f"/people/{alice.pk}/change", {"active": "true"}).status_code == 400
    assert User.objects.get(pk=alice.pk).is_active
    operator.post(f"/people/{alice.pk}/change", {"active": "no"})
    assert submitter.get("/account/").status_code == 302
    operator.post(f"/people/{alice.pk}/change", {"active": "yes"})
    assert submitter.get("/account/").status_code == 200


def test_what_is_wrong_with_an_invitation_stands_beside_its_field(operator: Client, alice: User) -> None:
    answer = operator.post("/people/add", {"username": "alice", "role": "viewer", "email": "a@lab.example"})
    text = answer.content.decode()
    assert answer.status_code == 422
    assert 'id="username-error"' in text
    assert 'value="a@lab.example"' in text


def test_the_last_operator_is_told_why_not(operator: Client, charlie: User) -> None:
    answer = operator.post(f"/people/{charlie.pk}/change", {"role": "viewer"})
    assert "charlie is the last operator" in answer.content.decode()


@pytest.mark.parametrize("address", ["/people/", "/lab/"])
def test_only_operators_see_the_pages_of_the_lab(
    client: Client, viewer: Client, submitter: Client, operator: Client, address: str
) -> None:
    answers = [visitor.get(address).status_code for visitor in (client, viewer, submitter, operator)]
    assert answers == [302, 403, 403, 200]


@pytest.mark.parametrize(
    "address", ["/people/add", "/people/1/change", "/people/1/link", "/lab/targets/1", "/account/tokens"]
)
def test_what_changes_something_is_no_address_to_look_at(operator: Client, address: str) -> None:
    assert operator.get(address).status_code == 405


def test_an_operator_disables_a_target(operator: Client, submitter: Client) -> None:
    target = make_experiment().target
    assert submitter.post(f"/lab/targets/{target.pk}", {"enabled": "no"}).status_code == 403
    assert (
        "is disabled"
        in operator.post(f"/lab/targets/{target.pk}", {"enabled": "no"}, follow=True).content.decode()
    )
    target.refresh_from_db()
    assert not target.enabled


def test_a_closed_lab_shows_strangers_the_sign_in_alone(
    client: Client, viewer: Client, settings: Any
) -> None:
    settings.ANONYMOUS_MAY_READ = False
    experiment = make_experiment()
    for address in ("/experiments/", f"/experiments/{experiment.pk}/", "/trends/", "/experiments/new", "/"):
        assert client.get(address).headers["Location"].startswith("/sign-in/?next=/"), address
        assert not viewer.get(address).headers.get("Location", "").startswith("/sign-in/"), address
    assert client.get("/api/v1/experiments/").status_code == 401
    for address in ("/sign-in/", "/health", "/static/app.css"):
        assert client.get(address).status_code == 200, address


def test_the_form_of_a_stranger_says_what_to_do(db: None) -> None:
    answer = Client(enforce_csrf_checks=True).post("/sign-in/", {"username": "a", "password": "b"})
    assert (answer.status_code, "reload the page" in answer.content.decode()) == (403, True)


def test_no_page_offers_what_it_would_refuse(page: Page, viewer: Client, submitter: Client) -> None:
    assert "/experiments/new" not in page("/experiments/", by=viewer)
    assert "/experiments/new" in page("/experiments/", by=submitter)
    assert "/experiments/new" in page("/experiments/")


def test_the_pages_of_accounts_carry_our_policy(page: Page, operator: Client, charlie: User) -> None:
    charlie.email = "<script>@x"
    charlie.save()
    for address in ("/account/", "/people/", "/lab/", "/account/password"):
        assert "<script>@x" not in page(address, by=operator)
    assert "Sign in" in page("/sign-in/")
    assert signed_in(charlie).get("/sign-in/").status_code == 302
