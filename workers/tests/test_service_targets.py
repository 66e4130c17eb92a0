# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker for each target while the service is up, under a real supervisord; the workers only wait."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from lab.models import Target
from workers.errors import ServiceDown
from workers.service import leftover_processes as left
from workers.service import programs
from workers.service.place import ServicePlace, write
from workers.service.programs import Program
from workers.service.supervising import State, Supervisor
from workers.service.targets import fit, targets_here

WAITS = (sys.executable, "-S", "-c", "import time; time.sleep(600)")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServicePlace]:
    """A service of one program that is not a target's worker."""
    monkeypatch.setattr(ServicePlace, "sockets", property(lambda self: self.home / "run"))
    monkeypatch.setattr(programs, "LABCTL", WAITS)
    service = ServicePlace(tmp_path / "home")
    service.home.mkdir()
    service.make()
    write(service.targets, "")
    write(service.configuration, programs.configuration(service, [Program("web", WAITS)]))
    supervisor = Supervisor(service)
    supervisor.start()
    supervisor.begin(["web"])
    yield service
    supervisor.shut_down()
    left.end_all(service)


def running(place: ServicePlace, *names: str) -> dict[str, State]:
    """These programs, once they run and no others are there."""
    end = monotonic() + 30
    while True:
        states = {state.name: state for state in Supervisor(place).states()}
        if sorted(states) == sorted(names) and all(state.state == "RUNNING" for state in states.values()):
            return states
        assert monotonic() < end, states
        sleep(0.1)


@pytest.mark.process
def test_a_new_target_gets_its_worker_and_nobody_else_is_disturbed(place: ServicePlace) -> None:
    assert fit(place, lambda: ["a"]) == ["target-a"]
    before = running(place, "web", "target-a")
    assert fit(place, lambda: ["a", "b.2"]) == ["target-b.2"]
    after = running(place, "web", "target-a", "target-b.2")
    assert (after["web"].pid, after["target-a"].pid) == (before["web"].pid, before["target-a"].pid)


@pytest.mark.process
def test_a_target_that_is_gone_loses_its_worker_and_a_renamed_one_gets_another(place: ServicePlace) -> None:
    fit(place, lambda: ["a", "b"])
    before = running(place, "web", "target-a", "target-b")
    assert fit(place, lambda: ["a", "c"]) == ["target-b", "target-c"]
    assert running(place, "web", "target-a", "target-c")["target-a"].pid == before["target-a"].pid
    assert not Path(f"/proc/{before['target-b'].pid}").exists()


@pytest.mark.process
def test_where_nothing_changed_nothing_is_written(place: ServicePlace) -> None:
    fit(place, lambda: ["a"])
    before = place.targets.stat().st_mtime_ns
    assert fit(place, lambda: ["a"]) == []
    assert place.targets.stat().st_mtime_ns == before


@pytest.mark.process
def test_what_is_wanted_is_asked_again_after_waiting_for_somebody_who_changed_it(place: ServicePlace) -> None:
    answers = iter([["a"], []])
    assert fit(place, lambda: next(answers)) == []
    running(place, "web")


def test_without_a_service_there_is_nobody_to_ask(tmp_path: Path) -> None:
    with pytest.raises(ServiceDown):
        fit(ServicePlace(tmp_path), lambda: ["a"])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "here"), [(None, ["a", "b", "c"]), ("*", ["a", "b", "c"]), ("c, a,x", ["a", "c"]), ("", [])]
)
def test_all_targets_are_served_here_or_those_that_were_named(
    monkeypatch: pytest.MonkeyPatch, given: str | None, here: list[str]
) -> None:
    Target.objects.all().delete()
    for name in ("c", "a", "b"):
        Target.objects.create(name=name, driver="fake")
    if given is None:
        monkeypatch.delenv("KPERFLAB_TARGETS", raising=False)
    else:
        monkeypatch.setenv("KPERFLAB_TARGETS", given)
    assert targets_here() == here
