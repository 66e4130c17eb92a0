# SPDX-License-Identifier: GPL-2.0-or-later
"""A branch of somebody's git repository, as the series of commits that it has over a base.

It is fetched into a scratch repository that borrows the tree's objects, so that what the lab has already is not sent
again, and nothing of it stays but the patches.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernels.errors import GitFailed, PatchRejected, TreeUnreachable, UnknownRevision, UnknownTree, suggest
from kernels.git import hide_password, run_git, try_git
from kernels.patch import Series, read_range
from kernels.safety import MAX_PATCHES
from kernels.scratch import remove_leftovers, scratch
from kernels.tree import Revision, Tree

DEADLINE_S = 120.0
MOST_BYTES = 2 * 1024**3
SCRATCH = ".branches"
_REF = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock$|/\.|/$))[A-Za-z0-9][\w./+-]{0,200}")
_TIP, _START = "refs/kperflab/tip", "refs/kperflab/start"
# git ends by this signal, or says so, when a file passes the limit.
_TOO_LARGE = re.compile(r"File too large|signal 25|unable to write|pack exceeds", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Branch:
    """Where a branch is. protocol: the one git may speak; settings: git's, as kernels.address gives them.

    since: the revision of that repository after which the series begins; empty: where it left the base.
    """

    location: str
    name: str
    protocol: str
    since: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


def read_branch(
    branch: Branch,
    tree: Tree,
    base: Revision,
    *,
    deadline_s: float = DEADLINE_S,
    most_bytes: int = MOST_BYTES,
) -> Series:
    """The commits of a branch that the base lacks, as a series. Merges are refused, and more than 200 commits.

    Raises UnknownTree, UnknownRevision, PatchRejected, TreeUnreachable where the other side does not answer in time.
    """
    for name in filter(None, (branch.name, branch.since)):
        if not _REF.fullmatch(name):
            raise UnknownRevision(f'"{name}" cannot name a branch or a tag')
    scratches = tree.repository.parent / SCRATCH
    remove_leftovers(scratches)
    with scratch(scratches) as place:
        fetched = _Fetch(branch, place / "branch.git", time.monotonic() + deadline_s, most_bytes)
        fetched.prepare(tree)
        start = fetched.start(base)
        return read_range(Tree(tree.name, fetched.repository, branch.name), start, fetched.commit(_TIP))


@dataclass(frozen=True, slots=True)
class _Fetch:
    """One fetch into a scratch repository."""

    branch: Branch
    repository: Path
    ends: float
    most_bytes: int

    def prepare(self, tree: Tree) -> None:
        """Make the repository, its objects borrowed from the tree's."""
        run_git(self.repository, "init", "--quiet", "--bare", "--template=")
        alternates = self.repository / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{(tree.repository / 'objects').resolve()}\n")

    def start(self, base: Revision) -> str:
        """Fetch the branch; the commit after which its series begins."""
        heads = self._listed()
        tip = f"refs/heads/{self.branch.name}"
        if tip not in heads:
            names = [ref.removeprefix("refs/heads/") for ref in heads if ref.startswith("refs/heads/")]
            raise UnknownRevision(
                f'{self._shown} has no branch "{self.branch.name}". {suggest(self.branch.name, names)}'
            )
        since = self.branch.since or base.name
        known = next((ref for ref in (f"refs/tags/{since}", f"refs/heads/{since}") if ref in heads), "")
        if self.branch.since and not known:
            raise UnknownRevision(f'{self._shown} has no tag or branch "{since}" to begin after')
        # An imported archive is one commit, which no repository has; its name is all there is to go by.
        apart = known and not self._has_parents(base) and heads[known] != base.commit
        return self._ranged(tip, known) if self.branch.since or apart else self._shared(tip, base)

    def _has_parents(self, base: Revision) -> bool:
        return bool(run_git(self.repository, "rev-list", "--max-count=1", "--min-parents=1", base.commit))

    def _shared(self, tip: str, base: Revision) -> str:
        """Fetch a branch that has history in common with the base: from where it left it."""
        self._fetch(f"+{tip}:{_TIP}", f"--depth={MAX_PATCHES + 2}")
        found = try_git(f"--git-dir={self.repository}", "merge-base", base.commit, self.commit(_TIP))
        if found.returncode == 0:
            return found.stdout.decode().strip()
        raise PatchRejected(
            f"branch {self.branch.name} of {self._shown} shares no commit with {base.name} among its last "
            f"{MAX_PATCHES}, and has no tag of that name; say after which revision of it the series begins"
        )

    def _ranged(self, tip: str, known: str) -> str:
        """Fetch what a branch has over a tag of its own repository, and one commit more to compare with."""
        self._fetch(f"+{tip}:{_TIP}", f"--shallow-exclude={known}")
        self._fetch(f"+{tip}:{_TIP}", "--deepen=1")
        self._fetch(f"+{known}:{_START}", "--depth=1")
        return self.commit(_START)

    def commit(self, ref: str) -> str:
        """The commit of a ref of ours, through a tag."""
        return run_git(self.repository, "rev-parse", "--verify", f"{ref}^{{commit}}").decode().strip()

    def _listed(self) -> dict[str, str]:
        """The branches and tags there are, with their commits."""
        out = self._remote(
            "ls-remote", "--end-of-options", self.branch.location, "refs/heads/*", "refs/tags/*"
        )
        lines = out.decode(errors="replace").splitlines()
        # An annotated tag is told twice; the second time, marked, with the commit it is of.
        return {
            ref.removesuffix("^{}"): commit
            for commit, _, ref in (line.partition("\t") for line in lines)
            if ref
        }

    def _fetch(self, refspec: str, depth: str) -> None:
        self._remote(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance",
            depth, "--end-of-options", self.branch.location, refspec,
        )  # fmt: skip

    def _remote(self, *arguments: str) -> bytes:
        settings = [f"{key}={value}" for key, value in self.branch.settings.items()]
        options = [part for setting in settings for part in ("-c", setting)]
        try:
            done = try_git(
                *options,
                f"--git-dir={self.repository}",
                *arguments,
                environment={"GIT_ALLOW_PROTOCOL": self.branch.protocol, "GIT_SSH_COMMAND": "false"},
                deadline_s=max(1.0, self.ends - time.monotonic()),
                most_bytes=self.most_bytes,
            )
        except GitFailed as exc:
            raise TreeUnreachable(f"{self._shown} did not send the branch in time") from exc
        if done.returncode:
            self._explain(hide_password(done.stderr.decode(errors="replace").strip()))
        return done.stdout

    def _explain(self, detail: str) -> None:
        if "no commits selected" in detail:
            raise PatchRejected(
                f"branch {self.branch.name} has no commits over {self.branch.since or 'the base'}"
            )
        if _TOO_LARGE.search(detail):
            raise PatchRejected(
                f"branch {self.branch.name} is more than {self.most_bytes >> 20} MiB to fetch; upload its patches",
                detail=detail,
            )
        if re.search(r"not found|does not appear to be a git repo|does not exist", detail, re.IGNORECASE):
            raise UnknownTree(f"there is no git repository at {self._shown}", detail)
        last = detail.splitlines()[-1] if detail else "git said nothing"
        raise TreeUnreachable(f"{self._shown} cannot be fetched: {last}", detail)

    @property
    def _shown(self) -> str:
        return hide_password(self.branch.location)
