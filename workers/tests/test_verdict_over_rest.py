# SPDX-License-Identifier: GPL-2.0-or-later
"""labctl against a real server where something is in the way of a verdict: a lost answer, a long list, a closed pipe, a wrong token."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.errors import KeyBusy
from lab.models import Experiment, User
from lab.submission.duplicates import submit_under_key
from workers import labctl
from workers.ctl import progressbar
from workers.ctl.clients import http
from workers.ctl.options import EXIT_REGRESSION
from workers.tests.conftest import FakeLab
from workers.tests.restlab import a_worker, described, submitted
from workers.tests.test_labctl import call
from workers.tests.test_over_rest import alice as alice
from workers.tests.test_over_rest import lab as lab

ROOT = Path(__file__).parents[2]
# The shell's code for a command that was interrupted.
INTERRUPTED = 130


def test_a_first_request_that_the_server_still_works_on_is_waited_for(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waits: list[float] = []
    in_progress = iter([True] * 20)

    def under_key(**arguments: Any) -> Any:
        if next(in_progress, False):
            raise KeyBusy("the first request with this key is in progress; try again in a moment")
        return submit_under_key(**arguments)

    monkeypatch.setattr("web.api.submission.submit_under_key", under_key)
    monkeypatch.setattr(http, "time", SimpleNamespace(sleep=waits.append))
    number = submitted(lab, monkeypatch, capsys)
    assert [experiment.pk for experiment in Experiment.objects.all()] == [number]
    assert len(waits) == 20


def test_an_experiment_of_more_boots_than_a_list_counts_ends_with_its_verdict(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = str(submitted(lab, monkeypatch, capsys))
    monkeypatch.setattr("web.api.paging._Counted.most", 4)
    monkeypatch.setattr("web.api.paging.MOST_COUNTED", 4)
    with a_worker():
        assert call(monkeypatch, "watch", number) == EXIT_REGRESSION
    assert "15 of 15 boots counted" in capsys.readouterr().out


def test_a_wait_that_is_interrupted_says_how_to_follow_the_experiment(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: progressbar.Follower) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(progressbar.Follower, "look", interrupted)
    assert call(monkeypatch, "submit", described(lab), "--wait") == INTERRUPTED
    message = " ".join(capsys.readouterr().err.split())
    assert f"continues on {os.environ['LABCTL_SERVER']}" in message
    assert f"labctl watch {Experiment.objects.get().pk}" in message


@pytest.mark.parametrize(("ns", "code"), [(1250.0, 1), (800.0, 0)])
@pytest.mark.parametrize("form", ["table", "csv"])
def test_a_reader_that_closes_the_pipe_does_not_change_the_verdict(
    form: str,
    ns: float,
    code: int,
    lab: FakeLab,
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    number = str(submitted(lab, monkeypatch, capsys, ns=ns))
    with a_worker():
        assert call(monkeypatch, "watch", number) == code
    for command in (f"compare {number} --format {form}", f"watch {number} --format {form} 2>&1"):
        # As with `| head`: the reader is gone before the first line.
        program = f"{sys.executable} -c 'from workers import labctl; labctl.main()' {command}"
        done = subprocess.run(
            ["bash", "-c", f"( sleep 1; {program}; echo $? >code ) | true"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (Path("code").read_text().strip(), done.stderr) == (str(code), ""), command


@pytest.mark.parametrize("token", ["secret\nof two lines", "secret…"])
def test_what_cannot_be_a_token_is_refused_and_not_printed(
    token: str, lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LABCTL_TOKEN", token)
    monkeypatch.setattr(http, "FIRST_WAIT_S", 0.0)
    assert call(monkeypatch, "list") == labctl.EXIT_USAGE
    message = capsys.readouterr().err
    assert "LABCTL_TOKEN" in message
    # The output of a pipeline can be read by many.
    assert "secret" not in message
