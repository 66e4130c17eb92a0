# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl lab withdraw-trust`: after it no build of the lab uses what was compiled before it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kernels.builds.front_program import compile_front
from kernels.tests.kept import kept
from lab.audit.log import audit_page
from lab.models import AuditEntry, Build, Experiment, Tree, Withdrawal
from lab.models.states import BuildState
from lab.runs.record import forget_artifact
from lab.storage.store import Store
from lab.submission.rerun import rerun_experiment
from lab.submission.submit import submit_experiment
from lab.tests.factories import make_grid
from lab.tests.stores import directory_store
from workers import local
from workers.ctl import options
from workers.labctl import cli
from workers.tests.conftest import FakeLab
from workers.tests.test_labctl import call

pytestmark = [pytest.mark.django_db]

ADDRESS, REF = "https://lab.example/linux.git", "refs/heads/next"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A console keeps the width that the environment named when it was imported."""
    monkeypatch.setattr(options.out, "_width", 200)


@pytest.fixture
def tree(settings: Any, tmp_path: Path) -> Tree:
    """A tree of a lab where nothing was compiled."""
    settings.HOME = tmp_path / "home"
    return Tree.objects.create(name="linux", kind="git", location=ADDRESS, default_revision="main")


def withdraw(*more: str, tree: str = "linux") -> str:
    """Call the command, and return what it prints."""
    done = CliRunner().invoke(cli, ["lab", "withdraw-trust", tree, *more])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def packs(settings: Any, tmp_path: Path) -> Store:
    """The lab's store with two packs, and a file that is none."""
    store = directory_store(settings, tmp_path / "store")
    for name in ("compiled/" + "a" * 64, "compiled/" + "b" * 64, "logs/" + "c" * 64 + ".log"):
        store.put(name, b"x" * 1000)
    return store


def test_without_a_flag_it_says_what_it_costs_and_changes_nothing(tree: Tree, packs: Store) -> None:
    text = withdraw()
    assert "packs in the store" in text
    assert "Nothing was changed: add --yes" in text
    assert len(list(packs.entries("compiled"))) == 2
    assert not Withdrawal.objects.exists()
    assert not AuditEntry.objects.exists()


def test_packs_go_and_the_audit_log_tells_of_it(tree: Tree, packs: Store) -> None:
    text = withdraw("--ref", REF, "--yes", tree=ADDRESS)
    assert "Packs removed from the store: 2" in text
    assert [entry.name for entry in packs.entries()] == ["logs/" + "c" * 64 + ".log"]
    made = Withdrawal.objects.get()
    assert (made.tree, made.ref) == ("linux", REF)
    (entry,) = audit_page(1)
    assert (entry.method, entry.path) == ("labctl", f"lab withdraw-trust linux {REF}")


def test_where_nothing_was_compiled_it_says_so(tree: Tree) -> None:
    assert "Nothing was compiled before: there is nothing to lose here" in withdraw()


def test_a_store_that_is_down_holds_nothing_up(
    tree: Tree, packs: Store, settings: Any, tmp_path: Path
) -> None:
    (tmp_path / "store").rename(tmp_path / "away")
    text = withdraw("--yes")
    assert "Trust is withdrawn" in text
    assert "Packs stay in the store, and no builder takes them: the store" in text
    assert Withdrawal.objects.count() == 1


def test_builds_under_way_and_open_experiments_are_named(tree: Tree) -> None:
    experiment = make_grid()
    Build.objects.filter(pk=Build.objects.earliest("pk").pk).update(state=BuildState.BUILDING)
    text = withdraw("--yes")
    assert "Builds under way, which finish with what they started with: 1." in text
    assert f"Open experiments may still boot kernels from before: {experiment.pk}." in text


@pytest.mark.parametrize(
    ("refs", "option"), [((REF,), ()), ((REF,), ("--ref", REF)), (("refs/tags/v6.*",), ())]
)
def test_a_branch_that_the_setting_still_names_is_refused(
    tree: Tree,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    refs: tuple[str, ...],
    option: tuple[str, ...],
) -> None:
    settings.VOUCHED = {ADDRESS: refs}
    assert call(monkeypatch, "lab", "withdraw-trust", "linux", *option, "--yes") == 64
    (line,) = capsys.readouterr().err.splitlines()
    assert f"KPERFLAB_VOUCHED still names {refs[0]} of {ADDRESS}" in line
    assert not Withdrawal.objects.exists()


