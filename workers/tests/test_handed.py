# SPDX-License-Identifier: GPL-2.0-or-later
"""A series from a branch, a file or standard input becomes a description."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernels.errors import KernelsError
from kernels.patches.series import read_series
from kernels.trees.git import COMMITTER, git_environment
from lab.errors import SpecError
from lab.experiments.spec import spec_from_mapping
from workers.ctl.clients.client import Client
from workers.ctl.submit_options import SubmitOptions, description
from workers.ctl.submitted_files import branch_series, handed_series, is_series, newest_release

NAMES = {"trees": [{"name": "debian-6.1"}], "workloads": [{"name": "showgids"}, {"name": "stat-walk"}]}


def client(*, local: bool = False) -> Client:
    return cast("Client", SimpleNamespace(local=local, names=lambda kind: NAMES[kind]))


def git(tree: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(tree), *arguments],
        env=git_environment(COMMITTER),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's git tree: v6.1 on main, which went on; two commits on topic."""
    tree = tmp_path / "linux"
    (tree / "fs").mkdir(parents=True)
    git(tree, "init", "--quiet", "--template=", "--initial-branch=main")
    write(tree, "a.c", "one\ntwo\nthree\n", "first")
    write(tree, "fs/a.c", "", "second")
    git(tree, "tag", "v6.1")
    git(tree, "checkout", "--quiet", "-b", "topic")
    write(tree, "a.c", "one\n2\nthree\n", "fs: two is ½ of four")
    write(tree, "fs/b.c", "new\n", "fs: Add b\n\nIt was missing.")
    git(tree, "checkout", "--quiet", "main")
    write(tree, "c.c", "elsewhere\n", "something else")
    monkeypatch.chdir(tree / "fs")
    return tree


def write(tree: Path, name: str, text: str, message: str) -> None:
    (tree / name).write_text(text)
    git(tree, "add", "-A")
    git(tree, "commit", "--quiet", "-m", message)


@pytest.mark.process
def test_a_branch_is_its_commits_since_it_left_the_base(tree: Path) -> None:
    handed = branch_series("topic", "main")
    series = read_series(handed.text.encode())
    assert [patch.title for patch in series.patches] == ["fs: two is ½ of four", "fs: Add b"]
    assert series.patches[1].message.strip() == "It was missing."
    assert series.patches[0].files == ("a.c",)


@pytest.mark.process
def test_a_linked_work_tree_has_its_branches_too(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tree, "worktree", "add", "--quiet", str(tree.parent / "linked"), "topic")
    monkeypatch.chdir(tree.parent / "linked")
    assert len(read_series(branch_series("topic", "v6.1").text.encode()).patches) == 2


@pytest.mark.process
def test_settings_of_the_person_do_not_change_what_is_sent(tree: Path) -> None:
    before = branch_series("topic", "v6.1").text
    for key, value in {"diff.noprefix": "true", "format.attach": "true", "diff.context": "0"}.items():
        git(tree, "config", key, value)
    assert branch_series("topic", "v6.1").text == before


@pytest.mark.process
@pytest.mark.parametrize(
    ("branch", "base", "said"),
    [
        ("topik", "v6.1", 'no revision "topik"'),
        ("topic", "v6.2", 'no revision "v6.2"'),
        ("v6.1", "topic", "adds no commits"),
        ("--output=x", "v6.1", "no revision"),
    ],
)
def test_a_wrong_branch_says_what_is_wrong(branch: str, base: str, said: str, tree: Path) -> None:
    with pytest.raises((KernelsError, SpecError), match=said):
        branch_series(branch, base)
    assert not (tree / "fs" / "x").exists()


def test_outside_of_a_git_tree_there_are_no_branches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match="is not in a git tree"):
        branch_series("topic", "main")


@pytest.mark.process
def test_the_base_is_the_newest_release_unless_said(tree: Path) -> None:
    assert newest_release("topic") == "v6.1"
    told = description(
        None, SubmitOptions(branch="topic", tree="debian-6.1", workload=["showgids:smoke"]), client()
    )
    assert told["base"] == "v6.1"
    assert told["name"] == "topic"
    assert told["cases"] == [{"workload": "showgids", "preset": "smoke"}]
    assert [patch["name"] for patch in told["patches"]] == ["topic"]
    assert spec_from_mapping(told).tree == "debian-6.1"


@pytest.mark.process
def test_each_patch_may_be_a_switch(tree: Path) -> None:
    options = SubmitOptions(branch="topic", tree="debian-6.1", workload=["showgids"], each=True)
    spec = spec_from_mapping(description(None, options, client()))
    assert [patch.name for patch in spec.patches] == ["1-fs-two-is-of-four", "2-fs-Add-b"]
    assert spec.design == "cumulative"
    assert all(len(read_series((patch.text or "").encode()).patches) == 1 for patch in spec.patches)


@pytest.mark.process
def test_on_this_machine_the_current_tree_is_the_tree(tree: Path) -> None:
    told = description(None, SubmitOptions(branch="topic", workload=["showgids"]), client(local=True))
    assert told["git"] == str(tree)


