# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles on the command line: tables, the mail's text trees, files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.analysis.flame import read_folded
from lab.analysis.frametree import build_tree, pack
from lab.models import Experiment, Profile
from lab.tests.factories import make_case, make_experiment, make_run, make_variant
from workers import labctl
from workers.tests.test_labctl import call

pytestmark = pytest.mark.django_db


@pytest.fixture
def experiment(db: None) -> Experiment:
    made = make_experiment(state="done", profile=True)
    case = make_case(made)
    for variant, reads in ((make_variant(made), 680), (make_variant(made, "p"), 260)):
        for boot in range(3):
            run = make_run(variant, case, purpose="profiled", block=boot, state="done", outcome="finished")
            stacks = {
                ("showgids", "kernfs_iop_permission", "down_read"): reads + boot,
                ("showgids", "memcpy"): 1000 - reads,
            }
            tree = build_tree(stacks.items())
            Profile.objects.create(run=run, samples=tree.samples, tree=pack(tree))
    return made


def said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *argv: object
) -> tuple[int, str, str]:
    code = call(monkeypatch, *map(str, argv), "--local")
    return code, *capsys.readouterr()


def test_the_table_has_shares_by_caller_with_intervals_and_what_moved(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = said(monkeypatch, capsys, "profile", experiment.pk)
    assert code == 0
    assert "68.03" in out
    assert "26.07" in out
    assert "▼" in out
    assert "symbols that moved" in out


def test_the_mails_trees_come_as_text(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = said(
        monkeypatch, capsys, "profile", experiment.pk, "--mail", "--symbols", "down_read,up_read"
    )
    assert "-   68.03%    68.03%  showgids  [kernel.kallsyms]  [k] down_read\n" in out


def test_a_profile_is_written_into_a_file(
    experiment: Experiment,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    out = tmp_path / "p.folded"
    argv = ("export", "profile", experiment.pk, "--form", "folded", "--variant", "p", "--out", out)
    assert said(monkeypatch, capsys, *argv)[0] == 0
    assert read_folded(out.read_text())["showgids", "kernfs_iop_permission", "down_read"] == 783


def test_a_difference_is_written_too(
    experiment: Experiment,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    out = tmp_path / "d.json"
    argv = (
        "export",
        "profile",
        experiment.pk,
        "--form",
        "json",
        "--variant",
        "p",
        "--base",
        "base",
        "--out",
        out,
    )
    assert said(monkeypatch, capsys, *argv)[0] == 0
    assert "down_read" in json.loads(out.read_text())["names"]


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (("--form", "xml"), 'no form "xml" here; there are tree, folded'),
        (("--form", "tree", "--base", "base"), 'no form "tree" here; there are json'),
        (("--form", "folded", "--variant", "q"), 'no profile of a variant "q"'),
        (("--form", "folded", "--case", "7"), "cases 1 to 1, not 7"),
    ],
)
def test_what_cannot_be_exported_is_one_line(
    argv: tuple[str, ...],
    line: str,
    experiment: Experiment,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = said(monkeypatch, capsys, "export", "profile", experiment.pk, *argv, "--out", "-")
    assert code == labctl.EXIT_USAGE
    assert line in " ".join(err.split())


def test_an_experiment_without_profiles_has_nothing_to_export(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = make_experiment()
    argv = ("export", "profile", empty.pk, "--form", "folded", "--out", "-")
    assert "has no profile" in said(monkeypatch, capsys, *argv)[2]
