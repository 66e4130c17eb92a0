# SPDX-License-Identifier: GPL-2.0-or-later
"""An equal description that comes again is the same experiment only while its names mean the same commits."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from lab.conftest import Describe
from lab.models import Experiment
from lab.submission.submit import find_unfinished, submit_experiment
from lab.tests.tiny_tree import INODE, git

pytestmark = [pytest.mark.django_db, pytest.mark.process]


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({}, True),
        ({"base": "v6.1"}, True),
        ({"base": "moving", "patches": []}, False),
        ({"base": "moving", "patches": [], "recent": True}, True),
        ({"patches": [{"name": "topic", "range": "v6.1..moving"}]}, False),
    ],
)
def test_an_equal_description_is_the_same_only_while_its_names_mean_the_same_commits(
    describe: Describe, home: Path, repository: Path, fields: dict[str, Any], same: bool
) -> None:
    recent, fields = "recent" in fields, {name: fields[name] for name in fields if name != "recent"}
    git(repository, "checkout", "-q", "-B", "moving", "v6.1")
    (repository / "fs" / "inode.c").write_text(INODE.replace("line 10\n", "ten\n"))
    git(repository, "commit", "-q", "-am", "ten")
    git(repository, "checkout", "-q", "main")
    first = submit_experiment(spec=describe(**fields), home=home)
    if not recent:
        Experiment.objects.update(created_at=timezone.now() - timedelta(hours=1))
    assert find_unfinished(describe(**fields), home=home) == (first if same else None)


@pytest.mark.hostile
def test_a_full_commit_cannot_move(describe: Describe, home: Path, repository: Path) -> None:
    base = git(repository, "rev-parse", "v6.1^{commit}").strip()
    first = submit_experiment(spec=describe(base=base), home=home)
    Experiment.objects.update(created_at=timezone.now() - timedelta(hours=1))
    assert find_unfinished(describe(base=base), home=home) == first
