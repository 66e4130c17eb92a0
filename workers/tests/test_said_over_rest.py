# SPDX-License-Identifier: GPL-2.0-or-later
"""Changing an existing experiment: its priority, and that it is never deleted; labctl against a real server."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache

from lab.experiments.priority import PRIORITIES
from lab.models import Experiment, User
from lab.people.tokens import issue_token
from lab.tests.factories import make_grid, make_user
from workers import labctl
from workers.tests.test_labctl import call


@pytest.fixture
def number(live_server: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """An open experiment of alice, who sends the requests."""
    cache.clear()
    monkeypatch.setenv("LABCTL_SERVER", live_server.url)
    alice = make_user("alice")
    asks_as(alice, monkeypatch)
    experiment = make_grid()
    Experiment.objects.update(submitter=alice, name="of alice")
    return str(experiment.pk)


def asks_as(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABCTL_TOKEN", issue_token(user=user, name="t", scopes=["read", "submit"])[1])


def test_an_experiment_is_kept_and_let_go_of(
    number: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, kept, said in (("keep", True, "is kept"), ("unkeep", False, "is no longer kept")):
        for _ in range(2):
            assert call(monkeypatch, command, number) == 0
            assert said in capsys.readouterr().out
            assert Experiment.objects.get().kept is kept
    asks_as(make_user("dora"), monkeypatch)
    assert call(monkeypatch, "keep", number) == labctl.EXIT_USAGE
    assert "its submitter and operators may keep it" in " ".join(capsys.readouterr().err.split())
    assert not Experiment.objects.get().kept


def test_how_urgent_it_is_is_said_changed_and_found(
    number: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*argv: str) -> str:
        assert call(monkeypatch, *argv) == labctl.EXIT_USAGE
        return " ".join(capsys.readouterr().err.split())

    assert call(monkeypatch, "priority", number, "low") == 0
    assert f"experiment {number} has priority low" in capsys.readouterr().out
    assert Experiment.objects.get().priority == PRIORITIES["low"]
    assert 'did you mean "high"' in fails("priority", number, "hihg")
    assert "only operators may give it priority high" in fails("priority", number, "high")
    assert "there is no experiment 999" in fails("priority", "999", "low")
    for asked, is_listed in (("low", True), ("high", False)):
        assert call(monkeypatch, "list", "--priority", asked) == 0
        assert ("of alice" in capsys.readouterr().out) is is_listed
    assert call(monkeypatch, "show", number) == 0
    assert "priority low" in capsys.readouterr().out
    assert call(monkeypatch, "cancel", number) == 0
    assert "is cancelled already" in fails("priority", number, "normal")


@pytest.mark.django_db
def test_the_lab_of_this_machine_is_asked_likewise_by_whoever_sits_at_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = str(make_grid().pk)
    assert call(monkeypatch, "priority", number, "high", "--local") == 0
    assert call(monkeypatch, "keep", number, "--local") == 0
    experiment = Experiment.objects.get()
    assert (experiment.priority, experiment.kept) == (PRIORITIES["high"], True)
    assert call(monkeypatch, "keep", "12345", "--local") == labctl.EXIT_USAGE
    assert "there is no experiment 12345" in capsys.readouterr().err
