# SPDX-License-Identifier: GPL-2.0-or-later
"""A `base-commit:` trailer: used where the tree has it, told where the tree lacks it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from lab.conftest import Describe
from lab.errors import SubmissionRejected
from lab.models import Experiment
from lab.submission.preview import preview_experiment
from lab.submission.submit import submit_experiment
from lab.tests.tiny_tree import diff, git

pytestmark = [pytest.mark.django_db, pytest.mark.hostile, pytest.mark.process]
ABSENT = "f" * 40


def patch(commit: str, line: int = 10, old: str = "") -> list[dict[str, Any]]:
    change = diff("fs/inode.c", line, "one")
    change = change.replace("-line 10\n", f"-{old}\n") if old else change
    head = "From: A <a@example.org>\nSubject: [PATCH] fs: one\n\nWhy.\n---\n"
    return [{"name": "one", "text": f"{head}{change}\nbase-commit: {commit}\n-- \n2.39\n"}]


def test_a_patch_whose_base_the_tree_lacks_is_tried_on_the_trees_base(describe: Describe, home: Path) -> None:
    spec = describe(patches=patch(ABSENT), base="")
    note = "its base-commit ffffffffffff is not in linux, so it was tried on main"
    preview = preview_experiment(spec=spec, home=home)
    assert [note.replace("linux", preview.tree)] == list(preview.switches[0].notes)
    experiment = submit_experiment(spec=spec, home=home)
    assert experiment.switches.get().notes == list(preview.switches[0].notes)


def test_where_it_does_not_apply_the_refusal_says_where_the_base_came_from(
    describe: Describe, home: Path
) -> None:
    with pytest.raises(SubmissionRejected) as refused:
        submit_experiment(spec=describe(patches=patch(ABSENT, old="line ten")), home=home)
    said = str(refused.value)
    assert 'the mail of switch "one" names base-commit ffffffffffff, which ' in said
    assert said.endswith(" lacks: name a tree that has it (git = …), or a base that the patches apply to")
    assert not Experiment.objects.exists()


def test_a_base_that_the_tree_has_is_taken_where_none_is_named(
    describe: Describe, repository: Path, home: Path
) -> None:
    first = git(repository, "rev-parse", "v6.1").strip()
    preview = preview_experiment(spec=describe(patches=patch(first), base=""), home=home)
    assert preview.commit == first
    assert preview.switches[0].notes == (f"its base-commit {first[:12]} is the base, as none was named",)


def test_of_several_versions_the_newest_ones_base_is_taken(
    describe: Describe, repository: Path, home: Path
) -> None:
    first = git(repository, "rev-parse", "v6.1").strip()
    (old,), (new,) = patch(ABSENT), patch(first)
    mails = (old["text"], new["text"].replace("[PATCH]", "[PATCH v2]"))
    text = "\n".join(f"From {ABSENT} Mon Sep 17 00:00:00 2001\n{mail}" for mail in mails)
    preview = preview_experiment(spec=describe(patches=[{"name": "one", "text": text}], base=""), home=home)
    assert preview.switches[0].notes[-1] == f"its base-commit {first[:12]} is the base, as none was named"


def test_the_base_that_an_encoded_mail_names_is_taken(
    describe: Describe, repository: Path, home: Path
) -> None:
    first = git(repository, "rev-parse", "v6.1").strip()
    head, _, body = patch(first)[0]["text"].partition("\n\n")
    text = f"{head}\nContent-Transfer-Encoding: base64\n\n{base64.encodebytes(body.encode()).decode()}"
    preview = preview_experiment(spec=describe(patches=[{"name": "one", "text": text}], base=""), home=home)
    assert preview.switches[0].notes[-1] == f"its base-commit {first[:12]} is the base, as none was named"


def test_a_base_that_the_description_names_counts_more(
    describe: Describe, repository: Path, home: Path
) -> None:
    first = git(repository, "rev-parse", "v6.1").strip()
    preview = preview_experiment(spec=describe(patches=patch(first), base="v6.1"), home=home)
    assert (preview.base, preview.switches[0].notes) == ("v6.1", ())


@pytest.mark.parametrize("commit", ["--upload-pack=x", "HEAD", "0" * 39, "g" * 40, "refs/heads/main"])
def test_a_trailer_that_names_no_commit_is_prose(describe: Describe, home: Path, commit: str) -> None:
    preview = preview_experiment(spec=describe(patches=patch(commit)), home=home)
    assert preview.switches[0].notes == ()
