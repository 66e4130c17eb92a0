# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.http import HttpResponse
from django.test import Client, RequestFactory

from lab.people.sign_in import issue_secret
from lab.tests.factories import make_user
from web.addresses import client_address, is_of_this_machine
from web.requestlog import REGISTRY, log_requests


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="kperflab.request")
    return caplog


def behind(settings: Any, proxies: int) -> None:
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": proxies}


def test_each_request_is_one_line_with_a_number_that_its_answer_carries(
    client: Client, db: None, lines: pytest.LogCaptureFixture
) -> None:
    answer = client.get("/experiments/?q=my+secret+patch")
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["X-Request-ID"])
    assert re.search(r"^GET /experiments/ 200 in \d+ ms for 127.0.0.1$", lines.messages[-1])
    assert client.get("/").headers["X-Request-ID"] != answer.headers["X-Request-ID"]


def test_a_stranger_does_not_choose_his_number_but_our_proxy_does(
    client: Client, db: None, settings: Any
) -> None:
    headers = {"X-Request-ID": "abcdef-123"}
    assert client.get("/health", headers=headers).headers["X-Request-ID"] != "abcdef-123"
    behind(settings, 1)
    assert client.get("/health", headers=headers).headers["X-Request-ID"] == "abcdef-123"
    forged = {"X-Request-ID": "abc run=5\tx"}
    assert "run" not in client.get("/health", headers=forged).headers["X-Request-ID"]


def test_what_lets_somebody_in_is_not_logged(
    client: Client, db: None, lines: pytest.LogCaptureFixture
) -> None:
    secret = issue_secret()
    client.get(f"/sign-in/here/{secret}")
    client.get("/choose-password/MQ/set-password-0123/")
    assert secret not in lines.text
    assert "/sign-in/here/***" in lines.text
    assert "/choose-password/MQ/***/" in lines.text


def test_a_page_is_logged_at_info_and_what_monitors_ask_at_debug(
    client: Client, db: None, lines: pytest.LogCaptureFixture
) -> None:
    client.get("/experiments/")
    client.get("/health")
    assert [record.levelname for record in lines.records] == ["INFO", "DEBUG"]


def test_a_path_of_a_stranger_stays_one_line(lines: pytest.LogCaptureFixture) -> None:
    request = RequestFactory().get("/x")
    request.path = "/x\n2026 INFO run=1: forged\u2028" + "a" * 5000
    request.resolver_match = None
    log_requests(lambda _: HttpResponse("x"))(request)
    assert "\n" not in lines.messages[-1]
    assert len(lines.messages[-1]) < 700


def test_durations_have_few_labels_whatever_is_asked(client: Client, db: None) -> None:
    for number in range(30):
        client.generic(f"VERB{number}", f"/nothing/{number}")
        client.get(f"/experiments/{number}/")
    labels = {
        tuple(sample.labels[name] for name in ("view", "method", "status"))
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name.endswith("_count")
    }
    assert ("none", "other", "4xx") in labels
    assert ("experiment", "GET", "4xx") in labels
    assert not [view for view, *_ in labels if any(digit in view for digit in "0123456789")]


@pytest.mark.parametrize(
    ("proxies", "headers", "address", "local"),
    [
        (0, {}, "127.0.0.1", True),
        (0, {"X-Forwarded-For": "1.2.3.4"}, "127.0.0.1", False),
        (0, {"Forwarded": "for=1.2.3.4"}, "127.0.0.1", False),
        (1, {"X-Forwarded-For": "127.0.0.1, 1.2.3.4"}, "1.2.3.4", False),
        (2, {"X-Forwarded-For": "6.6.6.6, 1.2.3.4, 10.0.0.1"}, "1.2.3.4", False),
        (1, {"X-Forwarded-For": "nonsense"}, "nonsense", False),
        (1, {}, "127.0.0.1", True),
    ],
)
def test_the_address_is_what_our_own_proxies_saw(
    settings: Any, proxies: int, headers: dict[str, str], address: str, local: bool
) -> None:
    behind(settings, proxies)
    request = RequestFactory().get("/", headers=headers)
    assert (client_address(request), is_of_this_machine(request)) == (address, local)


def test_a_request_through_our_own_socket_is_of_this_machine_unless_a_proxy_passed_it_on(
    settings: Any,
) -> None:
    behind(settings, 0)
    assert is_of_this_machine(RequestFactory().get("/", REMOTE_ADDR=""))
    assert not is_of_this_machine(RequestFactory().get("/", REMOTE_ADDR="", headers={"X-Real-IP": "1.2.3.4"}))


def test_wrong_passwords_behind_a_proxy_lock_out_their_own_address_alone(db: None, settings: Any) -> None:
    behind(settings, 1)
    settings.AXES_FAILURE_LIMIT = 2
    make_user("alice").set_password("x")
    factory = RequestFactory()

    def tried(address: str) -> int:
        client = Client(headers={"X-Forwarded-For": address})
        credentials = {"username": "alice", "password": "wrong"}
        return client.post("/sign-in/", credentials).status_code

    assert [tried("1.2.3.4") for _ in range(3)][-1] in (403, 429)
    assert tried("5.6.7.8") == 200
    assert authenticate(factory.get("/"), username="alice", password="wrong") is None
