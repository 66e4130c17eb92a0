# SPDX-License-Identifier: GPL-2.0-or-later
"""Store the histories of trees as rows, so that no page runs git; describe the experiments that measure a list of revisions."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from kernels.trees.branches import BranchPlace, branch_place
from kernels.trees.history import Logged, line, logged
from kernels.trees.tree import SourceTree, resolve
from lab.errors import SubmissionRejected
from lab.experiments.spec import ExperimentSpec, spec_from_mapping, tree_field
from lab.from_attributes import attributes
from lab.models import Revision, Tree
from lab.submission.blame import submission_at_fault
from lab.submission.sources import OnProgress, find_source, open_source, registered_sources, tree_row
from lab.trends.stale import mark_unplaced

# Rows of one statement.
AT_ONCE = 500
# The place of commits whose branch nobody looked for.
UNKNOWN = BranchPlace()


@dataclass(frozen=True, slots=True)
class RevisionRange:
    """The revisions to measure. tree: a registered name, or a git URL or path. revisions: `older..newer`.

    every: measure every Nth revision, counted back from the newer end; both ends are always measured.
    """

    tree: str
    revisions: str
    workload: str
    preset: str = "smoke"
    params: Mapping[str, Any] = field(default_factory=dict)
    clock: str = "wall"
    boots: int = 5
    iterations: int = 3
    every: int = 1
    target: str = "guest"


def measurements(*, wanted: RevisionRange, on_progress: OnProgress = lambda _: None) -> list[ExperimentSpec]:
    """Return an experiment without switches for each revision, the oldest first; notes the tree's history.

    Raises SpecError, SubmissionRejected, or a KernelsError where the lab is at fault.
    """
    older, dots, newer = wanted.revisions.partition("..")
    if not (older and dots and newer):
        raise SubmissionRejected(f'revisions: "{wanted.revisions}" is not a range; write older..newer')
    first = _description(wanted, older, older)
    with submission_at_fault():
        row, tree = open_named(first, settings.HOME, on_progress)
        start, end = resolve(tree, older), resolve(tree, newer)
        commits = (logged(tree, start.commit), *line(tree, start, end))
        place = branch_place(tree, end.commit, [newer])
    remember(row, commits, place)
    chosen = [*commits[:1], *reversed(commits[:0:-1][:: wanted.every])]
    return [_description(wanted, revision.commit, revision.subject) for revision in chosen]


def _description(wanted: RevisionRange, commit: str, subject: str) -> ExperimentSpec:
    return spec_from_mapping(
        {
            "name": f"trend: {commit[:12]} {subject}"[:200],
            **tree_field(wanted.tree),
            "base": commit,
            "target": wanted.target,
            "cases": [{"workload": wanted.workload, "preset": wanted.preset, "params": dict(wanted.params)}],
            "measure": {
                "clock": wanted.clock,
                "boots": wanted.boots,
                "iterations": wanted.iterations,
            },
        }
    )


def open_named(spec: ExperimentSpec, root: Path, on_progress: OnProgress) -> tuple[Tree, SourceTree]:
    """Open the tree that a description names, imported or fetched if need be, and write its row."""
    source = find_source(spec, registered_sources())
    tree = open_source(source, root / "trees", on_progress)
    return tree_row(source, tree.default_revision), tree


def remember(row: Tree, commits: Iterable[Logged], place: BranchPlace = UNKNOWN) -> None:
    """Note commits of a tree with their places, subjects and authors; existing rows stay, but may get their branch.

    place: the line that all of them are on.
    """
    rows = [
        Revision(
            tree=row,
            branch=place.branch_at(logged.position),
            **attributes(logged, ("commit", "position", "subject", "author", "date")),
        )
        for logged in commits
    ]
    Revision.objects.bulk_create(rows, ignore_conflicts=True, batch_size=AT_ONCE)
    by_branch: dict[str, list[str]] = defaultdict(list)
    for revision in rows:
        if revision.branch is not None:
            by_branch[revision.branch].append(revision.commit)
    for branch, named in by_branch.items():
        for start in range(0, len(named), AT_ONCE):
            unknown = Revision.objects.filter(
                tree=row, branch=None, commit__in=named[start : start + AT_ONCE]
            )
            unknown.update(branch=branch)
    mark_unplaced(row)


def remember_base(row: Tree, tree: SourceTree, commit: str, place: BranchPlace) -> None:
    """Note the revision an experiment stands on; a trend needs its place. Raises GitFailed."""
    if not Revision.objects.filter(tree=row, commit=commit).exists():
        remember(row, [logged(tree, commit)], place)
