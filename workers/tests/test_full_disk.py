# SPDX-License-Identifier: GPL-2.0-or-later
"""A disk that is full is the lab's fault and passes: what met it is retried. What killed workers leave on it is removed."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lab.models import Build, Run
from lab.tests.factories import make_case, make_experiment, make_run, make_variant
from workers.drivers.base import BootRequest
from workers.drivers.fake import Script
from workers.initrds import remove_initrds
from workers.loop import NO_ROOM_S
from workers.tests.conftest import FakeLab, opens
from workloads import compile_once
from workloads.errors import GuestNotMade, ProgramDiskFull

pytestmark = pytest.mark.process


def no_room() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere")


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Lists the pauses that a worker would make."""
    made: list[float] = []
    monkeypatch.setattr("workers.loop.sleep", made.append)
    return made


def test_a_boot_that_meets_a_full_disk_is_tried_again_after_a_pause(
    fake_lab: FakeLab, pauses: list[float]
) -> None:
    met: list[str] = []

    def script(request: BootRequest) -> Script:
        if not met:
            met.append(request.directory.name)
            raise no_room()
        return opens(1000.0)

    fake_lab.scripts[""] = script
    assert fake_lab.run(fake_lab.spec({})).state == "done"
    run = Run.objects.get(pk=met[0].partition("-")[0])
    assert (run.state, run.attempt) == ("done", 2)
    assert not Run.objects.filter(state="failed").exists()
    assert pauses == [NO_ROOM_S]


def test_a_build_that_meets_a_full_disk_is_tried_again(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers import build

    real = build.build_request
    met: list[Any] = []

    def once(*arguments: Any) -> Any:
        if not met:
            met.append(arguments)
            raise no_room()
        return real(*arguments)

    monkeypatch.setattr("workers.build.build_request", once)
    patch = fake_lab.diff("fs/inode.c", "\tWARN_HERE();\n", "\tWARN_HERE(); /* no room */\n")
    assert fake_lab.run(fake_lab.spec({"p": patch})).state == "done"
    assert met
    assert set(Build.objects.values_list("state", flat=True)) == {"built"}


def test_a_program_that_found_no_room_is_compiled_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "/usr/bin/ld: final link failed: No space left on device\ncollect2: error: ld returned 1 exit status\n"
    monkeypatch.setattr(
        "workloads.compile_once.subprocess.run",
        lambda *_given, **_named: subprocess.CompletedProcess([], 1, "", said),
    )
    with pytest.raises(ProgramDiskFull, match="showgids") as caught:
        compile_once._run(["gcc"], "showgids", GuestNotMade)
    assert caught.value.retry
    assert caught.value.blame == "lab"


@pytest.mark.django_db
def test_only_the_initrds_of_boots_that_are_over_are_removed(tmp_path: Path) -> None:
    experiment = make_experiment()
    variant, case = make_variant(experiment), make_case(experiment)
    running = make_run(variant, case, state="running", attempt=2)
    over = make_run(variant, case, state="done", attempt=1, block=1)
    kept, *left = (
        tmp_path / "runs" / name / "initrd"
        for name in (f"{running.pk}-2", f"{running.pk}-1", f"{over.pk}-1", "999-1")
    )
    others = tmp_path / "runs" / "check-of-a-machine" / "initrd"
    for path in (kept, *left, others):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
    assert sorted(remove_initrds(tmp_path)) == sorted(path.parent.name for path in left)
    assert kept.exists()
    assert others.exists()
    assert not any(path.exists() for path in left)
