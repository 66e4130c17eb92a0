# SPDX-License-Identifier: GPL-2.0-or-later
"""labctl against a real server: the API over HTTP, fake guests behind it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from lab.models import Experiment, Note, Token, User
from lab.tests.factories import make_user
from workers import labctl
from workers.ctl.clients import base, http
from workers.ctl.options import EXIT_REGRESSION
from workers.ctl.preferences import config_file
from workers.tests.conftest import FakeLab
from workers.tests.restlab import a_worker, described, lab_behind, signed_in, submitted
from workers.tests.test_labctl import call

ROOT = Path(__file__).parents[2]
PASSWORD = "correct horse"


@pytest.fixture
def lab(
    live_server: Any, fake_lab: FakeLab, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeLab]:
    with lab_behind(live_server.url, fake_lab, settings, tmp_path, monkeypatch):
        yield fake_lab


@pytest.fixture
def alice(lab: FakeLab, monkeypatch: pytest.MonkeyPatch) -> User:
    return signed_in(monkeypatch)


@pytest.mark.parametrize(("ns", "code", "word"), [(1250.0, 1, "regression"), (800.0, 0, "improvement")])
def test_submitting_and_waiting_ends_with_the_verdict(
    ns: float,
    code: int,
    word: str,
    lab: FakeLab,
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with a_worker():
        assert call(monkeypatch, "submit", described(lab, ns), "--wait") == code
    captured = capsys.readouterr()
    assert word in captured.out
    assert "ns_per_open [ns]" in captured.out
    assert "boots 15/15" in captured.err
    row = Experiment.objects.get()
    assert (row.submitter, row.state) == (alice, "done")


def test_every_command_reads_what_was_submitted(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = str(submitted(lab, monkeypatch, capsys))
    with a_worker():
        assert call(monkeypatch, "watch", number) == EXIT_REGRESSION
    capsys.readouterr()

    def said(*argv: str, code: int = 0) -> str:
        assert call(monkeypatch, *argv) == code
        return capsys.readouterr().out

    assert "other makes" in said("list", "--state", "done", "--verdict", "regression", "--search", "oth")
    assert said("list", "--state", "running") == ""
    assert json.loads(said("list", "--format", "json"))[0]["id"] == int(number)
    shown = said("show", number)
    assert "pretend" in shown
    assert "2 kernels built" in shown or "found built" in shown
    assert "15 of 15 boots counted" in shown
    assert "regression" in shown
    assert "regression" in said("compare", number, code=1)
    data = json.loads(said("compare", number, "--format", "json", code=1))
    assert data["exit_code"] == 1
    assert data["permalink"].startswith("http://localhost")
    for form, begin in (
        ("junit", "<?xml"),
        ("ktap", "KTAP version"),
        ("markdown", "#"),
        ("csv", "workload,"),
    ):
        assert said("compare", number, "--format", form, code=1).startswith(begin), form
        capsys.readouterr()
        assert call(monkeypatch, "export", number, "--format", form, "--out", f"out.{form}") == 0
        assert Path(f"out.{form}").read_text().startswith(begin), form
    build = Experiment.objects.get().variants.exclude(build=None)[0].build_id
    assert call(monkeypatch, "log", "--build", str(build)) == 0
    # Another test may have built the very same pretend kernel.
    log = capsys.readouterr()
    assert "CC" in log.out or "found built" in " ".join(log.err.split())
    assert call(monkeypatch, "notes", number, "--add", "seen it") == 0
    Note.objects.update(text="seen it\x1b[2J")  # of a time when such characters were taken
    capsys.readouterr()
    shown = said("notes", number)
    assert [word in shown for word in ("alice", "seen it", "\x1b")] == [True, True, False]
    assert call(monkeypatch, "notes", number, "--add", "and answered") == 0
    shown = capsys.readouterr().out
    assert shown.index("seen it") < shown.index("and answered")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("profile", "{}"), "has no profile: set measure.profile = true to record one"),
        (("notes", "{}"), "has no notes yet"),
    ],
)
def test_what_there_is_nothing_of_is_said(
    argv: tuple[str, ...],
    said: str,
    lab: FakeLab,
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    number = submitted(lab, monkeypatch, capsys)
    assert call(monkeypatch, *(word.format(number) for word in argv)) == labctl.EXIT_OK
    captured = capsys.readouterr()
    assert said in captured.err
    assert not captured.out


def test_names_come_from_the_server(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    submitted(lab, monkeypatch, capsys)
    for command, word in (
        ("trees", "pretend"),
        ("targets", "libvirt"),
        ("workloads", "smoke"),
        ("patches", "rwsem"),
    ):
        assert call(monkeypatch, command) == 0
        assert word in (output := capsys.readouterr().out)
        assert "other" not in output


def test_a_preview_queues_nothing(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "preview", described(lab)) == 0
    out = capsys.readouterr().out
    assert "15 boots, at least about" in out
    assert out.count("(estimated from shipped figures, not from this lab)") == 2
    assert not Experiment.objects.exists()


def test_a_series_is_submitted_with_the_trees_defaults(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    described(lab)
    Path(".git").mkdir()
    Path(".labctl.toml").write_text(
        '[defaults]\ntree = "pretend"\nworkload = "showgids"\npreset = "smoke"\nboots = 3\n'
    )
    assert call(monkeypatch, "submit", "other.patch", "--base", lab.kernel.base.commit) == 0
    row = Experiment.objects.get(pk=int(capsys.readouterr().out))
    assert (row.tree.name, row.boots, row.switches.get().name) == ("pretend", 3, "other")


def test_cancelling_twice_is_refused_and_a_rerun_goes_on(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = str(submitted(lab, monkeypatch, capsys))
    assert call(monkeypatch, "cancel", number) == 0
    capsys.readouterr()
    assert call(monkeypatch, "cancel", number) == labctl.EXIT_USAGE
    assert "cancelled already" in capsys.readouterr().err
    assert call(monkeypatch, "watch", number) == labctl.EXIT_LAB
    capsys.readouterr()
    assert call(monkeypatch, "rerun", number) == 0
    again = Experiment.objects.get(pk=int(capsys.readouterr().out))
    assert (str(again.origin_id), again.state) == (number, "queued")


def test_a_lost_answer_queues_nothing_twice(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real, lost = http.Server._send, iter([True])

    def loses_the_first(self: http.Server, asking: base.Asking) -> Any:
        answer = real(self, asking)
        if asking.path == "experiments/" and next(lost, False):
            raise httpx.ReadError("connection reset")
        return answer

    monkeypatch.setattr(http.Server, "_send", loses_the_first)
    monkeypatch.setattr(http, "FIRST_WAIT_S", 0.0)
    number = submitted(lab, monkeypatch, capsys)
    assert [experiment.pk for experiment in Experiment.objects.all()] == [number]


def test_a_wrong_field_is_pointed_at(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "submit", described(lab, workload="showgid")) == labctl.EXIT_USAGE
    message = " ".join(capsys.readouterr().err.split())
    assert "cases[0].workload" in message
    assert 'did you mean "showgids"' in message
    assert call(monkeypatch, "submit", described(lab), "--tree", "pretent") == labctl.EXIT_USAGE
    assert "pretend" in capsys.readouterr().err


@pytest.mark.parametrize("token", ["", "0" * 64])
def test_nobody_and_a_wrong_token_may_not_submit(
    token: str, lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LABCTL_TOKEN", token)
    assert call(monkeypatch, "submit", described(lab)) == labctl.EXIT_USAGE
    assert "labctl login" in capsys.readouterr().err


def test_a_token_that_has_ended_says_how_to_get_another(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Token.objects.update(expiry="2020-01-01T00:00:00Z")
    assert call(monkeypatch, "list") == labctl.EXIT_USAGE
    message = " ".join(capsys.readouterr().err.split())
    assert "has expired" in message
    assert "labctl login" in message


def test_a_viewer_may_look_and_not_submit(
    lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    signed_in(monkeypatch, "carol", role=User.Role.VIEWER)
    assert call(monkeypatch, "list") == 0
    assert call(monkeypatch, "submit", described(lab)) == labctl.EXIT_USAGE
    assert "submit" in capsys.readouterr().err


def test_who_asks_too_often_waits_as_long_as_the_server_says(
    lab: FakeLab,
    alice: User,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings.API_RATES = {**settings.API_RATES, "person": "1/min"}
    waits: list[float] = []

    def sleeps(seconds: float) -> None:
        waits.append(seconds)
        settings.API_RATES = {**settings.API_RATES, "person": "1000/min"}

    monkeypatch.setattr(http, "time", SimpleNamespace(sleep=sleeps))
    assert call(monkeypatch, "list") == 0
    assert call(monkeypatch, "list") == 0
    assert len(waits) == 1
    assert "limits requests" in capsys.readouterr().err


def test_a_server_that_is_down_is_the_labs_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(http, "FIRST_WAIT_S", 0.0)
    assert call(monkeypatch, "watch", "3", "--server", "http://127.0.0.1:9") == labctl.EXIT_LAB
    assert "no answer from http://127.0.0.1:9" in capsys.readouterr().err


def test_logging_in_keeps_a_token_and_logging_out_ends_it(
    lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bob = make_user("bob")
    bob.set_password(PASSWORD)
    bob.save()
    monkeypatch.setattr("getpass.getpass", lambda prompt: PASSWORD)
    assert call(monkeypatch, "login", "--user", "bob") == 0
    assert "signed in" in capsys.readouterr().out
    kept = config_file().with_name("tokens.toml")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert call(monkeypatch, "whoami") == 0
    assert "bob, submitter, token for read, submit" in capsys.readouterr().out
    assert call(monkeypatch, "submit", described(lab)) == 0
    assert Experiment.objects.get().submitter == bob
    assert call(monkeypatch, "logout") == 0
    assert not Token.objects.exists()
    capsys.readouterr()
    assert call(monkeypatch, "logout") == labctl.EXIT_USAGE


def test_who_has_no_name_on_this_machine_is_asked_for_one(
    lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr("getpass.getuser", nobody)
    monkeypatch.setattr("getpass.getpass", lambda prompt: "wrong")
    monkeypatch.setattr("sys.stdin", io.StringIO("bob\n"))
    assert call(monkeypatch, "login") == labctl.EXIT_USAGE
    assert "does not know bob with that password" in " ".join(capsys.readouterr().err.split())


def test_a_wrong_password_keeps_nothing(
    lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt: "wrong")
    assert call(monkeypatch, "login", "--user", "bob") == labctl.EXIT_USAGE
    assert "does not know bob with that password" in " ".join(capsys.readouterr().err.split())
    assert not config_file().with_name("tokens.toml").exists()


def test_a_token_can_be_handed_in(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token = os.environ["LABCTL_TOKEN"]
    monkeypatch.delenv("LABCTL_TOKEN")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(readline=lambda: token + "\n"))
    assert call(monkeypatch, "login", "--with-token") == 0
    assert call(monkeypatch, "whoami") == 0
    assert "alice" in capsys.readouterr().out


@pytest.mark.parametrize(
    "argv", [("--help",), ("list",), ("workloads",), ("show", "7"), ("submit", "--help")]
)
def test_what_goes_over_rest_needs_neither_django_nor_a_state_root(
    argv: tuple[str, ...], lab: FakeLab, tmp_path: Path
) -> None:
    code = (
        "import sys; from workers import labctl\n"
        "try: labctl.main()\n"
        "finally: print(sorted({'django', 'libvirt', 'celery', 'numpy'} & set(sys.modules)), file=sys.stderr)"
    )
    home = tmp_path / "home"
    environment = {**os.environ, "KPERFLAB_HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, *argv], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == "[]", done.stderr
    assert done.returncode == (labctl.EXIT_USAGE if argv == ("show", "7") else 0)
    assert not home.exists()
