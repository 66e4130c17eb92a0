# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of hooks: each one's own, and what they were sent."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from lab.hooks.changes import HookFields, make_hook
from lab.models import Delivery, Hook, User
from lab.tests.factories import make_experiment, make_user
from web.tests.conftest import SCRIPT, Page, signed_in, strip_escaped

TYPED = {
    "name": "ci",
    "kind": "webhook",
    "url": "https://ci.example.org/hook",
    "events": ["experiment.done", "alert"],
    "enabled": "yes",
}


@pytest.fixture
def hook(alice: User) -> Hook:
    made = make_hook(by=alice, fields=HookFields(f"ci {SCRIPT}", "https://ci.example.org/hook"))
    Delivery.objects.create(
        hook=made,
        event="experiment.done",
        subject="experiment/1",
        payload={"name": SCRIPT},
        state="given-up",
        attempts=8,
        status=500,
        answer=f"{SCRIPT} {'x' * 300}",
        next_at=timezone.now(),
    )
    return made


def test_a_form_becomes_a_hook(submitter: Client, page: Page) -> None:
    answer = submitter.post("/hooks/new", TYPED)
    hook = Hook.objects.get()
    assert answer.headers["Location"] == f"/hooks/{hook.pk}/"
    assert (hook.events, hook.enabled) == (["experiment.done", "alert"], True)
    assert hook.secret in page(f"/hooks/{hook.pk}/", submitter)
    submitter.post(f"/hooks/{hook.pk}/edit", TYPED | {"name": "renamed", "events": ["alert"]})
    changed = Hook.objects.get()
    assert (changed.name, changed.events, changed.secret) == ("renamed", ["alert"], hook.secret)


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"url": "https://192.168.1.1/"}, "url", "not public"),
        ({"url": "http://ci.example.org/"}, "url", "https"),
        ({"events": []}, "events", "at least one"),
        ({"kind": "github", "secret": "t"}, "url", "{commit}"),
        ({"name": ""}, "name", "1 to 100"),
    ],
)
def test_a_wrong_field_is_told_beside_it(
    typed: dict[str, str], field: str, said: str, submitter: Client
) -> None:
    answer = submitter.post("/hooks/new", TYPED | typed)
    assert answer.status_code == 422
    text = answer.content.decode()
    assert said in text.split(f'id="{field}-error">')[1]
    assert 'value="ci"' in text or field == "name"
    assert not Hook.objects.exists()


def test_a_token_of_a_forge_is_never_shown(page: Page, alice: User, submitter: Client) -> None:
    make_experiment()
    url = "https://api.github.com/repos/o/r/statuses/{commit}"
    made = make_hook(by=alice, fields=HookFields("gh", url, "github", secret="ghp_token", tree="tiny"))
    for address in (f"/hooks/{made.pk}/", f"/hooks/{made.pk}/edit"):
        assert "ghp_token" not in page(address, submitter)


def test_one_sees_ones_own_and_operators_all(
    page: Page, hook: Hook, submitter: Client, viewer: Client, operator: Client, client: Client
) -> None:
    dave = signed_in(make_user("dave"))
    assert f"/hooks/{hook.pk}/" in page("/hooks/", submitter)
    assert f"/hooks/{hook.pk}/" in page("/hooks/", operator)
    assert f"/hooks/{hook.pk}/" not in page("/hooks/", dave)
    for address in (f"/hooks/{hook.pk}/", f"/hooks/{hook.pk}/edit"):
        assert dave.get(address).status_code == 404
        assert viewer.get(address).status_code == 403
        assert client.get(address).status_code == 302
        assert operator.get(address).status_code == 200
    delivery = Delivery.objects.get()
    assert dave.post(f"/hooks/deliveries/{delivery.pk}/again").status_code == 404
    assert dave.post(f"/hooks/{hook.pk}/act", {"act": "remove"}).status_code == 404
    assert Hook.objects.exists()


def test_who_is_shut_out_is_sent_nothing_until_let_in_again(
    hook: Hook, alice: User, operator: Client
) -> None:
    def sent() -> int:
        experiment = make_experiment()
        operator.post(f"/experiments/{experiment.pk}/cancel")
        return Delivery.objects.filter(subject=f"experiment/{experiment.pk}", state="waiting").count()

    assert sent() == 1
    operator.post(f"/people/{alice.pk}/change", {"active": "no"})
    assert sent() == 0
    operator.post(f"/people/{alice.pk}/change", {"active": "yes"})
    assert sent() == 1


def test_what_was_answered_is_text(page: Page, hook: Hook, submitter: Client) -> None:
    text = page(f"/hooks/{hook.pk}/", submitter)
    assert "HTTP 500" in text
    assert "given up" in text
    assert "<script" not in strip_escaped(text)


def test_a_button_that_the_page_lacks_sends_no_test(hook: Hook, submitter: Client) -> None:
    assert submitter.post(f"/hooks/{hook.pk}/act", {"act": "delete"}).status_code == 400
    assert not Delivery.objects.filter(event="test").exists()


def test_a_delivery_is_sent_again_and_a_test_is_queued(hook: Hook, submitter: Client, page: Page) -> None:
    delivery = Delivery.objects.get()
    submitter.post(f"/hooks/deliveries/{delivery.pk}/again")
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("waiting", 0)
    assert 'name="kept" value="page=1"' in page(f"/hooks/{hook.pk}/?page=1", submitter)
    again = submitter.post(f"/hooks/deliveries/{delivery.pk}/again", {"kept": "page=1"})
    assert again.headers["Location"] == f"/hooks/{hook.pk}/?page=1"
    submitter.post(f"/hooks/{hook.pk}/act", {"act": "test"})
    assert Delivery.objects.filter(event="test", state="waiting").count() == 1
    submitter.post(f"/hooks/{hook.pk}/act", {"act": "remove"})
    assert not Hook.objects.exists()
    assert submitter.post("/hooks/deliveries/999/again").status_code == 404
