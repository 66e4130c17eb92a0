# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl compare` and `export` in the forms that others read."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from rich.console import Console

from lab.comparisons.shape import EffectData
from lab.models import Experiment
from lab.tests.comparisons import HOSTILE, hostile, two_patches
from workers import labctl
from workers.ctl.comparison_tables import show_comparison
from workers.tests.conftest import FakeLab, opens
from workers.tests.test_labctl import call


@pytest.fixture
def better(fake_lab: FakeLab) -> Experiment:
    fake_lab.scripts["other"] = lambda _: opens(800.0)
    patch = fake_lab.diff("fs/inode.c", "\tWARN_HERE();\n", "")
    return fake_lab.run(fake_lab.spec({"other": patch}))


@pytest.mark.process
def test_compare_writes_a_form_and_still_ends_with_the_verdict(
    better: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("compare", str(better.pk), "--format", "json", "--link", "https://lab.example", "--local")
    assert call(monkeypatch, *argv) == labctl.EXIT_OK
    data = json.loads(capsys.readouterr().out)
    assert data["exit_code"] == 0
    assert data["permalink"].startswith("https://lab.example/experiments/")


@pytest.mark.process
def test_export_takes_the_number_at_once(
    better: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "x.tar"
    argv = ("export", str(better.pk), "--format", "matrix", "--out", str(place), "--local")
    assert call(monkeypatch, *argv) == 0
    with tarfile.open(place) as archive:
        assert any(name.endswith("/other/matrix.json") for name in archive.getnames())


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("compare", "1", "--format", "junti"), 'did you mean "junit"'),
        (("export", "1", "--format", "kcidd"), 'did you mean "kcidb"'),
        (("export", "4711", "--format", "json"), "there is no experiment 4711"),
        (("export", "nonsense"), "No such command"),
    ],
)
@pytest.mark.django_db
def test_a_form_there_is_not_is_answered_with_the_nearest(
    argv: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *argv, "--local") == labctl.EXIT_USAGE
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.process
def test_a_file_that_cannot_be_written_is_named(
    better: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ("export", str(better.pk), "--format", "csv", "--out", "/nowhere/x.csv", "--local")
    assert call(monkeypatch, *argv) == labctl.EXIT_USAGE
    assert 'cannot write "/nowhere/x.csv"' in " ".join(capsys.readouterr().err.split())


def printed(width: int, *, bad: bool) -> str:
    text = io.StringIO()
    show_comparison(Console(file=text, width=width, highlight=False), hostile() if bad else two_patches())
    return text.getvalue()


def test_the_table_fits_80_columns_and_says_false_alarm_of_a_control() -> None:
    text = printed(80, bad=False)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "inconclusive (26)" in text
    assert "control: wrongly flagged on this target so far: ns_per_open 1 of 40" in text


def test_an_interval_of_boots_that_may_stop_early_is_not_called_one_of_95_percent() -> None:
    data, text = two_patches(), io.StringIO()
    data["experiment"]["sequential"] = True
    show_comparison(Console(file=text, width=80, highlight=False), data)
    assert "95% interval" in printed(80, bad=False)
    assert "95%" not in text.getvalue()


def shown_with_effects(*effects: EffectData) -> str:
    data, text = two_patches(), io.StringIO()
    data["cases"][0]["metrics"][0]["effects"] = [*effects]
    show_comparison(Console(file=text, width=80, highlight=False), data)
    return " ".join(text.getvalue().split())


def test_effects_are_a_table_of_their_own_only_where_two_switches_were_on_together() -> None:
    one = EffectData(switches=["p"], ratio=0.6, low=0.58, high=0.62, q=0.0, reason="")
    never = "p and q were never on together"
    apart = EffectData(switches=["p", "q"], ratio=None, low=None, high=None, q=None, reason=never)
    assert "effects" not in shown_with_effects(one, apart)
    together = shown_with_effects(one, {**one, "switches": ["p", "q"]})
    assert "main effects and interactions" in together
    assert "p × q" in together


def test_metrics_with_the_same_record_of_false_alarms_are_counted_together() -> None:
    data, text = two_patches(), io.StringIO()
    primary = data["cases"][0]["metrics"][0]
    data["cases"][0]["metrics"] = [
        primary,
        {**primary, "name": "ns_per_stat"},
        {**primary, "name": "cycles", "alarms": {"called": 0, "compared": 40}},
    ]
    show_comparison(Console(file=text, width=80, highlight=False), data)
    said = " ".join(text.getvalue().split())
    assert "wrongly flagged on this target so far: 2 metrics 1 of 40 each, cycles 0 of 40" in said


def test_names_of_strangers_cannot_command_the_terminal() -> None:
    text = printed(200, bad=True)
    assert "\x1b" not in text
    assert all(line.count("alert(1)") <= len(HOSTILE) for line in text.splitlines())
    assert "[x](javascript:1)" in text  # nor is anything of them markup


@pytest.mark.process
def test_a_reply_is_signed_as_git_would(
    better: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").write_text("[user]\nname = Ada Lovelace\nemail = ada@example.org\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "reply", str(better.pk), "--sign", "me", "--local") == 0
    said = capsys.readouterr()
    assert said.out.endswith("\n\nTested-by: Ada Lovelace <ada@example.org>\n")
    assert said.err == ""
    (tmp_path / "config").write_text("")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    assert call(monkeypatch, "reply", str(better.pk), "--sign", "me", "--local") == labctl.EXIT_USAGE
    assert "git knows no user.name" in " ".join(capsys.readouterr().err.split())


@pytest.mark.process
def test_a_reply_without_a_signature_says_why_beside_it(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_lab.scripts["other"] = lambda _: opens(1250.0)
    patch = fake_lab.diff("fs/inode.c", "\tWARN_HERE();\n", "")
    worse = fake_lab.run(fake_lab.spec({"other": patch}))
    argv = ("reply", str(worse.pk), "--for", "other", "--sign", "A <a@example.org>", "--local")
    assert call(monkeypatch, *argv) == 0
    said = capsys.readouterr()
    assert "Tested-by" not in said.out
    assert "other makes ns_per_open" in " ".join(said.err.split())
