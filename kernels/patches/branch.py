# SPDX-License-Identifier: GPL-2.0-or-later
"""A branch of somebody's git repository, as the series of commits that it has over a base.

It is fetched into a scratch repository that borrows the tree's objects, so that objects that the lab has are not sent
again, and only the patches are kept.
"""

import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from kernels.diffs.safety import MAX_PATCHES
from kernels.errors import PatchRejected, SourceUnreachable, TreeTooLarge, UnknownRevision, suggest
from kernels.files.scratch import remove_leftovers, scratch
from kernels.patches.series import Series, read_range
from kernels.trees.address import Address
from kernels.trees.git import run_git, try_git
from kernels.trees.remote import FetchLimits, ask, list_refs
from kernels.trees.tree import NamedRevision, SourceTree

LIMITS = FetchLimits(seconds=120.0, bytes=2 << 30)
SCRATCH = ".branches"
_REF = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock$|/\.|/$))[A-Za-z0-9][\w./+-]{0,200}")
_TIP = "refs/kperflab/tip"


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch at an address.

    since: the revision of that repository after which the series begins; empty: where the branch left the base.
    """

    address: Address
    name: str
    since: str = ""


def read_branch(
    branch: Branch,
    tree: SourceTree,
    base: NamedRevision,
    limits: FetchLimits = LIMITS,
) -> Series:
    """Return the commits of a branch that the base lacks, as a series. Merges are refused, and more than 200 commits.

    Raises UnknownTree, UnknownRevision, PatchRejected, SourceUnreachable where the other side does not answer in time.
    """
    for name in filter(None, (branch.name, branch.since)):
        if not _REF.fullmatch(name):
            raise UnknownRevision(f'"{name}" cannot name a branch or a tag')
    scratches = tree.repository.parent / SCRATCH
    remove_leftovers(scratches)
    with scratch(scratches) as place:
        fetched = _Fetch(branch, place / "branch.git", time.monotonic() + limits.seconds, limits)
        fetched.prepare(tree)
        start = fetched.start(base)
        return read_range(SourceTree(tree.name, fetched.repository, branch.name), start, fetched.commit(_TIP))


@dataclass(frozen=True, slots=True)
class _Fetch:
    """One fetch into a scratch repository."""

    branch: Branch
    repository: Path
    ends: float
    limits: FetchLimits

    def prepare(self, tree: SourceTree) -> None:
        """Make the repository, its objects borrowed from the tree's."""
        run_git(self.repository, "init", "--quiet", "--bare", "--template=")
        alternates = self.repository / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{(tree.repository / 'objects').resolve()}\n")

    def start(self, base: NamedRevision) -> str:
        """Fetch the branch; return the commit after which its series begins."""
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
        # An imported archive is one commit, which no other repository has, so it can only be matched by its name.
        apart = known and not self._has_parents(base) and heads[known] != base.commit
        return self._ranged(tip, known) if self.branch.since or apart else self._shared(tip, base)

    def _has_parents(self, base: NamedRevision) -> bool:
        return bool(run_git(self.repository, "rev-list", "--max-count=1", "--min-parents=1", base.commit))

    def _shared(self, tip: str, base: NamedRevision) -> str:
        """Fetch a branch that shares history with the base; return the commit where it left the base."""
        self._fetch(f"+{tip}:{_TIP}", f"--depth={MAX_PATCHES + 2}")
        merge_base = try_git(self.repository, "merge-base", base.commit, self.commit(_TIP))
        if merge_base.returncode == 0:
            return merge_base.stdout.decode().strip()
        raise PatchRejected(
            f"branch {self.branch.name} of {self._shown} shares no commit with {base.name} among its last "
            f"{MAX_PATCHES}, and has no tag of that name; say after which revision of it the series begins"
        )

    def _ranged(self, tip: str, known: str) -> str:
        """Fetch a branch's commits that a ref of its own repository lacks, and the one before them; return that one."""
        self._fetch(f"+{tip}:{_TIP}", f"--shallow-exclude={known}")
        first = (
            run_git(self.repository, "rev-list", "--max-parents=0", "--max-count=1", _TIP).decode().strip()
        )
        self._fetch(f"+{tip}:{_TIP}", "--deepen=1")
        before = try_git(self.repository, "rev-parse", "--verify", "--quiet", f"{first}~1")
        if before.returncode:
            raise PatchRejected(
                f"branch {self.branch.name} of {self._shown} shares no commit with {known.split('/', 2)[2]}"
            )
        return before.stdout.decode().strip()

    def commit(self, ref: str) -> str:
        """Return the commit of a ref of ours, through a tag."""
        return run_git(self.repository, "rev-parse", "--verify", f"{ref}^{{commit}}").decode().strip()

    def _listed(self) -> dict[str, str]:
        """Return the branches and tags of the other side, with their commits."""
        listed = list_refs(self.branch.address, self._left)
        return {**listed.refs, **listed.commits}

    def _fetch(self, refspec: str, depth: str) -> None:
        address = self.branch.address
        try:
            ask(
                address, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
                "--no-auto-maintenance", depth, "--end-of-options", address.source, refspec,
                limits=self._left, repository=self.repository,
            )  # fmt: skip
        except TreeTooLarge as exc:
            raise PatchRejected(
                f"branch {self.branch.name} is too large to fetch; upload its patches ({exc})",
                detail=exc.detail,
            ) from exc
        except SourceUnreachable as exc:
            if "no commits selected" not in exc.detail:
                raise
            raise PatchRejected(
                f"branch {self.branch.name} has no commits over {self.branch.since or 'the base'}"
            ) from exc

    @property
    def _left(self) -> FetchLimits:
        """Return the limits with the remaining time."""
        return replace(self.limits, seconds=max(1.0, self.ends - time.monotonic()))

    @property
    def _shown(self) -> str:
        return self.branch.address.shown
