# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from typer.testing import CliRunner

from lab.models import Run, Target, Worker
from lab.operations import readiness
from lab.tests.factories import claimed_run, finish_builds, make_grid
from workers.ctl import options
from workers.labctl import cli

HOSTILE = "rack\x1b[2J [red]1[/red]"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A console keeps the width that the environment named when it was imported."""
    monkeypatch.setattr(options.out, "_width", 200)


def status() -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["lab", "status"])
    return done.exit_code, done.output


def test_one_screen_says_what_waits_who_works_and_what_is_ill(db: None) -> None:
    finish_builds(make_grid())
    first = Run.objects.order_by("position")[0]
    claimed_run(first)
    Run.objects.filter(pk=first.pk).update(lease_until=timezone.now() - timedelta(seconds=90))
    Target.objects.create(name=HOSTILE, quarantined_at=timezone.now(), quarantine_reason="3 faults")
    Worker.objects.create(
        name="h1:1:1", host="h1", queues=["build.x86_64.gcc"], idle_reason="its disk is full"
    )
    code, text = status()
    assert code == 0, text
    for words in (
        "ok   database",
        "experiments: 1 running",
        "target.guest",
        "NOBODY",
        "quarantine",
        "in quarantine: 3 faults",
        "expired 9",
        "idle: its disk is full",
        "[red]1[/red]",
    ):
        assert words in text, words
    assert "\x1b[2J" not in text


def test_a_lab_that_cannot_work_says_why_and_exits_with_3(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "LEAST_FREE", 1 << 62)
    code, text = status()
    assert code == 3
    assert "NOT  disk" in text
