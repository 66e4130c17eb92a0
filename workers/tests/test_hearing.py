# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker that no longer receives messages ends; a busy or idle worker does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisAway

from workers import broker_watch as hearing
from workers.broker_watch import DEAF_S, Hearing

ROOT = Path(__file__).resolve().parents[2]
# A worker of a queue of its own. {trouble} comes over it a second after it is ready, then three messages.
TROUBLED = """
import sys
from threading import Timer
from celery import signals
from kombu.transport.redis import QoS
from redis.exceptions import ConnectionError
from workers import app, fleet, broker_watch as hearing, presence
hearing.DEAF_S, presence.REPORT_S = 2.0, 0.5
def refuse(self, *given, **named):
    raise ConnectionError("gone")
def trouble():
    if "deaf" in sys.argv:
        QoS.can_consume = lambda self: False
    else:
        QoS.ack = refuse
    for _ in range(3):
        app.app.send_task("workers.tasks.return_dead", queue="lonely")
@signals.worker_ready.connect(weak=False)
def ready(**_given):
    Timer(1.0, trouble).start()
@signals.task_postrun.connect(weak=False)
def took(**_given):
    print("took one", flush=True)
raise SystemExit(fleet.serve_post(fleet.Post("lonely", ("lonely",), builds=True)))
"""


@dataclass
class Queue:
    """A queue of so many messages, and a clock that is asked every 5 s."""

    lie: int = 1
    at: float = 0.0

    def depth(self, queue: str) -> int:
        assert queue == "target.one"
        return self.lie

    def now(self) -> float:
        return self.at

    def ask(self, listener: Hearing, times: int) -> list[bool]:
        answers = []
        for _ in range(times):
            answers.append(listener.is_deaf())
            self.at += 5.0
        return answers


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def one(queue: Queue) -> Hearing:
    return Hearing(("target.one",), 1, queue.depth, queue.now, True)


def test_a_message_that_a_free_worker_does_not_take_tells_that_it_is_deaf(queue: Queue, one: Hearing) -> None:
    assert queue.ask(one, 5) == [False, False, False, False, True]
    assert queue.at > DEAF_S


def test_an_empty_queue_says_nothing(queue: Queue, one: Hearing) -> None:
    queue.lie = 0
    assert not any(queue.ask(one, 10))


def test_a_message_waits_as_long_as_a_boot_takes(queue: Queue, one: Hearing) -> None:
    one.begun()
    assert not any(queue.ask(one, 100))
    one.ended()
    assert queue.ask(one, 5) == [False, False, False, False, True]


def test_whoever_has_a_hand_left_should_have_taken_it(queue: Queue) -> None:
    listener = Hearing(("target.one",), 2, queue.depth, queue.now, True)
    listener.begun()
    assert queue.ask(listener, 5)[-1]


def test_what_is_taken_meanwhile_tells_that_it_hears(queue: Queue, one: Hearing) -> None:
    queue.ask(one, 3)
    one.begun()
    one.ended()
    assert queue.ask(one, 3) == [False, False, False]


def test_a_redis_that_is_away_says_nothing_of_who_listens(queue: Queue, one: Hearing) -> None:
    def away(queue: str) -> int:
        raise RedisAway("no such file")

    queue.ask(one, 4)
    one.depth = away
    assert not any(queue.ask(one, 5))


def test_who_is_deaf_gets_the_signal_that_ends_it(
    monkeypatch: pytest.MonkeyPatch, queue: Queue, one: Hearing
) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr("workers.broker_watch.os.kill", lambda pid, number: sent.append((pid, number)))
    monkeypatch.setattr("workers.broker_watch.LAST_S", 3600.0)
    for _ in range(5):
        hearing.end_deaf(one)
        queue.at += 5.0
    assert sent == [(os.getpid(), signal.SIGTERM)]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """The URL of a Redis of our own."""
    socket = tmp_path / "redis.sock"
    command = [
        "redis-server",
        "--port",
        "0",
        "--unixsocket",
        str(socket),
        "--save",
        "",
        "--dir",
        str(tmp_path),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        with Redis.from_url(f"unix://{socket}") as client:
            while True:
                try:
                    client.ping()
                    break
                except RedisAway:
                    assert server.poll() is None
        yield f"unix://{socket}"
        server.kill()


@contextmanager
def worker(redis: str, home: Path, trouble: str) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"KPERFLAB_REDIS": redis, "KPERFLAB_HOME": str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", TROUBLED, trouble]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.process
def test_a_real_worker_that_celery_left_deaf_ends_by_itself(redis: str, tmp_path: Path) -> None:
    with worker(redis, tmp_path, "deaf") as process:
        output, _ = process.communicate(timeout=120)
    assert "receives nothing from Redis any more" in output
    assert process.returncode == 0, output


@pytest.mark.process
def test_a_message_that_could_not_be_acknowledged_does_not_keep_the_next_one_away(
    redis: str, tmp_path: Path
) -> None:
    output = ""
    with worker(redis, tmp_path, "unacknowledged") as process:
        assert process.stdout
        for line in process.stdout:
            output += line
            if "receives nothing" in output or output.count("took one") == 3:
                break
    assert output.count("took one") == 3, output
    assert "Couldn't ack" in output
