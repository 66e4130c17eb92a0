# SPDX-License-Identifier: GPL-2.0-or-later
"""Decide whether the operator trusts a revision: it came with a source archive, or is on a branch or tag that a setting names."""

from collections.abc import Iterable

from kernels.trees.git import run_git
from kernels.trees.tree import NamedRevision, SourceTree, archive_stamp, resolve


def is_own_archive(tree: SourceTree, revision: NamedRevision) -> bool:
    """Return whether a revision is the commit of a source archive of this machine, which the operator installed."""
    if archive_stamp(tree) in ("", "store"):
        return False
    installed = resolve(tree, tree.default_revision)
    return (installed.commit, installed.tree_id) == (revision.commit, revision.tree_id)


def is_on_refs(tree: SourceTree, revision: NamedRevision, patterns: Iterable[str]) -> bool:
    """Return whether one of these branches and tags contains a revision. Raises GitFailed.

    patterns: as git-for-each-ref(1) takes them, such as refs/tags/v6.*.
    """
    wanted = list(patterns)
    if not wanted:
        return False
    asked = ("--count=1", "--format=%(refname)", f"--contains={revision.commit}")
    return bool(run_git(tree.repository, "for-each-ref", *asked, "--", *wanted).strip())
