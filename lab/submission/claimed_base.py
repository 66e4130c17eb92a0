# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the commit in a series' `base-commit:` trailer.

It is used where the description names no base and the tree has the commit. Where the tree lacks it, the patches are
tried on the tree's own base; the submitter is notified either way.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kernels.errors import UnknownRevision
from kernels.patches.series import claimed_commit
from kernels.trees.tree import NamedRevision, SourceTree, keep, resolve
from lab.errors import SubmissionRejected
from lab.experiments.spec import ExperimentSpec
from lab.submission.sources import Taken


@dataclass(frozen=True, slots=True)
class ClaimedBase:
    """The base to use. notes: by switch, a line for people; lacking: by switch, the commit that the tree lacks."""

    base: NamedRevision
    notes: Mapping[str, str]
    lacking: Mapping[str, str]


def claimed_base(spec: ExperimentSpec, tree: SourceTree, base: NamedRevision, *, pinned: bool) -> ClaimedBase:
    """Return the base that the series themselves name, if the description names none and the tree has it, else `base`.

    pinned: the base is that of an experiment which this one repeats.
    """
    texts = {patch.name: patch.text for patch in spec.patches if patch.text}
    claims = {name: commit for name, text in texts.items() if (commit := claimed_commit(text.encode()))}
    known = {commit: _revision(tree, commit) for commit in claims.values()}
    lacking = {name: commit for name, commit in claims.items() if known[commit] is None}
    notes = {
        name: f"its base-commit {commit[:12]} is not in {tree.name}, so it was tried on {base.name}"
        for name, commit in lacking.items()
    }
    chosen = {revision.commit: revision for revision in known.values() if revision}
    if spec.base or pinned or lacking or len(chosen) != 1:
        return ClaimedBase(base, notes, lacking)
    (revision,) = chosen.values()
    keep(tree.repository, revision.commit)
    notes = {
        name: f"its base-commit {commit[:12]} is the base, as none was named"
        for name, commit in claims.items()
    }
    return ClaimedBase(revision, notes, {})


@contextmanager
def blamed_on_claims(claimed: ClaimedBase, tree: SourceTree) -> Iterator[None]:
    """Add to a refusal the origin of a base that the tree lacks, and the ways out."""
    try:
        yield
    except SubmissionRejected as exc:
        if not claimed.lacking:
            raise
        name, commit = next(iter(claimed.lacking.items()))
        raise SubmissionRejected(
            f'{exc}; the mail of switch "{name}" names base-commit {commit[:12]}, which {tree.name} lacks: '
            "name a tree that has it (git = …), or a base that the patches apply to",
            exc.detail,
            exc.place,
        ) from exc


def with_note(taken: Taken, claimed: ClaimedBase) -> Taken:
    """Return the switch with remarks on its base."""
    note = claimed.notes.get(taken.toggle.name)
    return replace(taken, notes=(*taken.notes, note)) if note else taken


def _revision(tree: SourceTree, commit: str) -> NamedRevision | None:
    try:
        return resolve(tree, commit)
    except UnknownRevision:
        return None