def test_another_branch_of_the_tree_may_stay_vouched_for(tree: Tree, settings: Any) -> None:
    settings.VOUCHED = {ADDRESS: ("refs/heads/main",)}
    assert "Trust is withdrawn" in withdraw("--ref", REF, "--yes")


def test_a_tree_that_the_lab_does_not_know_is_refused_with_the_nearest(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "lab", "withdraw-trust", "linx", "--yes") == 64
    (line,) = capsys.readouterr().err.splitlines()
    assert 'there is no tree "linx"; did you mean "linux"?' in line


@pytest.fixture
def vouching(fake_lab: FakeLab, settings: Any, monkeypatch: pytest.MonkeyPatch) -> FakeLab:
    """A lab with the front that has built nothing, and vouches for the pretend kernel's branches."""
    for folder in ("objects", "artifacts"):
        shutil.rmtree(fake_lab.home / folder, ignore_errors=True)
    program = compile_front(kept("front"))
    monkeypatch.setattr("kernels.builds.front_build.compile_front", lambda root: program)
    settings.LOCAL_PATHS = settings.FRONT = True
    settings.VOUCHED = {str(fake_lab.kernel.work): ("refs/heads/*",)}
    return fake_lab


def base_build(experiment: Experiment) -> Build:
    return Build.objects.get(variants__experiment=experiment, variants__name="base")


def log_of(lab: FakeLab, build: Build) -> str:
    return (lab.home / build.log).read_text()


MEASURE = {"boots": 2, "iterations": 2, "warmup": 1}


@pytest.mark.process
def test_a_rerun_builds_from_nothing_and_the_one_after_it_shares_that(
    vouching: FakeLab, settings: Any
) -> None:
    first = vouching.run(vouching.spec({}, measure=MEASURE))
    before = base_build(first)
    assert before.request["vouched"] is True
    settings.VOUCHED = {}
    text = withdraw("--yes", tree=first.tree.name)
    assert "labctl rerun N" in text
    again = [rerun_experiment(experiment_id=first.pk, by=None) for _ in range(2)]
    for made in again:
        local.work_through(made.experiment.pk)
    after, shared = (base_build(Experiment.objects.get(pk=made.experiment.pk)) for made in again)
    assert after.pk == shared.pk
    assert after.artifact_key != before.artifact_key
    assert "answered 0 files and compiled 4" in log_of(vouching, after)
    assert before.artifact_key == Build.objects.get(pk=before.pk).artifact_key


def kept_as_trusted(lab: FakeLab) -> set[Path]:
    """Return what answers builds over other bases: trusted files, and layers that say what they are of."""
    objects = lab.home / "objects"
    return {*objects.glob("compiled/trusted*/*/*"), *objects.glob("*/revision.json")}


@pytest.mark.process
def test_a_build_that_waits_from_before_is_made_after_and_trusted_no_more(
    vouching: FakeLab, settings: Any
) -> None:
    waiting = submit_experiment(spec=vouching.spec({}, measure=MEASURE), home=vouching.home)
    assert base_build(waiting).request["vouched"] is True
    settings.VOUCHED = {}
    withdraw("--yes", tree=waiting.tree.name)
    local.work_through(waiting.pk)
    assert base_build(waiting).state == BuildState.BUILT
    assert "answered 0 files" in log_of(vouching, base_build(waiting))
    assert kept_as_trusted(vouching) == set()


@pytest.mark.process
def test_a_kernel_that_was_lost_is_built_again_without_what_was_trusted(
    vouching: FakeLab, settings: Any
) -> None:
    """Its row is from before the withdrawal; its files are not."""
    first = submit_experiment(spec=vouching.spec({}, measure=MEASURE), home=vouching.home)
    local.build_all(first.pk)
    before = base_build(first)
    assert before.state == BuildState.BUILT
    settings.VOUCHED = {}
    withdraw("--yes", tree=first.tree.name)
    assert forget_artifact(before.pk)
    local.build_all(first.pk)
    after = base_build(first)
    assert (after.pk, after.state) == (before.pk, BuildState.BUILT)
    assert after.artifact_key != before.artifact_key
    assert "answered 0 files" in log_of(vouching, after)
