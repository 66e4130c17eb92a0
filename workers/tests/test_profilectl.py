# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles on the command line: tables, the mail's text trees, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.models import Experiment, Profile
from lab.profiles.analysis.frame_tree import build_tree, pack
from lab.profiles.analysis.source_lines import pack_lines
from lab.tests.claims import diff_of, sampled_experiment
from lab.tests.exact_profiles import exact_experiment
from lab.tests.factories import (
    make_case,
    make_comparison,
    make_experiment,
    make_patch_switch,
    make_run,
    make_twin,
    make_variant,
)
from lab.tests.folded import read_folded
from lab.tests.wait_profiles import MS, add_waiting_boots
from workers import labctl
from workers.ctl import profilectl
from workers.tests.test_labctl import call

pytestmark = pytest.mark.django_db


@pytest.fixture
def experiment(db: None) -> Experiment:
    return profiled()


def profiled() -> Experiment:
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
    assert "symbols that changed" in " ".join(out.split())


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
    argv = ("export", "profile", experiment.pk, "--format", "folded", "--variant", "p", "--out", out)
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
        "--format",
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


def test_either_half_of_a_sandwich_is_written(
    experiment: Experiment,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    out = tmp_path / "half.folded"
    argv = ("export", "profile", experiment.pk, "--format", "folded", "--variant", "p", "--out", out)
    assert said(monkeypatch, capsys, *argv, "--callees", "kernfs_iop_permission")[0] == 0
    assert read_folded(out.read_text())["kernfs_iop_permission", "down_read"] == 783
    assert said(monkeypatch, capsys, *argv, "--callers", "down_read")[0] == 0
    assert read_folded(out.read_text()) == {("down_read", "kernfs_iop_permission", "showgids"): 783}
    both = said(monkeypatch, capsys, *argv, "--callers", "down_read", "--callees", "down_read")
    assert both[0] == labctl.EXIT_USAGE
    assert "one at a time" in both[2]


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (("--format", "xml"), 'no format "xml" here; there are tree, folded'),
        (("--format", "tree", "--base", "base"), 'no format "tree" here; there are json'),
        (("--format", "folded", "--variant", "q"), 'no profile of a variant "q"'),
        (("--format", "folded", "--case", "7"), "cases 1 to 1, not 7"),
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
    argv = ("export", "profile", empty.pk, "--format", "folded", "--out", "-")
    assert "has no profile" in said(monkeypatch, capsys, *argv)[2]


def test_an_experiment_without_profiles_has_no_trees_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said(monkeypatch, capsys, "profile", make_experiment().pk, "--mail")
    assert (code, out) == (0, "")
    assert "has no profile: set measure.profile = true" in " ".join(err.split())


def test_trees_and_files_are_of_the_kind_that_exists_if_none_is_named(
    db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = exact_experiment().experiment_id
    _, out, _ = said(monkeypatch, capsys, "profile", number, "--mail", "--symbols", "kernfs_fop_open")
    assert "base, exact, 2 boots" in out
    code, out, err = said(
        monkeypatch, capsys, "export", "profile", number, "--format", "folded", "--out", "-"
    )
    assert (code, err) == (0, "")
    assert read_folded(out)["main", "do_sys_open", "kernfs_fop_open"] == 2_000


def test_lock_waits_come_as_milliseconds_a_boot_with_what_profiling_cost(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variant, ns in (("base", 40 * MS), ("p", 4 * MS)):
        stacks = {("showgids", "open", "down_read"): ns}
        add_waiting_boots(experiment.variants.get(name=variant), experiment.cases.get(), stacks)
    code, out, _ = said(monkeypatch, capsys, "profile", experiment.pk, "--kind", "lock")
    assert code == 0
    assert "ms a boot (lock)" in out
    assert "42.00 ±" in out
    assert "4.20 ±" in out
    assert "▼" in out
    assert "overhead of lock profiles: +2.0 % (+2.0 … +2.0, 6 boots)" in out
    argv = ("export", "profile", experiment.pk, "--kind", "lock", "--out", "-", "--format")
    assert "down_read 126000000" in said(monkeypatch, capsys, *argv, "folded")[1]
    assert "waits are not samples" in " ".join(said(monkeypatch, capsys, *argv, "script.txt")[2].split())
    assert "there are: cpu, lock" in said(monkeypatch, capsys, "profile", experiment.pk, "--kind", "locks")[2]


def test_show_ends_with_exact_profiles(
    db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = said(monkeypatch, capsys, "show", exact_experiment().experiment_id)
    assert shown[0] == 0
    assert "kernfs_fop_open" in shown[1]


def test_show_ends_with_the_waiting_profiles_of_the_contention_clock(
    db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = make_experiment(state="done", clock="contention")
    case = make_case(made)
    for variant, cycles in ((make_variant(made), 40_000), (make_variant(made, "p"), 4_000)):
        add_waiting_boots(variant, case, {("showgids", "open", "down_read"): cycles}, kind="waiting")
    shown = said(monkeypatch, capsys, "show", made.pk)
    assert shown[0] == 0
    assert "down_read" in shown[1]


def test_counters_that_moved_follow_the_symbols_and_what_was_not_there_says_why(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    twin, case = make_twin(experiment), experiment.cases.get()
    for block in range(3):
        make_run(twin, case, purpose="profiled", block=block, state="done")
    for run in experiment.runs.all():
        faults = 500 if run.variant.name == "p" else 1000
        run.counters = {"vmstat": {"pgfault": faults + run.block, "quiet": 0}}
        run.unavailable = [{"what": "cycles", "why": "no PMU"}]
        run.save()
    _, out, _ = said(monkeypatch, capsys, "profile", experiment.pk)
    assert "pgfault" in out
    assert "501 −50.0▼" in out
    assert "1 of 1 counters changed significantly" in out
    assert "not available: cycles: no PMU (9 of 9 boots)" in out


def test_the_forms_that_help_names_are_those_that_there_are() -> None:
    assert set(Profile.Kind.values) == set(profilectl.KINDS)


def test_profiles_come_over_rest_as_they_do_here(
    live_server: Any,
    transactional_db: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    experiment = profiled()
    for argv in (
        ("profile",),
        ("profile", "--mail", "--symbols", "down_read"),
        ("profile", "--format", "json"),
    ):
        command, *options = argv
        here = said(monkeypatch, capsys, command, experiment.pk, *options)
        monkeypatch.setenv("LABCTL_SERVER", live_server.url)
        assert call(monkeypatch, command, str(experiment.pk), *options) == 0
        assert capsys.readouterr().out == here[1]
    for form, more in (("folded", ()), ("json", ("--base", "base"))):
        written = []
        for where in (("--local",), ("--server", live_server.url)):
            file = tmp_path / "x"
            wanted = ("export", "profile", str(experiment.pk), "--format", form, "--variant", "p", *more)
            assert call(monkeypatch, *wanted, "--out", str(file), *where) == 0
            written.append(file.read_bytes())
        assert written[0] == written[1]
    wanted = ("export", "profile", str(experiment.pk), "--format", "folded", "--case", "7", "--out", "-")
    capsys.readouterr()
    assert call(monkeypatch, *wanted) == labctl.EXIT_USAGE
    assert "cases 1 to 1, not 7" in capsys.readouterr().err


def test_a_comparison_in_instructions_ends_with_the_patchs_functions_and_the_way_to_the_others(
    db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = exact_experiment()
    patch = case.experiment.variants.get(name="p")
    make_comparison(case, patch, metric="instructions_per_open", unit="instructions")
    call(monkeypatch, "compare", str(case.experiment_id), "--local")
    printed = " ".join(capsys.readouterr().out.split())
    assert "kernfs_fop_open" in printed
    assert "___slab_alloc" not in printed
    assert "1 changed by the patch +1.00" in printed
    assert f"all functions: labctl profile {case.experiment_id} --kind exact" in printed
    Profile.objects.all().delete()
    call(monkeypatch, "compare", str(case.experiment_id), "--local")
    assert "all functions" not in capsys.readouterr().out


def test_functions_stand_with_file_and_line_where_the_line_tables_had_them(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Profile.objects.filter(run__experiment=experiment).update(
        lines=pack_lines({"down_read": "kernel/locking/rwsem.c:1522"})
    )
    _, out, _ = said(monkeypatch, capsys, "profile", experiment.pk)
    lines = [line.split() for line in out.splitlines()]
    assert lines[lines.index(["kernel/locking/rwsem.c:1522"]) - 1][0] == "down_read"


def test_exact_functions_stand_with_file_and_line_too(
    db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = exact_experiment()
    lines = pack_lines({"kernfs_fop_open": "fs/kernfs/file.c:613"})
    Profile.objects.filter(run__case=case).update(lines=lines)
    _, out, _ = said(monkeypatch, capsys, "profile", case.experiment_id)
    rows = [line.split() for line in out.splitlines()]
    assert rows[rows.index(["fs/kernfs/file.c:613"]) - 1][0] == "kernfs_fop_open"


def test_functions_in_the_diff_stand_beside_what_was_measured(
    db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = sampled_experiment()
    make_patch_switch(case.experiment, "p", text=diff_of("down_read", "memcpy", "kernfs_new"))
    _, out, _ = said(monkeypatch, capsys, "profile", case.experiment_id)
    lines = [line.split() for line in out.splitlines()]
    assert lines[lines.index(["down_read", "changed", "68.03", "26.07"]) + 1] == ["fs/a.c"]
    assert "p: in the diff, not in the profiles (inlined, or not on the path): kernfs_new" in " ".join(
        out.split()
    )
    assert "p: changed outside the diff: other" in out
