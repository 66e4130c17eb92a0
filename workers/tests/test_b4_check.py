# SPDX-License-Identifier: GPL-2.0-or-later
"""labctl b4-check as b4 review calls it: a mail on standard input, a JSON list on standard output."""

from __future__ import annotations

import base64
import io
import json
import quopri
from collections.abc import Callable
from email import message_from_bytes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import b4
import pytest

from lab.comparisons.page import comparison_page
from lab.models import Experiment, User
from workers import labctl, local
from workers.drivers.base import BootRequest
from workers.drivers.fake import Script
from workers.errors import GuestPanicked
from workers.tests.conftest import FakeLab, opens
from workers.tests.test_labctl import call
from workers.tests.test_over_rest import alice, lab

__all__ = ["alice", "lab"]
HEAD = (
    "From: A <a@example.org>\nSubject: [PATCH v2 1/2] fs: other\nMessage-Id: <x@example.org>\n\nWhy.\n---\n"
)
OPTIONS = (
    "--tree",
    "pretend",
    "--workload",
    "showgids:smoke",
    "--boots",
    "5",
    "--iterations",
    "2",
    "--warmup",
    "1",
    "--name",
    "b4",
)


class Check:
    """Calls the command; `errors` is what it wrote to standard error last."""

    def __init__(
        self, lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.lab, self.monkeypatch, self.capsys, self.errors = lab, monkeypatch, capsys, ""
        self.mail = HEAD + lab.diff("fs/inode.c", "\tWARN_HERE();\n", "")

    def __call__(
        self, *more: str, mail: str | None = None, options: tuple[str, ...] = OPTIONS
    ) -> list[dict[str, Any]]:
        stdin = io.BytesIO((self.mail if mail is None else mail).encode())
        self.monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stdin, isatty=lambda: False))
        base = ("--base", self.lab.kernel.base.commit) if options else ()
        assert call(self.monkeypatch, "b4-check", *options, *base, *more) == labctl.EXIT_OK
        captured = self.capsys.readouterr()
        self.errors = captured.err
        reports: list[dict[str, Any]] = json.loads(captured.out)
        for report in reports:
            assert set(report) <= {"tool", "status", "summary", "url", "details"}
            assert (report["tool"], report["status"] in ("pass", "warn", "fail")) == ("kperflab", True)
            assert report["summary"]
        return reports