@pytest.mark.process
def test_defaults_of_the_tree_fill_what_is_not_said(tree: Path) -> None:
    (tree / ".labctl.toml").write_text(
        '[defaults]\ntree = "debian-6.1"\nworkload = "stat-walk"\npreset = "smoke"\nboots = 3\n'
        'clock = "instructions"\ntarget = "metal"\nprofile = true\n'
    )
    spec = spec_from_mapping(
        description(None, SubmitOptions(branch="topic", measure={"clock": "wall"}), client())
    )
    assert (spec.tree, spec.target, spec.cases[0].workload, spec.cases[0].preset) == (
        "debian-6.1",
        "metal",
        "stat-walk",
        "smoke",
    )
    assert (spec.measure.boots, spec.measure.clock, spec.measure.profile) == (3, "wall", True)


@pytest.mark.process
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (SubmitOptions(), "give either a file"),
        (SubmitOptions(branch="topic", workload=["showgids"]), r"--tree NAME \(debian-6.1\)"),
        (SubmitOptions(branch="topic", tree="debian-6.1"), r"--workload NAME \(showgids, stat-walk\)"),
    ],
)
def test_what_is_missing_is_named_with_what_is_valid(options: SubmitOptions, said: str, tree: Path) -> None:
    with pytest.raises(SpecError, match=said):
        description(None, options, client())


@pytest.mark.process
def test_a_series_comes_in_on_standard_input(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mails = git(tree, "format-patch", "--stdout", "--base=v6.1", "v6.1..topic")
    stdin = SimpleNamespace(isatty=lambda: False, buffer=io.BytesIO(mails.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    told = description(Path("-"), SubmitOptions(tree="debian-6.1", workload=["showgids"]), client())
    # The lab takes the base that the series names, if its tree has it.
    assert "base" not in told
    assert "base-commit: " + git(tree, "rev-parse", "v6.1").strip() in told["patches"][0]["text"]
    assert told["patches"] == [{"name": "fs-two-is-of-four", "text": mails}]


def test_nothing_on_standard_input_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    with pytest.raises(SpecError, match="b4 am"):
        description(Path("-"), SubmitOptions(), client())
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: False, buffer=io.BytesIO(b"\n")))
    with pytest.raises(SpecError, match="standard input is empty"):
        description(Path("-"), SubmitOptions(), client())


def test_a_damaged_series_is_left_for_the_lab_to_repair() -> None:
    data = b"From x Mon Sep 17 00:00:00 2001\nFrom: a <a@b.c>\nSubject: [PATCH] x\n\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n"
    handed = handed_series(data, Path("web.mbox"))
    assert (handed.series, handed.name, handed.text) == (None, "web", data.decode())


@pytest.mark.parametrize(
    ("file", "switch"),
    [
        ("v2-0001-kernfs-Add-x.patch", "kernfs-Add-x"),
        ("series.v4.mbox", "series"),
        ("base.mbox", "base-patch"),
        ("-", "x"),
        (".patch", "x"),
    ],
)
def test_a_switch_is_named_after_its_file(file: str, switch: str) -> None:
    data = b"From: a <a@b.c>\nSubject: [PATCH] x\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    assert handed_series(data, Path(file)).switch == switch


@pytest.mark.parametrize(
    ("data", "series"),
    [
        (b"From 0123 Mon Sep 17 00:00:00 2001\n", True),
        (b"Subject: [PATCH] x\n\n", True),
        (b"Return-Path: <a@b.c>\n", True),
        (b"diff --git a/x b/x\n", True),
        (b"--- a/x\n+++ b/x\n", True),
        (b'name = "x"\n', False),
        (b"# a comment: of TOML\n[[patches]]\n", False),
        (b'name = """\nx"""\n', False),
        (b'\n# from a page\nname = "x"\n[[patches]]\ntext = """\ndiff --git a/x b/x\n"""\n', False),
        (b'[[patches]]\r\ntext = """\r\n--- a/x\r\n+++ b/x\r\n"""\n', False),
        (b"# HG changeset patch\n# User a\n\nfix x\n\ndiff --git a/x b/x\n", True),
        (b"the rwsem = slow\n\ndiff --git a/x b/x\n", True),
    ],
)
def test_a_series_is_told_from_a_description(data: bytes, series: bool) -> None:
    assert is_series(data) is series


def test_a_file_is_changed_by_what_options_say(tmp_path: Path) -> None:
    (tmp_path / "p.patch").write_text("diff --git a/x b/x\n")
    file = tmp_path / "x.toml"
    file.write_text(
        'name = "x"\ntree = "a"\nbase = "v1"\n[[patches]]\nname = "p"\nfile = "p.patch"\n'
        '[[cases]]\nworkload = "showgids"\n[measure]\nboots = 4\nseed = 9\n'
    )
    told: dict[str, Any] = description(
        file, SubmitOptions(tree="/some/git", target="metal", measure={"boots": "auto"}), client()
    )
    assert "tree" not in told
    assert (told["git"], told["base"], told["target"]) == ("/some/git", "v1", "metal")
    assert told["measure"] == {"boots": "auto", "seed": 9}
    assert told["patches"] == [{"name": "p", "text": "diff --git a/x b/x\n", "origin": "p.patch"}]
    with pytest.raises(SpecError, match="are for a series"):
        description(file, SubmitOptions(workload=["showgids"]), client())
    with pytest.raises(SpecError, match="--preset"):
        description(file, SubmitOptions(preset="large"), client())


@pytest.mark.parametrize("text", ["x = " + "[" * 5000, "x = " + "9" * 5000, "x = \xff", "x ="])
def test_a_file_that_toml_cannot_read_is_refused_in_a_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(SpecError, match="TOML"):
        description(tmp_path / "x.toml", SubmitOptions(), client())
