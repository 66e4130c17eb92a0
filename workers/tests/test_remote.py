# SPDX-License-Identifier: GPL-2.0-or-later
"""Talking to a server that is slow, busy, away, strange, or right."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from workers.ctl.clients.base import Asking
from workers.ctl.clients.client import Client
from workers.ctl.clients.errors import (
    NotLetIn,
    Refused,
    ServerAway,
    ServerStrange,
    SettingsWrong,
)
from workers.ctl.clients.http import ATTEMPTS, LONGEST_PROGRESS_S, Server
from workers.ctl.clients.problems import field

URL = "https://lab.example"
Answer = httpx.Response | Exception


class Played:
    """A server that gives these answers in turn, the last one from then on, and notes what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[httpx.Request] = []
        self.waited: list[float] = []
        self.said: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, token: str = "") -> Client:
        return Client(self.server(token))

    def server(self, token: str = "") -> Server:
        transport = httpx.MockTransport(self)
        return Server(URL, token=token, say=self.said.append, sleep=self.waited.append, transport=transport)


def fine(**fields: object) -> httpx.Response:
    return httpx.Response(200, json=fields)


def problem(status: int, **fields: object) -> httpx.Response:
    return httpx.Response(
        status,
        content=json.dumps({"title": "x", "status": status, **fields}),
        headers={"content-type": "application/problem+json"},
    )


def test_a_busy_server_is_asked_again_when_it_says() -> None:
    played = Played(httpx.Response(429, headers={"Retry-After": "3"}), fine(id=7))
    assert played.client().experiment(7) == {"id": 7}
    assert len(played.waited) == 1
    assert 3.0 <= played.waited[0] <= 3.5
    assert "limits requests" in played.said[0]


def test_a_date_is_understood_as_a_time_to_come_back() -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=20))
    played = Played(httpx.Response(503, headers={"Retry-After": moment}), fine(id=7))
    played.client().experiment(7)
    assert 15.0 <= played.waited[0] <= 21.0


def test_a_server_that_asks_for_an_hour_is_left() -> None:
    played = Played(httpx.Response(429, headers={"Retry-After": "3600"}))
    with pytest.raises(ServerAway, match="in 3600 s"):
        played.client().experiment(7)
    assert played.waited == []


def test_waits_grow_until_the_last_attempt() -> None:
    played = Played(httpx.ConnectError("refused"))
    with pytest.raises(ServerAway, match=r"no answer from https://lab.example: refused") as caught:
        played.client().experiment(7)
    assert len(played.asked) == ATTEMPTS
    assert played.waited[3] > played.waited[0]
    assert caught.value.blame == "lab"


@pytest.mark.parametrize("lost", [httpx.ReadTimeout("slow"), httpx.ReadError("cut"), httpx.Response(504)])
def test_a_lost_answer_to_a_submission_is_asked_for_again_under_the_same_key(lost: Answer) -> None:
    played = Played(lost, httpx.Response(201, json={"id": 9, "state": "queued"}))
    assert played.client().submit({"name": "x"}, lambda _: None)["id"] == 9
    keys = {request.headers["Idempotency-Key"] for request in played.asked}
    assert len(played.asked) == 2
    assert len(keys) == 1
    assert {request.content for request in played.asked} == {b'{"name":"x"}'}


def test_a_first_request_that_the_server_works_on_for_ever_is_the_labs_fault() -> None:
    played = Played(httpx.Response(504), httpx.Response(409, headers={"Retry-After": "2"}))
    with pytest.raises(ServerAway, match="is busy") as caught:
        played.client().submit({"name": "x"}, lambda _: None)
    assert LONGEST_PROGRESS_S <= sum(played.waited) < LONGEST_PROGRESS_S + 10
    assert caught.value.blame == "lab"


def test_two_submissions_have_two_keys() -> None:
    played = Played(httpx.Response(201, json={"id": 9}))
    for _ in range(2):
        played.client().submit({"name": "x"}, lambda _: None)
    assert len({request.headers["Idempotency-Key"] for request in played.asked}) == 2


@pytest.mark.parametrize("lost", [httpx.ReadTimeout("slow"), httpx.Response(502)])
def test_what_may_not_come_twice_is_not_sent_twice(lost: Answer) -> None:
    played = Played(lost)
    with pytest.raises(ServerAway):
        played.client().cancel(7)
    assert len(played.asked) == 1


def test_what_the_server_did_not_take_may_be_sent_again() -> None:
    played = Played(httpx.ConnectError("refused"), httpx.Response(503), fine())
    played.client().cancel(7)
    assert len(played.asked) == 3


def test_the_token_goes_to_the_server() -> None:
    played = Played(fine(id=7))
    played.client("secret").experiment(7)
    assert played.asked[0].headers["Authorization"] == "Token secret"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_token_is_not_sent_where_a_redirect_points(status: int) -> None:
    played = Played(httpx.Response(status, headers={"Location": "https://evil.example/api/v1/"}))
    with pytest.raises(ServerStrange, match=r"redirects to https://evil.example"):
        played.client("secret").experiment(7)
    assert [request.url.host for request in played.asked] == ["lab.example"]


