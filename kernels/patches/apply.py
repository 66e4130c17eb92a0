# SPDX-License-Identifier: GPL-2.0-or-later
"""Apply patches to a revision without a work tree.

A temporary index takes the diffs (`git apply --cached`), and every patch becomes a commit with a fixed identity and
date, so equal inputs have equal ids on every machine. A hunk may have moved (its line numbers may be off), but all its context has to match.

There is no three-way merge, on purpose: it works only where the repository happens to hold the blobs that the patch's `index` lines
name. A full clone has them and an imported tarball does not, so the same patch would apply on one machine only, or to something else.
"""

import re
from collections.abc import Mapping, Sequence

from kernels.diffs.unified import FileDiff, Hunk, parse_diff
from kernels.errors import GitFailed, PatchDoesNotApply, UnknownPath
from kernels.patches.series import Patch
from kernels.trees.git import COMMITTER, run_git, try_git
from kernels.trees.tree import NamedRevision, SourceTree, keep, read_file, temporary_index

_HUNK_FAILED = re.compile(r"^error: patch failed: (.+):(\d+)$", re.M)
_FILE_FAILED = re.compile(r"^error: (.+?): (already exists in index|does not exist in index|.+)$", re.M)
_REASONS = {
    "does not exist in index": "the tree has no such file",
    "already exists in index": "the patch creates this file, but the tree has one already",
    "removal patch leaves file contents": "the patch deletes this file, but the tree's has other contents",
}


def apply_patches(tree: SourceTree, base: NamedRevision, patches: Sequence[Patch]) -> NamedRevision:
    """Return the revision that has all the patches on top of `base`, in their order; `base` itself if there are none.

    Raises PatchDoesNotApply with patch, file, hunk and reason; its detail is the hunk.
    """
    if not patches:
        return base
    commit = base.commit
    with temporary_index(tree, base.tree_id) as environment:
        for patch in patches:
            _apply_one(tree, patch, environment)
            tree_id = run_git(tree.repository, "write-tree", environment=environment).decode().strip()
            commit = _commit(tree, tree_id, commit, patch)
    keep(tree.repository, commit)
    return NamedRevision(commit, tree_id, f"{base.name} + {len(patches)} patch{'es' if patches[1:] else ''}")


def _apply_one(tree: SourceTree, patch: Patch, environment: Mapping[str, str]) -> None:
    data = patch.diff.encode("utf-8", "surrogateescape")
    done = _git_apply(tree, data, environment)
    if done:
        undone = _git_apply(tree, data, environment, "--reverse", "--check")
        raise _does_not_apply(tree, patch, done, environment, already=not undone)


def _git_apply(tree: SourceTree, data: bytes, environment: Mapping[str, str], *options: str) -> str:
    """Apply a diff; return git's complaint, empty if it applied."""
    apply = ("apply", "--cached", "--whitespace=nowarn", *options, "-")
    done = try_git(tree.repository, *apply, data=data, environment=environment)
    return done.stderr.decode("utf-8", "surrogateescape") or "git apply failed" if done.returncode else ""


def _commit(tree: SourceTree, tree_id: str, parent: str, patch: Patch) -> str:
    message = f"{patch.title}\n\n{patch.message}".strip() + "\n"
    out = run_git(
        tree.repository,
        "commit-tree",
        "-p",
        parent,
        tree_id,
        data=message.encode("utf-8", "replace"),
        environment=COMMITTER,
    )
    return out.decode().strip()


def _does_not_apply(
    tree: SourceTree, patch: Patch, complaint: str, environment: Mapping[str, str], *, already: bool
) -> PatchDoesNotApply:
    """Turn git's complaint about a patch into one that names hunk and reason."""
    if match := _HUNK_FAILED.search(complaint):
        path, line = match[1], int(match[2])
        file, number, hunk = _find_hunk(patch, path, line)
        if file and hunk:
            reason = (
                "the tree has this change already" if already else _missing(tree, path, hunk, environment)
            )
            where = f"hunk {number} of {len(file.hunks)} ({hunk.header})"
            detail = "\n".join([hunk.header, *hunk.lines])
            return PatchDoesNotApply(patch.title, file=path, hunk=where, reason=reason, detail=detail)
    match = _FILE_FAILED.search(complaint)
    path, reason = (match[1], match[2]) if match else (patch.files[0], complaint.strip().splitlines()[-1])
    reason = "the tree has this change already" if already else _REASONS.get(reason, reason)
    return PatchDoesNotApply(patch.title, file=path, reason=reason, detail=complaint.strip())


def _find_hunk(patch: Patch, path: str, line: int) -> tuple[FileDiff | None, int, Hunk | None]:
    """The hunk of a file whose old side starts at a line, and its number, from 1."""
    for file in parse_diff(patch.diff):
        if path in (file.old_path, file.new_path):
            for number, hunk in enumerate(file.hunks, 1):
                if hunk.old_start == line:
                    return file, number, hunk
    return None, 0, None


def _missing(tree: SourceTree, path: str, hunk: Hunk, environment: Mapping[str, str]) -> str:
    """Return a text that names a line of the hunk's old side that the current file lacks."""
    try:
        now = run_git(tree.repository, "write-tree", environment=environment).decode().strip()
        lines = read_file(tree, now, path).decode("utf-8", "surrogateescape").split("\n")
    except (UnknownPath, GitFailed):
        return "its old lines are not in the file"
    wanted = [line[1:] for line in hunk.lines if line[:1] in (" ", "-")]
    have = set(lines)
    absent = [line for line in wanted if line not in have]
    if absent:
        return f'the file has no line "{absent[0].strip()[:80]}"'
    if not any(line.startswith(" ") for line in hunk.lines):
        return "it has no context, so nothing but its line number tells its place; send a diff with context (git diff -U3)"
    return "the file has all its lines, but not in this order at one place"
