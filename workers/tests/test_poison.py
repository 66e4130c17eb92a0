# SPDX-License-Identifier: GPL-2.0-or-later
"""A stranger's base plants code among the objects and a patch turns its tree into the trusted one; nobody else may boot that."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from kernels.builds.builder import Builder
from kernels.trees.git import COMMITTER, git_command, git_environment
from lab.models import Build, Experiment, User
from lab.runs.work_orders import build_order
from lab.submission.submit import submit_experiment
from lab.tests.factories import make_user
from workers import local
from workers.build import build_request
from workers.tests.conftest import FakeLab, opens

pytestmark = [pytest.mark.hostile, pytest.mark.django_db, pytest.mark.process]

_MEASURE = {"boots": 2, "iterations": 2, "warmup": 1}
# What a hostile Makefile leaves in place of an object, newer than every source that make compares it with.
_PLANT = (
    "printf 'static const char backdoor[] __attribute__((used)) = \"BACKDOOR\";' >/tmp/plant.h && "
    "$(CC) $(flags) -include /tmp/plant.h -c -o {object}.o $(srctree)/{object}.c"
)


class Mallory:
    """A repository of the stranger's own: a copy of the trusted tree, and one commit on top of it."""

    def __init__(self, folder: Path, trusted: Path, commit: str) -> None:
        self.work = folder / "mallory"
        self.trusted = commit
        subprocess.run(
            git_command("clone", "--quiet", str(trusted), str(self.work)), env=self._environment(), check=True
        )
        self.git("checkout", "--quiet", "-B", "main", commit)

    def plants(self, object_name: str) -> str:
        """Commit a base that plants an object; returns the patch that turns its tree into the trusted one."""
        recipe = _PLANT.format(object=object_name)
        last = "modules vmlinux arch/x86/boot/bzImage System.map"
        (self.work / "kernel/Makefile").write_text(f"all: planted\nplanted: {last}\n\t@{recipe}\n")
        self.git("add", "kernel/Makefile")
        self.git("commit", "--quiet", "--all", "--message", "an innocent looking base")
        return self.git("diff", "HEAD", self.trusted)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            git_command("-C", str(self.work), *arguments),
            env=self._environment(),
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def _environment(self) -> dict[str, str]:
        return git_environment({**COMMITTER, "GIT_ALLOW_PROTOCOL": "file"})


@pytest.fixture(autouse=True)
def directories_stand_for_public_servers(settings: Any) -> None:
    settings.LOCAL_PATHS = True


@pytest.fixture
def mallory(fake_lab: FakeLab, tmp_path: Path) -> Mallory:
    fake_lab.scripts[""] = lambda request: opens(1000.0 + len(fake_lab.driver.requests) % 3)
    return Mallory(tmp_path, fake_lab.kernel.work, fake_lab.kernel.base.commit)


def submitted(lab: FakeLab, who: str, patches: dict[str, str], **more: Any) -> Experiment:
    """An experiment that ran to its end."""
    user = make_user(who, User.Role.SUBMITTER)
    spec = lab.spec(patches, measure=_MEASURE, **more)
    experiment = submit_experiment(spec=spec, by=user, home=lab.home)
    local.work_through(experiment.pk)
    return Experiment.objects.get(pk=experiment.pk)


def build_of(experiment: Experiment, variant: str) -> Build:
    return Build.objects.get(variants__experiment=experiment, variants__name=variant)


def vmlinux(lab: FakeLab, build: Build) -> bytes:
    return (lab.home / "artifacts" / build.artifact_key / "vmlinux").read_bytes()


def honest(build: Build, lab: FakeLab, folder: Path) -> bytes:
    """The very request, built in a state root where nobody built before."""
    request = build_request(build_order(build.pk), lab.home / "trees")
    return Builder(folder).build(request).vmlinux.read_bytes()


@pytest.mark.parametrize("object_name", ["fs/buffer", pytest.param("fs/inode", marks=pytest.mark.thorough)])
def test_a_trusted_base_is_never_answered_with_what_a_strangers_base_left(
    fake_lab: FakeLab, mallory: Mallory, tmp_path: Path, object_name: str
) -> None:
    patch = mallory.plants(object_name)
    theirs = submitted(fake_lab, "mallory", {"p": patch}, git=str(mallory.work), base="main")
    bad = build_of(theirs, "p")
    assert bad.tree_id == fake_lab.kernel.base.tree_id  # sources that look trusted
    assert b"BACKDOOR" in vmlinux(fake_lab, bad)  # it is theirs, and only theirs
    booted = len(fake_lab.driver.requests)
    ours = build_of(submitted(fake_lab, "victim", {}), "base")
    assert ours.tree_id == bad.tree_id
    assert ours.artifact_key != bad.artifact_key
    assert vmlinux(fake_lab, ours) == honest(ours, fake_lab, tmp_path / "clean")
    assert b"BACKDOOR" not in vmlinux(fake_lab, ours)
    kernels = {request.kernel.parent.name for request in fake_lab.driver.requests[booted:]}
    assert kernels == {ours.artifact_key}