def test_a_password_goes_in_place_of_the_token() -> None:
    played = Played(fine(token="new"))
    played.client("old").log_in("alice", "pass", {})
    assert played.asked[0].headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (
            problem(401, detail="Invalid token."),
            NotLetIn,
            r"does not let you in \(Invalid token.\): run labctl login",
        ),
        (problem(403, detail="a viewer may not submit"), Refused, "a viewer may not submit"),
        (problem(404, detail="there is no experiment 7"), Refused, "there is no experiment 7"),
        (problem(409, detail="experiment 7 is done already"), Refused, "experiment 7 is done already"),
        (httpx.Response(404, text="<html>"), Refused, "is it a kperflab"),
        (httpx.Response(418, text="tea"), Refused, "HTTP 418"),
    ],
)
def test_a_refusal_is_one_line(answer: httpx.Response, kind: type[Refused], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        Played(answer).client().experiment(7)
    assert caught.value.blame == "submission"
    assert "\n" not in str(caught.value)


def test_a_refusal_points_at_the_field_as_the_file_writes_it() -> None:
    faults = [
        {"pointer": "/patches/0/text", "detail": "there is no diff in it"},
        {"pointer": "/cases/0/workload", "detail": 'cases[0].workload: there is no workload "x"'},
    ]
    with pytest.raises(Refused) as caught:
        Played(problem(422, detail="no", errors=faults)).client().submit({}, lambda _: None)
    assert str(caught.value) == "patches[0].text: there is no diff in it (and 1 more)"
    assert caught.value.detail == 'cases[0].workload: there is no workload "x"'


def test_a_hostile_server_does_not_command_the_terminal() -> None:
    with pytest.raises(Refused) as caught:
        Played(problem(409, detail="a\x1b[2Jb\nc" + "d" * 9999)).client().experiment(7)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


def test_another_service_is_told_from_a_lab() -> None:
    with pytest.raises(ServerStrange, match="text/html"):
        Played(httpx.Response(200, html="<p>")).client().experiment(7)
    with pytest.raises(ServerStrange, match="no list"):
        Played(fine(id=1)).client().names("trees")


def test_all_pages_of_a_list_are_read() -> None:
    played = Played(
        fine(results=[{"name": "a"}], next=f"{URL}/api/v1/trees/?page=2"),
        fine(results=[{"name": "b"}], next=None),
    )
    assert [row["name"] for row in played.client().names("trees")] == ["a", "b"]
    assert played.asked[1].url.params["page"] == "2"


def test_no_more_is_asked_than_is_wanted() -> None:
    played = Played(fine(results=[{"id": 2}, {"id": 1}], next=f"{URL}/?page=2"))
    assert played.client().experiments({"state": "done", "tree": ""}, 2) == [{"id": 2}, {"id": 1}]
    assert dict(played.asked[0].url.params) == {
        "ordering": "-id",
        "state": "done",
        "page": "1",
        "page_size": "2",
    }


def test_a_log_is_read_part_by_part() -> None:
    answers = [
        httpx.Response(200, content="é".encode() + b"1", headers={"Log-Complete": "false"}),
        httpx.Response(200, content=b"23", headers={"Log-Complete": "true"}),
    ]
    client = Played(*answers).client()
    first = client.log("builds", 4, 0)
    second = client.log("builds", 4, first.end)
    assert (first.text, first.end, first.complete) == ("é1", 3, False)
    assert (second.text, second.end, second.complete) == ("23", 5, True)


def test_a_character_across_two_parts_of_a_log_stays_whole() -> None:
    quote = "\N{LEFT SINGLE QUOTATION MARK}".encode()
    answers = [
        httpx.Response(200, content=b"1" + quote[:2], headers={"Log-Complete": "false", "Log-Next": "3"}),
        httpx.Response(200, content=quote + b"2", headers={"Log-Complete": "true", "Log-Next": "5"}),
    ]
    client = Played(*answers).client()
    first = client.log("builds", 4, 0)
    second = client.log("builds", 4, first.end)
    assert (first.text, first.end) == ("1", 1)
    assert (second.text, second.end) == ("\N{LEFT SINGLE QUOTATION MARK}2", 5)


@pytest.mark.parametrize("url", ["lab.example", "ftp://lab.example", "https://", "https://me:pw@lab.example"])
def test_an_address_that_is_none_is_refused_before_anything_is_sent(url: str) -> None:
    with pytest.raises(SettingsWrong, match="is not an address"):
        Server(url)


def test_pointers_are_written_as_fields() -> None:
    assert field("/patches/0/text") == "patches[0].text"
    assert field("#/measure/boots") == "measure.boots"
    assert field("/cases/1/params/a~1b") == "cases[1].params.a/b"
    assert field("") == ""


def test_a_path_of_the_server_itself_is_asked_for_as_it_is() -> None:
    played = Played(fine())
    played.server().ask(Asking("GET", "/healthz"))
    assert str(played.asked[0].url) == f"{URL}/healthz"


@pytest.mark.parametrize("value", [date(2026, 11, 20), float("nan"), {1, 2}])
def test_what_json_cannot_say_is_refused_before_anything_is_sent(value: object) -> None:
    played = Played(fine(id=7))
    with pytest.raises(SettingsWrong, match="not to be written as JSON"):
        played.client().submit({"name": value}, print)
    assert played.asked == []


@pytest.mark.parametrize(
    "url", ["http://[", "https://xn--", "ftp://lab.example", "https://user@lab.example", "lab"]
)
def test_a_server_that_is_no_address_is_refused_in_a_line(url: str) -> None:
    with pytest.raises(SettingsWrong, match="is not an address"):
        Server(url)
