# SPDX-License-Identifier: GPL-2.0-or-later
"""A repository that is fetched often keeps few packs, and repacking does not disturb its readers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernels.tests.pretend import PretendKernel
from kernels.trees import repack as repacking
from kernels.trees.address import own_address
from kernels.trees.git import git_command, git_environment
from kernels.trees.remote import USUAL
from kernels.trees.repack import MOST_PACKS, packs, roll_up
from kernels.trees.tree import SourceTree, open_git, resolve

pytestmark = [pytest.mark.hostile, pytest.mark.process]


def git(repository: Path, *arguments: str) -> str:
    command = git_command(f"--git-dir={repository}", *arguments)
    done = subprocess.run(
        command, env=git_environment(), check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout


def fetched(pretend: PretendKernel, root: Path, times: int) -> tuple[SourceTree, list[str]]:
    """Fetch a repository whose one branch is replaced each time, so that only the last commit is reachable."""
    commits = []
    tree = None
    for number in range(times):
        commits.append(pretend.variant({"drivers/added.c": f"int added_{number};\n"}).commit)
        tree = open_git("theirs", own_address(str(pretend.work)), root)
    assert tree is not None
    return tree, commits


def test_packs_stay_few_and_every_commit_stays(
    pretend: PretendKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repacking, "MOST_PACKS", 4)
    tree, commits = fetched(pretend, tmp_path, 12)
    assert len(packs(tree.repository)) <= 5
    for number, commit in enumerate(commits):
        assert f"added_{number};" in git(tree.repository, "show", f"{commit}:drivers/added.c")
    git(tree.repository, "fsck", "--full", "--strict")
    assert not list((tree.repository / "objects" / "pack").glob("*tmp*"))
    assert (
        resolve(tree, "main" if "main" in git(tree.repository, "branch") else "master").commit == commits[-1]
    )


def test_a_reader_reads_on_over_a_roll_up(
    pretend: PretendKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, commits = fetched(pretend, tmp_path, 6)
    command = git_command(f"--git-dir={tree.repository}", "cat-file", "--batch-check")
    with subprocess.Popen(
        command, env=git_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None

        def asks(commit: str) -> str:
            reader.stdin.write(f"{commit}\n")  # type: ignore[union-attr]
            reader.stdin.flush()  # type: ignore[union-attr]
            return reader.stdout.readline()  # type: ignore[union-attr]

        assert asks(commits[0]).split()[1] == "commit"
        monkeypatch.setattr(repacking, "MOST_PACKS", 2)
        before = set(packs(tree.repository))
        assert roll_up(tree.repository, seconds=60, memory=USUAL.memory, room=1 << 30)
        assert before - set(packs(tree.repository))
        assert [asks(commit).split()[1] for commit in commits] == ["commit"] * len(commits)
        reader.stdin.close()


@pytest.mark.parametrize("limit", [{"seconds": 0.001}, {"memory": 1 << 20}, {"room": 16}])
def test_a_roll_up_that_meets_a_limit_changes_nothing(
    pretend: PretendKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: dict[str, float]
) -> None:
    tree, commits = fetched(pretend, tmp_path, 4)
    monkeypatch.setattr(repacking, "MOST_PACKS", 1)
    before = packs(tree.repository)
    allowed = {"seconds": 60.0, "memory": USUAL.memory, "room": 1 << 30} | limit
    assert not roll_up(tree.repository, **allowed)  # type: ignore[arg-type]
    assert packs(tree.repository) == before
    assert not list((tree.repository / "objects" / "pack").glob("*tmp*"))
    assert [git(tree.repository, "cat-file", "-t", commit).strip() for commit in commits] == ["commit"] * 4


def test_few_packs_are_left_alone(pretend: PretendKernel, tmp_path: Path) -> None:
    tree, _ = fetched(pretend, tmp_path, 2)
    before = packs(tree.repository)
    assert len(before) <= MOST_PACKS
    assert not roll_up(tree.repository, seconds=60, memory=USUAL.memory, room=1 << 30)
    assert packs(tree.repository) == before
