# SPDX-License-Identifier: GPL-2.0-or-later
"""The service of one machine as people have it: brought up, given an experiment over REST, brought down."""

from __future__ import annotations

import shutil
import signal
import socket
from collections.abc import Iterator
from time import monotonic, sleep

import httpx
import pytest

from workers.tests.live import Live, live_service, programs

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def lab() -> Iterator[Live]:
    with live_service({"fake": {"access": {"noise": 0.0}}, "slow": {"access": {"seconds": 30.0}}}) as found:
        yield found


def test_a_submitted_experiment_gets_its_verdict(lab: Live) -> None:
    patch = lab.diff("fs/inode.c", "i_ino == ino", "i_ino == ino + 1")
    number = lab.submit(lab.spec({"same": patch}, measure={"boots": 3, "iterations": 2, "warmup": 1}))
    found = lab.wait(number)
    assert found["state"] == "done"
    assert found["verdicts"]
    runs = lab.ask("GET", f"runs/?experiment={number}")["results"]
    assert {run["state"] for run in runs} == {"done"}
    assert len({run["id"] for run in runs}) == len(runs)


def test_everything_that_belongs_to_it_runs(lab: Live) -> None:
    states = lab.states()
    assert sorted(states) == programs(["fake", "slow"])
    assert {one.state for one in states.values()} == {"RUNNING"}


def test_static_files_come_compressed_and_may_be_kept_for_ever(lab: Live) -> None:
    page = httpx.get(f"{lab.url}/sign-in/").text
    name = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    answer = httpx.get(f"{lab.url}{name}", headers={"accept-encoding": "br, gzip"})
    assert answer.headers["content-encoding"] in ("br", "gzip")
    assert "immutable" in answer.headers["cache-control"]


def test_bringing_it_up_again_changes_nothing(lab: Live) -> None:
    before = {name: one.pid for name, one in lab.states().items()}
    lab.control("up", "--port", str(lab.port))
    assert {name: one.pid for name, one in lab.states().items()} == before


def test_commands_of_this_machine_work_on_the_services_tables(lab: Live) -> None:
    assert lab.python("from django.db import connection; print(connection.vendor)") == "postgresql"


def test_workers_say_what_they_take(lab: Live) -> None:
    told = lab.python(
        "from lab.models import Worker; "
        "print(sorted(queue for one in Worker.objects.filter(idle_reason='') for queue in one.queues))"
    )
    assert "target.fake" in told
    assert "build.x86_64.gcc" in told


def test_a_flush_of_redis_loses_nothing(lab: Live) -> None:
    number = lab.submit(lab.spec(name="flushed"))
    for _ in range(5):
        lab.redis().flushall()
        sleep(0.2)
    assert lab.wait(number)["state"] == "done"


def test_an_experiment_survives_restarts_of_redis_and_postgresql(lab: Live) -> None:
    number = lab.submit(lab.spec(name="restarted", measure={"boots": 3, "iterations": 2, "warmup": 1}))
    lab.kill("redis", signal.SIGTERM)
    sleep(2)
    lab.kill("postgres", signal.SIGINT)
    sleep(2)
    lab.kill("redis")
    assert lab.wait(number)["state"] == "done"
    runs = lab.ask("GET", f"runs/?experiment={number}")["results"]
    assert len([run for run in runs if run["state"] == "done"]) == 6
    samples = lab.python(
        "from django.db.models import Count; from lab.models import Run; "
        f"print(Run.objects.filter(experiment={number}).annotate(n=Count('samples')).values_list('n', flat=True).distinct().count())"
    )
    assert samples == "1", "every boot has as many samples as any other"


def test_a_stopped_worker_gives_back_at_once_what_it_was_at(lab: Live) -> None:
    number = lab.submit(lab.spec(name="stopped", target="slow"))
    running = (
        "from lab.models import Run; print(Run.objects.filter(state='running', target__name='slow').count())"
    )
    end = monotonic() + 120
    while lab.python(running) != "1":
        assert monotonic() < end, lab.log("target-slow")
    before = lab.kill("target-slow", signal.SIGTERM)
    while lab.states()["target-slow"].pid == before:
        sleep(0.1)
    attempts = lab.python(
        "from lab.models import Run; print(max(Run.objects.values_list('attempt', flat=True)))"
    )
    # What was given back does not count as an attempt; the worker that came after it may be at it again.
    assert attempts in ("0", "1")
    assert "given" not in lab.log("target-slow")
    lab.ask("POST", f"experiments/{number}/cancel/")


def test_somebody_elses_port_is_refused_in_one_line(lab: Live) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        other = Live(lab.home.parent / f"{lab.home.name}-other", one.getsockname()[1], lab.kernel)
        other.home.mkdir()
        try:
            done = other.control("up", "--port", str(other.port), check=False)
            assert other.processes() == {}
        finally:
            other.control("down", check=False)
            shutil.rmtree(other.home)
    assert done.returncode == 3
    assert "PORT=8001 make up" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