def test_a_hostile_commit_within_the_very_tree_poisons_no_build_of_another_base(
    fake_lab: FakeLab, mallory: Mallory, tmp_path: Path
) -> None:
    """The stranger names the trusted tree itself: everything but the base is what the victim asks for."""
    patch = mallory.plants("fs/buffer")
    trusted = ("git", "-C", str(fake_lab.kernel.work))
    subprocess.run([*trusted, "fetch", "--quiet", str(mallory.work), "main:evil"], check=True)
    try:
        theirs = submitted(fake_lab, "mallory", {"p": patch}, base="evil")
    finally:
        subprocess.run([*trusted, "branch", "--quiet", "-D", "evil"], check=True)
    bad = build_of(theirs, "p")
    assert b"BACKDOOR" in vmlinux(fake_lab, bad)
    ours = build_of(submitted(fake_lab, "victim", {}), "base")
    assert ours.pk != bad.pk
    assert ours.inputs != bad.inputs
    assert vmlinux(fake_lab, ours) == honest(ours, fake_lab, tmp_path / "clean")


def test_builders_trust_the_vouched_branch_of_a_tree_and_no_strangers_beside_it(
    fake_lab: FakeLab, mallory: Mallory, settings: Any
) -> None:
    """Files compiled of a trusted base answer every later build."""
    mallory.plants("fs/buffer")
    branch = mallory.git("-C", str(fake_lab.kernel.work), "branch", "--show-current").strip()
    settings.FRONT, settings.VOUCHED = True, {str(fake_lab.kernel.work): (f"refs/heads/{branch}",)}
    trusted = ("git", "-C", str(fake_lab.kernel.work))
    subprocess.run([*trusted, "fetch", "--quiet", str(mallory.work), "main:evil"], check=True)
    try:
        asked = {base: submit(fake_lab, base) for base in (branch, "evil")}
    finally:
        subprocess.run([*trusted, "branch", "--quiet", "-D", "evil"], check=True)
    trust = {
        base: build_request(build_order(build.pk), fake_lab.home / "trees").trusted
        for base, build in asked.items()
    }
    assert trust == {branch: True, "evil": False}


def submit(lab: FakeLab, base: str) -> Build:
    """Have the base of an experiment wait to be built, and return its build."""
    spec = lab.spec({}, measure=_MEASURE, base=base)
    experiment = submit_experiment(spec=spec, home=lab.home)
    return Build.objects.get(variants__experiment=experiment, variants__name="base")


def test_a_patch_on_the_trusted_base_is_not_answered_from_a_strangers_base(
    fake_lab: FakeLab, mallory: Mallory, tmp_path: Path
) -> None:
    """Both switch on the same patch; one of them over objects of their own."""
    fix = fake_lab.diff("fs/inode.c", "i_ino == ino", "i_ino >= ino")
    mallory.plants("fs/buffer")
    (mallory.work / "fix.patch").write_text(fix)
    mallory.git("reset", "--quiet", "--hard", "main")
    evil = mallory.git("rev-parse", "HEAD").strip()
    mallory.git("checkout", "--quiet", mallory.trusted)
    mallory.git("apply", "--index", "fix.patch")
    patched = mallory.git("write-tree").strip()
    patch = mallory.git("diff", evil, patched)
    mallory.git("reset", "--quiet", "--hard", "main")
    theirs = submitted(fake_lab, "mallory", {"p": patch}, git=str(mallory.work), base="main")
    bad = build_of(theirs, "p")
    ours = build_of(submitted(fake_lab, "victim", {"fix": fix}), "fix")
    assert ours.tree_id == bad.tree_id == patched
    assert b"BACKDOOR" in vmlinux(fake_lab, bad)
    assert vmlinux(fake_lab, ours) == honest(ours, fake_lab, tmp_path / "clean")


def test_two_people_who_ask_for_the_same_share_one_build_and_one_base(fake_lab: FakeLab) -> None:
    """Equal inputs are still built once."""
    fix = fake_lab.diff("fs/inode.c", "i_ino == ino", "i_ino > ino")
    first = submitted(fake_lab, "alice", {"fix": fix})
    second = submitted(fake_lab, "bob", {"fix": fix})
    for variant in ("base", "fix"):
        assert build_of(first, variant).pk == build_of(second, variant).pk
    other = fake_lab.diff("fs/inode.c", "i_ino == ino", "i_ino < ino")
    third = build_of(submitted(fake_lab, "carol", {"other": other}), "other")
    log = (fake_lab.home / third.log).read_text()
    compiled = [line.split()[-1] for line in log.splitlines() if line.startswith("  CC ")]
    assert sorted(compiled) == ["fs/inode.o", "init/version.o"]
