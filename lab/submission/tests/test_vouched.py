# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that the operator vouches for: what is compiled of such a base answers every later build, so a stranger's never may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernels.tests.sources import make_archive
from lab.conftest import Describe
from lab.environment import read_refs
from lab.errors import SettingWrong
from lab.models import Build
from lab.runs.work_orders import build_order
from lab.submission.submit import submit_experiment
from lab.tests.factories import claimed_build
from lab.tests.tiny_tree import git, make_tiny_tree

pytestmark = [pytest.mark.django_db, pytest.mark.process]


@pytest.fixture
def upstream(settings: Any, tmp_path: Path) -> Path:
    """A tree whose branch main and tags v6.* are vouched for, with a commit after v6.1, and one beside it that anybody may have pushed."""
    repository = make_tiny_tree(tmp_path / "linux")
    settings.FRONT = True
    settings.VOUCHED = {str(repository): ("refs/heads/main", "refs/tags/v6.*")}
    git(repository, "checkout", "-q", "-b", "topic")
    git(repository, "commit", "-q", "--allow-empty", "-m", "a stranger's")
    git(repository, "tag", "topic-1")
    git(repository, "checkout", "-q", "main")
    git(repository, "commit", "-q", "--allow-empty", "-m", "upstream's")
    return repository


def vouched_for(upstream: Path, describe: Describe, home: Path, base: str) -> set[bool]:
    submit_experiment(spec=describe(git=str(upstream), base=base), home=home, on_progress=lambda line: None)
    return {build.request["vouched"] for build in Build.objects.all()}


@pytest.mark.parametrize("base", ["main", "main~1", "v6.1"])
def test_a_base_on_a_vouched_branch_or_before_it_is_vouched_for(
    upstream: Path, describe: Describe, home: Path, base: str
) -> None:
    assert vouched_for(upstream, describe, home, base) == {True}


@pytest.mark.parametrize("base", ["topic", "topic-1"])
def test_a_base_beside_the_vouched_branches_is_not(
    upstream: Path, describe: Describe, home: Path, base: str
) -> None:
    assert vouched_for(upstream, describe, home, base) == {False}


def test_no_branch_of_another_address_is_vouched_for(
    upstream: Path, settings: Any, describe: Describe, home: Path
) -> None:
    settings.VOUCHED = {f"{upstream}-other": ("refs/heads/main",)}
    assert vouched_for(upstream, describe, home, "main") == {False}


def test_without_the_front_nothing_is_asked_of_git(
    upstream: Path, settings: Any, describe: Describe, home: Path
) -> None:
    settings.FRONT = False
    assert vouched_for(upstream, describe, home, "main") == {False}


def test_the_builder_is_told_and_the_digest_is_the_same_either_way(
    upstream: Path, settings: Any, describe: Describe, home: Path
) -> None:
    vouched_for(upstream, describe, home, "main")
    digests = set(Build.objects.values_list("inputs", flat=True))
    settings.VOUCHED = {}
    vouched_for(upstream, describe, home, "main")
    assert set(Build.objects.values_list("inputs", flat=True)) == digests
    assert build_order(claimed_build(Build.objects.earliest("pk")).id).request["vouched"] is True


def test_the_revision_of_a_source_archive_is_vouched_for(
    settings: Any, describe: Describe, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FRONT = True
    archive = make_archive(tmp_path / "a.tar")
    monkeypatch.setattr("lab.submission.sources.DEFAULT_ARCHIVES", {"debian-6.1": archive})
    spec = describe(git=None, tree="debian-6.1", base="", patches=[])
    submit_experiment(spec=spec, home=home, on_progress=lambda line: None)
    assert {build.request["vouched"] for build in Build.objects.all()} == {True}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("http://lab.example/linux.git refs/tags/v6.*", "can be altered in transit"),
        ("git://lab.example/linux.git refs/tags/v6.*", "can be altered in transit"),
        ("https://lab.example/linux.git", "has no branch or tag behind it"),
        ("refs/tags/v6.*", "is not a branch or tag of an address"),
        ("https://lab.example/linux.git refs/kperflab/head", "is not a branch or tag of an address"),
    ],
)
def test_a_setting_that_vouches_for_too_much_or_for_nothing_is_refused(
    text: str, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPERFLAB_VOUCHED", text)
    with pytest.raises(SettingWrong, match=complaint):
        read_refs("KPERFLAB_VOUCHED")
