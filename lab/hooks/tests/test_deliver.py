# SPDX-License-Identifier: GPL-2.0-or-later
"""Deliveries over real HTTP: what arrives, what is retried, what is given up, and where nothing goes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from lab.hooks import outgoing_http as outgoing
from lab.hooks.changes import HookFields, change_hook, deliver_again, make_hook, try_hook
from lab.hooks.deliver import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    MOST_TRIES,
    DeliveryAttempt,
    deliver_due,
    forget_old,
    pause_s,
)
from lab.hooks.events import tell_experiment
from lab.models import Delivery, Experiment, Hook, User
from lab.models.states import DeliveryState, ExperimentState
from lab.tests.factories import make_experiment, make_patch_switch, make_user, make_variant
from lab.tests.receiver import Receiver, Reply, receiving

pytestmark = pytest.mark.django_db
STATUS = {"github": "{url}/repos/o/r/statuses/{{commit}}", "gitlab": "{url}/projects/1/statuses/{{commit}}"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


@pytest.fixture
def alice() -> User:
    return make_user("alice")


@pytest.fixture(autouse=True)
def private(settings: Any) -> None:
    settings.HOOKS_PRIVATE = True


@pytest.fixture
def hook(alice: User, receiver: Receiver) -> Hook:
    return make_hook(by=alice, fields=HookFields("ours", f"{receiver.url}/in?x=1"))


@pytest.fixture
def waiting(hook: Hook, alice: User) -> Delivery:
    return try_hook(hook_id=hook.pk, by=alice)


def try_now() -> DeliveryAttempt:
    """One try of the one delivery, whenever it would be due."""
    Delivery.objects.filter(state=DeliveryState.WAITING).update(next_at=timezone.now() - timedelta(seconds=1))
    (attempt,) = deliver_due()
    return attempt


def test_an_event_arrives_signed(waiting: Delivery, hook: Hook, receiver: Receiver) -> None:
    (attempt,) = deliver_due()
    assert (attempt.state, attempt.status, attempt.answer) == ("delivered", 200, "fine")
    (got,) = receiver.got
    assert (got.method, got.path) == ("POST", "/in?x=1")
    assert got.headers["kperflab-event"] == "test"
    assert json.loads(got.body)["event"] == "test"
    # As docs/hooks.md tells a receiver to check it.
    signed = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    key = base64.b64decode(hook.secret.removeprefix("whsec_"))
    want = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    assert hmac.compare_digest(want, got.headers["webhook-signature"])
    waiting.refresh_from_db()
    assert waiting.delivered_at is not None
    assert deliver_due() == []


def test_a_server_error_is_tried_again_and_then_arrives_with_the_same_number(
    waiting: Delivery, receiver: Receiver
) -> None:
    receiver.replies = [Reply(500, b"down"), Reply(503), Reply(200)]
    (attempt,) = deliver_due()
    assert (attempt.state, attempt.status, attempt.answer) == ("waiting", 500, "down")
    waiting.refresh_from_db()
    assert waiting.next_at > timezone.now()
    assert deliver_due() == []
    assert try_now().state == "waiting"
    assert try_now().state == "delivered"
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
    waiting.refresh_from_db()
    assert waiting.attempts == 3


def test_what_never_arrives_is_given_up_and_may_be_sent_again(
    waiting: Delivery, receiver: Receiver, alice: User
) -> None:
    receiver.replies = [Reply(500)]
    states = [try_now().state for _ in range(MOST_TRIES)]
    assert states == ["waiting"] * (MOST_TRIES - 1) + ["given-up"]
    assert deliver_due() == []
    receiver.replies = [Reply(200)]
    deliver_again(delivery_id=waiting.pk, by=alice)
    (attempt,) = deliver_due()
    assert attempt.state == "delivered"


@pytest.mark.parametrize("status", [400, 401, 404, 410, 422])
def test_a_refusal_is_final(status: int, waiting: Delivery, receiver: Receiver) -> None:
    receiver.replies = [Reply(status, b"no such commit")]
    assert try_now() == DeliveryAttempt(
        "hook ours", "test", waiting.subject, status, "no such commit", DeliveryState.GIVEN_UP
    )


def test_nobody_listening_is_tried_again(waiting: Delivery, hook: Hook) -> None:
    Hook.objects.update(url="http://127.0.0.1:9/")
    attempt = try_now()
    assert (attempt.state, attempt.status) == ("waiting", None)
    assert "ConnectError" in attempt.answer


def test_a_name_that_nobody_knows_is_tried_again(waiting: Delivery) -> None:
    Hook.objects.update(url="http://nowhere.invalid/")
    attempt = try_now()
    assert attempt.state == "waiting"
    assert "nowhere.invalid is not known" in attempt.answer


def test_a_redirect_is_not_followed(waiting: Delivery, receiver: Receiver) -> None:
    with receiving() as inside:
        receiver.replies = [Reply(302, location=f"{inside.url}/secret")]
        attempt = try_now()
        assert inside.got == []
    assert attempt.state == "given-up"
    assert "redirects are not followed" in attempt.answer
    assert "/secret" in attempt.answer


def test_an_answer_that_never_ends_is_cut_at_the_deadline(
    waiting: Delivery, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "DEADLINE_S", 0.3)
    receiver.replies = [Reply(200, b"x" * 200, drip_s=0.05)]
    attempt = try_now()
    assert (attempt.state, attempt.status) == ("waiting", None)
    assert "no answer within 0.3 s" in attempt.answer


def test_of_a_long_answer_two_kilobytes_are_kept_without_control_characters(
    waiting: Delivery, receiver: Receiver
) -> None:
    receiver.replies = [Reply(200, b"\x00\x1b[31m" + b"x" * 100_000)]
    attempt = try_now()
    assert len(attempt.answer) == 2048
    assert attempt.answer.startswith("\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[31mx")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
    ],
)
def test_a_name_that_leads_inside_is_refused_whatever_else_it_leads_to(
    address: str, waiting: Delivery, receiver: Receiver, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.HOOKS_PRIVATE = False
    Hook.objects.update(url="https://rebinding.example.org/")

    async def resolved(*_: object, **__: object) -> list[Any]:
        return [(0, 0, 0, "", ("93.184.216.34", 443)), (0, 0, 0, "", (address, 443))]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", resolved)
    attempt = try_now()
    assert attempt.state == "given-up"
    assert f"rebinding.example.org is {address.removeprefix('::ffff:')}" in attempt.answer
    assert receiver.got == []


def test_the_connection_goes_to_the_address_that_was_checked_under_the_name_that_was_given(
    waiting: Delivery, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is looked up once; a second answer, which a rebinding server gives, is never asked for."""
    port = receiver.url.rpartition(":")[2]
    Hook.objects.update(url=f"http://rebinding.example.org:{port}/in")
    lookups: list[object] = []

    async def resolved(_loop: object, host: str, *_: object, **__: object) -> list[Any]:
        lookups.append(host)
        assert host == "rebinding.example.org"
        return [(0, 0, 0, "", ("127.0.0.1", port))]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", resolved)
    attempt = try_now()
    assert attempt.state == "delivered", attempt
    assert lookups == ["rebinding.example.org"]
    assert receiver.got[0].headers["host"] == f"rebinding.example.org:{port}"


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "state"), [("hook.example.org", "delivered"), ("other.example.org", "waiting")]
)
def test_tls_proves_the_name_though_the_connection_goes_to_an_address(
    name: str, state: str, waiting: Delivery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    asked = ["-subj", "/CN=x", "-addext", "subjectAltName=DNS:hook.example.org", "-days", "1", "-nodes"]
    asked += ["-keyout", str(key), "-out", str(certificate)]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", *asked]
    subprocess.run(command, check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    monkeypatch.setattr(outgoing, "_tls", lambda: ssl.create_default_context(cafile=certificate))
    with receiving(server) as secure:
        port = secure.url.rpartition(":")[2]
        Hook.objects.update(url=f"https://{name}:{port}/")

        async def resolved(*_: object, **__: object) -> list[Any]:
            return [(0, 0, 0, "", ("127.0.0.1", port))]

        monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", resolved)
        attempt = try_now()
    assert attempt.state == state, attempt
    assert ("certificate" in attempt.answer) is (state == "waiting")


def test_http_is_refused_unless_private_addresses_are_allowed(waiting: Delivery, settings: Any) -> None:
    settings.HOOKS_PRIVATE = False
    attempt = try_now()
    assert attempt.state == "given-up"
    assert "https" in attempt.answer


def test_a_disabled_hook_is_sent_nothing(waiting: Delivery, receiver: Receiver) -> None:
    Hook.objects.update(enabled=False)
    assert try_now().state == "given-up"
    assert receiver.got == []


def test_what_waits_for_somebody_who_is_shut_out_is_not_sent(waiting: Delivery, receiver: Receiver) -> None:
    User.objects.update(is_active=False)
    attempt = try_now()
    assert (attempt.state, attempt.answer) == ("given-up", "the hook's owner is shut out")
    assert receiver.got == []


def test_what_waits_for_a_hook_is_given_up_at_once_when_it_is_disabled(
    waiting: Delivery, alice: User
) -> None:
    Delivery.objects.update(next_at=timezone.now() + timedelta(hours=1))
    hook = Hook.objects.get()
    change_hook(hook_id=hook.pk, by=alice, changes={"enabled": True})
    assert deliver_due() == []
    change_hook(hook_id=hook.pk, by=alice, changes={"enabled": False})
    assert [attempt.state for attempt in deliver_due()] == ["given-up"]


def test_a_claimed_delivery_is_tried_by_one_process(waiting: Delivery, receiver: Receiver) -> None:
    late = Delivery.objects.get(pk=waiting.pk)
    deliver_due()
    from lab.hooks.deliver import _claim

    assert _claim(late, timezone.now()) is False
    assert len(receiver.got) == 1


def test_pauses_grow_four_fold_up_to_an_hour_and_differ() -> None:
    for tries in range(1, MOST_TRIES + 1):
        plain = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 4 ** (tries - 1))
        assert 0.75 * plain <= pause_s(tries) <= 1.25 * plain
    assert len({pause_s(3) for _ in range(20)}) > 1


@pytest.fixture
def judged(alice: User) -> Experiment:
    experiment = make_experiment(
        state=ExperimentState.DONE, spec={"patches": [{"name": "p", "range": f"v1..{'d' * 40}"}]}
    )
    make_patch_switch(experiment, "p", link="https://lore.kernel.org/r/2@x.org")
    make_variant(experiment, "p")
    return experiment


@pytest.mark.parametrize(
    ("kind", "path", "header", "value"),
    [
        ("github", f"/repos/o/r/statuses/{'d' * 40}", "authorization", "Bearer token"),
        ("gitlab", f"/projects/1/statuses/{'d' * 40}", "private-token", "token"),
    ],
)
def test_a_commit_status_is_posted_where_the_forge_takes_it(
    kind: str, path: str, header: str, value: str, judged: Experiment, receiver: Receiver, alice: User
) -> None:
    url = STATUS[kind].format(url=receiver.url)
    make_hook(by=alice, fields=HookFields("s", url, kind, secret="token", tree="tiny"))
    tell_experiment(judged.pk)
    assert try_now().state == "delivered"
    (got,) = receiver.got
    assert (got.method, got.path, got.headers[header]) == ("POST", path, value)
    body = json.loads(got.body)
    assert body["target_url"].endswith(f"/experiments/{judged.pk}/")
    assert body["description"] == "No answer: no boot was valid."


def test_a_check_finds_its_patch_by_message_id(judged: Experiment, receiver: Receiver, alice: User) -> None:
    url = f"{receiver.url}/api/1.3/patches/{{patch}}/checks/"
    make_hook(by=alice, fields=HookFields("pw", url, "patchwork", secret="token"))
    tell_experiment(judged.pk)
    receiver.replies = [Reply(200, b"[]"), Reply(200, b'[{"id": 815, "name": "x"}]'), Reply(201, b"{}")]
    attempt = try_now()
    assert attempt.state == "waiting"
    assert "does not know the patch" in attempt.answer
    assert try_now().state == "delivered"
    assert [(got.method, got.path) for got in receiver.got[1:]] == [
        ("GET", "/api/1.3/patches/?msgid=2@x.org"),
        ("POST", "/api/1.3/patches/815/checks/"),
    ]
    assert "authorization" not in receiver.got[1].headers
    assert json.loads(receiver.got[2].body)["context"] == "kperflab-an-experiment"


def test_a_status_that_was_overtaken_is_not_sent(judged: Experiment, receiver: Receiver, alice: User) -> None:
    url = STATUS["github"].format(url=receiver.url)
    make_hook(by=alice, fields=HookFields("s", url, "github", secret="token", tree="tiny"))
    Experiment.objects.update(state=ExperimentState.QUEUED)
    tell_experiment(judged.pk)
    receiver.replies = [Reply(500), Reply(200)]
    assert try_now().state == "waiting"
    Experiment.objects.update(state=ExperimentState.DONE)
    tell_experiment(judged.pk)
    Delivery.objects.update(next_at=timezone.now() - timedelta(seconds=1))
    assert {attempt.event: attempt.state for attempt in deliver_due()} == {
        "experiment.queued": "given-up",
        "experiment.done": "delivered",
    }
    assert [json.loads(got.body)["state"] for got in receiver.got] == ["pending", "error"]


def test_an_experiment_without_a_commit_is_no_status(receiver: Receiver, alice: User) -> None:
    experiment = make_experiment(state=ExperimentState.DONE, spec={"patches": [{"name": "p", "text": "x"}]})
    make_patch_switch(experiment, "p")
    url = STATUS["github"].format(url=receiver.url)
    make_hook(by=alice, fields=HookFields("s", url, "github", secret="token", tree="tiny"))
    tell_experiment(experiment.pk)
    assert not Delivery.objects.exists()


def test_old_deliveries_are_removed_and_waiting_ones_stay(hook: Hook, alice: User) -> None:
    for _ in range(3):
        try_hook(hook_id=hook.pk, by=alice)
    Delivery.objects.filter(pk__lte=Delivery.objects.order_by("pk")[1].pk).update(state="delivered")
    Delivery.objects.update(created_at=timezone.now() - timedelta(days=31))
    Delivery.objects.filter(pk=Delivery.objects.order_by("pk")[0].pk).update(created_at=timezone.now())
    assert forget_old() == 1
    assert Delivery.objects.count() == 2


def test_many_slow_receivers_are_waited_for_side_by_side(
    hook: Hook, receiver: Receiver, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "DEADLINE_S", 2.0)
    receiver.replies = [Reply(200, b"x" * 100, drip_s=0.1)]
    for _ in range(8):
        try_hook(hook_id=hook.pk, by=alice)
    assert [attempt.answer for attempt in deliver_due()] == ["no answer within 2 s"] * 8
    assert len(receiver.got) == 8
