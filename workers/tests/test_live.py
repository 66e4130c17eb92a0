# SPDX-License-Identifier: GPL-2.0-or-later
"""The service of one machine as people have it: brought up, given an experiment over REST, brought down."""

from __future__ import annotations

import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import pytest

from workers.tests.live import OPEN, Live, copied_code, live_service, programs

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def lab() -> Iterator[Live]:
    targets: dict[str, dict[str, Any]] = {
        "fake": {"access": {"noise": 0.0}, "group": "pair"},
        "slow": {"access": {"seconds": 30.0}},
        "elsewhere": {"group": "pair"},
    }
    with live_service(targets, KPERFLAB_TARGETS="fake,slow,late,later") as service:
        yield service


def test_a_submitted_experiment_gets_its_verdict(lab: Live) -> None:
    patch = lab.diff("fs/inode.c", "i_ino == ino", "i_ino == ino + 1")
    number = lab.submit(lab.spec({"same": patch}, measure={"boots": 3, "iterations": 2, "warmup": 1}))
    experiment = lab.wait(number)
    assert experiment["state"] == "done"
    assert experiment["verdicts"]
    runs = lab.ask("GET", f"runs/?experiment={number}")["results"]
    assert {run["state"] for run in runs} == {"done"}
    assert len({run["id"] for run in runs}) == len(runs)


def test_everything_that_belongs_to_it_runs(lab: Live) -> None:
    states = lab.states()
    assert sorted(states) == programs(["fake", "slow"])
    assert {state.state for state in states.values()} == {"RUNNING"}


def test_static_files_come_compressed_and_may_be_kept_for_ever(lab: Live) -> None:
    page = httpx.get(f"{lab.url}/sign-in/").text
    name = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    answer = httpx.get(f"{lab.url}{name}", headers={"accept-encoding": "br, gzip"})
    assert answer.headers["content-encoding"] in ("br", "gzip")
    assert "immutable" in answer.headers["cache-control"]


def test_bringing_it_up_again_changes_nothing(lab: Live) -> None:
    before = {name: state.pid for name, state in lab.states().items()}
    lab.control("up", "--port", str(lab.port))
    assert {name: state.pid for name, state in lab.states().items()} == before


def test_commands_of_this_machine_work_on_the_services_tables(lab: Live) -> None:
    assert lab.python("from django.db import connection; print(connection.vendor)") == "postgresql"


def test_workers_say_what_they_take(lab: Live) -> None:
    queues = lab.python(
        "from lab.models import Worker; "
        "print(sorted(queue for one in Worker.objects.filter(idle_reason='') for queue in one.queues))"
    )
    assert "target.fake" in queues
    assert "build.x86_64.gcc" in queues


def test_a_flush_of_redis_loses_nothing(lab: Live) -> None:
    number = lab.submit(lab.spec(name="flushed"))
    for _ in range(5):
        lab.redis().flushall()
        sleep(0.2)
    assert lab.wait(number)["state"] == "done"


def test_an_experiment_survives_restarts_of_redis_and_postgresql(lab: Live) -> None:
    number = lab.submit(lab.spec(name="restarted", measure={"boots": 3, "iterations": 2, "warmup": 1}))
    restart(lab, "redis", signal.SIGTERM)
    restart(lab, "postgres", signal.SIGINT)
    restart(lab, "redis", signal.SIGKILL)
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
    running = f"Run.objects.filter(experiment={number}, state='running')"
    ask = "from lab.models import Run; print({}, end='')"
    end = monotonic() + 120
    while not (worker := lab.python(ask.format(f"*{running}.values_list('claimed_by', flat=True)"))):
        assert monotonic() < end, lab.log("target-slow")
    restart(lab, "target-slow", signal.SIGTERM)
    # The worker that came after it may be at it again.
    assert lab.python(ask.format(f"{running}.filter(claimed_by='{worker}').count()")) == "0"
    # What was given back does not count as an attempt.
    attempts = f"Run.objects.filter(experiment={number}, attempt__gt=1).count()"
    assert lab.python(ask.format(attempts)) == "0"
    lab.ask("POST", f"experiments/{number}/cancel/")


def test_a_target_that_is_added_is_served_without_anybody_doing_more(lab: Live) -> None:
    before = {name: state.pid for name, state in lab.states().items()}
    number = lab.ask("POST", "targets/", json={"name": "late", "driver": "fake"})["id"]
    assert lab.wait(lab.submit(lab.spec(name="late", target="late")))["state"] == "done"
    lab.ask("POST", "targets/", json={"name": "others", "driver": "fake"})
    lab.ask("PATCH", f"targets/{number}/", json={"name": "later"})
    assert lab.wait(lab.submit(lab.spec(name="later", target="later")))["state"] == "done"
    after = {name: state.pid for name, state in lab.states().items()}
    assert sorted(after) == programs(["fake", "later", "slow"]), "others is served by another machine"
    assert {name: after[name] for name in before} == before


def test_a_worker_with_other_code_takes_nothing_and_says_so_until_it_is_updated(
    lab: Live, tmp_path: Path
) -> None:
    code, log = copied_code(tmp_path / "code"), tmp_path / "log"
    changed = code / "lab/models/states.py"
    ours = changed.read_text()
    changed.write_text(ours + "# a line more\n")
    waiting = lab.submit(lab.spec(name="for elsewhere", target="elsewhere"))
    worker = lab.worker_of_other_code(code, log, "--target", "elsewhere")
    try:
        reason = "update it, then restart it"
        until(lambda: reason in log.read_text(), log)
        assert reason in lab.page("/lab/")
        assert lab.wait(lab.submit(lab.spec(name="of either", target="pair")))["state"] == "done"
        assert boots(lab, "elsewhere") == 0
        assert boots(lab, "fake") >= 4
        assert lab.experiment(waiting)["state"] in OPEN
        worker.terminate()
        worker.wait(60)
        changed.write_text(ours)
        worker = lab.worker_of_other_code(code, log, "--target", "elsewhere")
        assert lab.wait(waiting)["state"] == "done"
        # Two blocks, in each of which the base boots twice.
        assert boots(lab, "elsewhere") == 4
    finally:
        worker.kill()
        worker.wait()


def restart(lab: Live, program: str, number: signal.Signals) -> None:
    """End a program, and wait until another process runs in its place."""
    before = lab.kill(program, number)
    end = monotonic() + 120
    while (state := lab.states()[program]).pid == before or state.state != "RUNNING":
        assert monotonic() < end, lab.log(program)
        sleep(0.1)


def until(holds: Callable[[], bool], log: Path) -> None:
    end = monotonic() + 120
    while not holds():
        assert monotonic() < end, log.read_text()
        sleep(0.5)


def boots(lab: Live, target: str) -> int:
    """Return how many have begun on a target."""
    asked = f"Run.objects.filter(target__name={target!r}).exclude(state='queued').count()"
    return int(lab.python(f"from lab.models import Run; print({asked})"))


def test_somebody_elses_port_is_refused_in_one_line(lab: Live) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        other = Live(lab.home.parent / f"{lab.home.name}-other", listener.getsockname()[1], lab.kernel)
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
