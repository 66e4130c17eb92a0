# SPDX-License-Identifier: GPL-2.0-or-later
"""Following an experiment: its output, its end, and a server that is down."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from workers.ctl import progressbar
from workers.ctl.clients.base import Json, LogChunk
from workers.ctl.clients.client import Client
from workers.ctl.clients.errors import Refused, ServerAway
from workers.ctl.progressbar import Follower, drawn, follow


def experiment(**progress: Any) -> Json:
    now = {
        "finished": False,
        "builds_done": 1,
        "builds_failed": 0,
        "builds_cancelled": 0,
        "builds_total": 2,
        "boots_done": 3,
        "boots_failed": 1,
        "boots_cancelled": 0,
        "boots_total": 8,
        "now": [],
        "eta_s": None,
    } | progress
    return {"id": 7, "name": "x", "state": "done" if now["finished"] else "running", "progress": now}


BUILDING = [{"kind": "build", "id": 4, "label": "base"}]


def client(answers: list[Any], log: Callable[[str, int, int], LogChunk] | None = None) -> Client:
    def asked(_: int) -> Json:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return cast("Json", answer)

    return cast("Client", SimpleNamespace(local=True, experiment=asked, log=log))


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progressbar, "LOCAL_REFRESH_S", 0.0)


def console(*, terminal: bool = False) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=terminal, width=80, highlight=False), text


@pytest.mark.parametrize("terminal", [False, True])
def test_it_is_followed_to_its_end(terminal: bool) -> None:
    answers = [experiment(), experiment(boots_done=7), experiment(finished=True), experiment(finished=True)]
    where, text = console(terminal=terminal)
    assert follow(where, client(answers), 7)["state"] == "done"
    assert answers == []
    assert "4/8" in text.getvalue()


def test_a_line_is_told_whenever_something_else_is_done() -> None:
    boot = [{"kind": "boot", "id": 9, "label": "base: showgids, boot 1"}]
    answers = [experiment(), experiment(now=boot), experiment(now=boot), experiment(now=boot)]
    end = [experiment(finished=True), experiment(finished=True)]
    where, text = console()
    follow(where, client(answers + end), 7)
    lines = text.getvalue().splitlines()
    assert sum("booting base: showgids, boot 1" in line for line in lines) == 1
    assert "builds 1/2, boots 4/8" in lines[0]


def test_what_waits_for_a_worker_says_so() -> None:
    queued = experiment() | {"state": "queued"}
    where, text = console()
    follow(where, client([queued, queued, experiment(finished=True), experiment(finished=True)]), 7)
    assert "waiting for a worker" in text.getvalue()


def test_a_server_that_is_restarted_is_waited_for() -> None:
    away = ServerAway("no answer from https://lab.example")
    where, text = console()
    answers = [experiment(), away, away, experiment(finished=True), experiment(finished=True)]
    assert follow(where, client(answers), 7)["state"] == "done"
    assert text.getvalue().count("no answer from") == 1


def test_one_that_stays_away_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progressbar, "PATIENCE_S", -1.0)
    where, _ = console()
    with pytest.raises(ServerAway):
        follow(where, client([experiment(), ServerAway("gone")]), 7)


def test_what_is_not_there_is_not_waited_for() -> None:
    with pytest.raises(Refused):
        Follower(client([Refused("there is no experiment 7")]), 7).look()
    with pytest.raises(ServerAway):
        Follower(client([ServerAway("no answer")]), 7).look()


def test_the_last_whole_line_of_the_build_is_told() -> None:
    parts = [
        LogChunk("  CC a.o\n  CC b", 15, False),
        LogChunk(".o\n", 18, False),
        LogChunk("", 18, False),
    ]
    offsets: list[int] = []

    def log(_kind: str, _number: int, offset: int) -> LogChunk:
        offsets.append(offset)
        return parts.pop(0)

    follower = Follower(client([experiment(now=BUILDING)] * 3, log), 7)
    lines = []
    for _ in range(3):
        follower.look()
        lines.append(follower.last)
    assert lines == ["CC a.o", "CC b.o", "CC b.o"]
    assert offsets == [0, 15, 18]


def test_a_half_written_line_of_bytes_that_are_no_text_is_no_obstacle() -> None:
    written = [b"make\n" + b"\xff" * 10, b"make\n" + b"\xff" * 10 + b" done\n"]
    now = iter(written)

    def log(_kind: str, _number: int, offset: int) -> LogChunk:
        if offset < 0:
            raise Refused(f'offset: "{offset}" is not a number of bytes')
        whole = next(now)
        return LogChunk(whole[offset:].decode(errors="replace"), len(whole), False)

    follower = Follower(client([experiment(now=BUILDING)] * 2, log), 7)
    lines = []
    for _ in range(2):
        follower.look()
        lines.append(follower.last)
    assert lines == ["make", "\N{REPLACEMENT CHARACTER}" * 10 + " done"]


def test_a_build_without_a_log_yet_is_followed_all_the_same() -> None:
    def log(*_: object) -> LogChunk:
        raise Refused("no log was kept of it")

    follower = Follower(client([experiment(now=BUILDING)], log), 7)
    follower.look()
    assert follower.last == ""


def test_names_of_strangers_do_not_command_the_terminal() -> None:
    hostile = experiment(now=[{"kind": "boot", "id": 1, "label": "a\x1b[2J[red]b\nc"}]) | {
        "name": "\x1b]0;x\x07"
    }
    where, text = console(terminal=True)
    follower = Follower(client([hostile]), 7)
    follower.look()
    where.print(drawn(follower))
    assert "\x1b[2J" not in text.getvalue()
    assert "\x1b]0" not in text.getvalue()
    assert "[red]b c" in text.getvalue()