@pytest.fixture
def check(
    lab: FakeLab, alice: User, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Check:
    return Check(lab, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("ns", "status", "verdict"),
    [
        (1250.0, "fail", "regression"),
        pytest.param(800.0, "pass", "improvement", marks=pytest.mark.thorough),
        pytest.param(None, "warn", "inconclusive", marks=pytest.mark.thorough),
    ],
)
def test_a_patch_is_submitted_once_and_its_verdict_is_the_status(
    check: Check, ns: float | None, status: str, verdict: str
) -> None:
    def script(_request: BootRequest) -> Script:
        number = len(check.lab.driver.requests)
        return opens((ns or (1000.0 + 400 * (number % 3))) + number % 3)

    check.lab.scripts["fs-other"] = script
    (open_,) = check()
    experiment = Experiment.objects.get()
    assert open_["status"] == "warn"
    assert open_["summary"].startswith(f"experiment {experiment.pk} is queued: 0 of ")
    assert open_["url"].endswith(f"/experiments/{experiment.pk}/")
    assert check() == [open_], "the open experiment is found again"
    local.work_through(experiment.pk)
    (ended,) = check()
    assert ended["status"] == status
    assert ended["summary"] == comparison_page(experiment.pk).data["conclusion"]["headline"]
    assert ended["details"].startswith(f"{verdict}: fs-other, showgids ns_per_open ")
    assert Experiment.objects.count() == 1


def test_a_kernel_that_dies_fails_the_check(check: Check) -> None:
    panic = Script(problem=GuestPanicked("Kernel panic - not syncing: Fatal exception", "Kernel panic"))
    check.lab.scripts["fs-other"] = lambda request: panic
    check()
    local.work_through(Experiment.objects.get().pk)
    (ended,) = check()
    assert ended["status"] == "fail"
    assert "fs-other on showgids" in ended["summary"]


@pytest.mark.parametrize(
    ("encoding", "encoded"), [("quoted-printable", quopri.encodestring), ("base64", base64.encodebytes)]
)
def test_a_patch_that_was_sent_encoded_is_measured_as_b4_decoded_it(
    check: Check, encoding: str, encoded: Callable[[bytes], bytes]
) -> None:
    """b4 decodes the body, but keeps the header that says how it was encoded."""
    diff = check.lab.diff("fs/inode.c", "\tWARN_HERE();\n", "\tif (one == two)\n\t\treturn;\n")
    head = HEAD.replace("\n\n", f"\nContent-Transfer-Encoding: {encoding}\n\n", 1).partition("Why.")[0]
    sent = head.encode() + encoded(f"Why.\n---\n{diff}".encode())
    handed = b4.LoreMessage.get_msg_as_bytes(message_from_bytes(sent, policy=b4.emlpolicy))
    (report,) = check(mail=handed.decode())
    assert report["summary"].startswith("experiment ")
    assert "+\tif (one == two)\n" in Experiment.objects.get().switches.get().text


def test_a_patch_that_does_not_apply_is_a_warning_with_the_reason(check: Check) -> None:
    (report,) = check(mail=check.mail.replace("WARN_HERE", "NEVER_THERE"))
    assert report["status"] == "warn"
    assert report["summary"].startswith("not measured: ")
    assert Experiment.objects.count() == 0


def test_a_lab_that_does_not_answer_or_failed_says_nothing(check: Check) -> None:
    check()
    Experiment.objects.update(state="failed", problem="the disk is full")
    number = Experiment.objects.get().pk
    check.monkeypatch.setattr("workers.ctl.b4ctl._experiment", lambda client, _: client.experiment(number))
    assert check() == []
    assert "the disk is full" in check.errors
    check.monkeypatch.undo()
    check.monkeypatch.setenv("LABCTL_SERVER", "http://127.0.0.1:9")
    check.monkeypatch.setattr("time.sleep", lambda _: None)
    assert check() == []
    assert "127.0.0.1:9" in check.errors


def test_a_failed_experiment_is_measured_again(check: Check) -> None:
    check()
    Experiment.objects.update(state="failed")
    check()
    assert Experiment.objects.count() == 2


@pytest.mark.parametrize("options", [(), ("--tree", "pretend")])
def test_a_call_without_tree_or_workload_is_an_error_without_json(
    check: Check, options: tuple[str, ...]
) -> None:
    check.monkeypatch.setattr(
        "sys.stdin", SimpleNamespace(buffer=io.BytesIO(check.mail.encode()), isatty=lambda: False)
    )
    assert call(check.monkeypatch, "b4-check", *options) == labctl.EXIT_USAGE
    captured = check.capsys.readouterr()
    assert captured.out == ""
    assert "--workload (or workload under [defaults] in .labctl.toml)" in " ".join(captured.err.split())


def test_a_token_that_is_not_valid_is_an_error_without_json(check: Check) -> None:
    check.monkeypatch.setenv("LABCTL_TOKEN", "kpl_wrong")
    stdin = io.BytesIO(check.mail.encode())
    check.monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stdin, isatty=lambda: False))
    assert call(check.monkeypatch, "b4-check", *OPTIONS) == labctl.EXIT_USAGE
    assert check.capsys.readouterr().out == ""


@pytest.mark.hostile
@pytest.mark.parametrize(
    "tracking",
    ["", "{", "[]", '{"series": 5}', '{"series": {"branch-tips": []}}', '{"series": {"branch-tips": [{"sha": "--all"}]}}',
     '{"series": {"branch-tips": [{"date": "2026", "sha": "../../etc"}]}}', '{"series": {"branch-tips": "x"}}'],
)  # fmt: skip
def test_a_cover_letter_without_a_usable_branch_has_nothing_to_say(
    check: Check, tmp_path: Path, tracking: str
) -> None:
    (tmp_path / "tracking").write_text(tracking)
    check.monkeypatch.setenv("B4_TRACKING_FILE", str(tmp_path / "tracking"))
    cover = "From: A <a@example.org>\nSubject: [PATCH 0/2] fs: all of it\n\nHello.\n"
    assert check(mail=cover) == []
    assert "nothing to check" in check.errors
    assert Experiment.objects.count() == 0


@pytest.mark.process
def test_a_cover_letter_is_checked_as_the_branch_that_b4_tracks(check: Check, tmp_path: Path) -> None:
    work = check.lab.kernel.work
    tip = check.lab.kernel.edited("fs/inode.c", "\tWARN_HERE();\n", "").commit
    tips = [
        {"date": "2025-01-01", "branch": "b4/x", "sha": "0" * 40},
        {"date": "2026-01-01", "branch": "b4/x", "sha": tip},
    ]
    (tmp_path / "tracking").write_text(json.dumps({"series": {"branch-tips": tips}}))
    check.monkeypatch.setenv("B4_TRACKING_FILE", str(tmp_path / "tracking"))
    check.monkeypatch.chdir(work)
    (report,) = check(mail="From: A <a@example.org>\nSubject: [PATCH 0/1] all\n\nHello.\n")
    assert (report["status"], Experiment.objects.get().switches.count()) == ("warn", 1)
