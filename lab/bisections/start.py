# SPDX-License-Identifier: GPL-2.0-or-later
"""Start a bisection: check the request before anything is written, and describe its experiments."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.conf import settings
from django.db import transaction

from kernels.diffs.safety import MAX_PATCHES
from kernels.patches.apply import apply_patches
from kernels.trees.history import Logged, line, logged, merges
from kernels.trees.tree import SourceTree, resolve
from lab.errors import SubmissionRejected
from lab.experiments.spec import ExperimentSpec, PatchSpec, spec_from_mapping, tree_field
from lab.from_attributes import attributes
from lab.models import Bisection, Target, Tree
from lab.models.states import BisectionState
from lab.submission.blame import submission_at_fault
from lab.submission.parts import find_target
from lab.submission.sources import OnProgress, take_in
from lab.submission.tree_history import open_named, remember
from lab.validation_messages import nearest
from workloads.catalog import load_catalog
from workloads.instruction_clock import Clock


@dataclass(frozen=True, slots=True)
class BisectionRequest:
    """A request for a bisection. tree: a registered name, or a git URL or path. good, bad: any revisions, the older first.

    series: mails or diffs that apply to `good`, whose patches are looked at in place of the commits up to `bad`.
    metric: the case's first primary one if empty. boots: of a first comparison, 0 for as many as it takes.
    verdict: which makes a revision bad, "regression" or "improvement".
    """

    tree: str
    good: str
    bad: str
    workload: str
    preset: str = "smoke"
    params: Mapping[str, Any] = field(default_factory=dict)
    metric: str = ""
    clock: Clock = "wall"
    boots: int = 0
    most_boots: int = 80
    iterations: int = 3
    verdict: str = "regression"
    target: str = "guest"
    series: str = ""


def start_bisection(*, asked: BisectionRequest, on_progress: OnProgress = lambda _: None) -> Bisection:
    """Return the unfinished bisection of an equal request, or a new one.

    Raises SpecError, SubmissionRejected, or a KernelsError where the lab is at fault.
    """
    # Checked before the tree is opened, which may take a fetch; a series has no revision yet.
    bad = asked.good if asked.series else asked.bad
    spec = description(asked, bad, name="bisection", switch="range", boots=asked.boots, seed=1)
    metric = _metric(asked)
    target = find_target(asked.target)
    with submission_at_fault():
        row, tree = open_named(spec, settings.HOME, on_progress)
        if asked.series:
            on_progress(f"applying the series to {asked.good}")
            asked, commits = _applied(tree, asked)
        else:
            commits = _line(tree, asked)
    with transaction.atomic():
        remember(row, commits)
        commits_of_line = [commit.commit for commit in commits]
        return unfinished_or_new(replace(asked, metric=metric), row, target, commits_of_line)


def unfinished_or_new(
    asked: BisectionRequest, tree: Tree, target: Target, line: Sequence[str], **more: Any
) -> Bisection:
    """Return the unfinished bisection of a request, or a new one; a page and a command that ask the same join one.

    line: commits from the good one to the bad one. more: further columns of a new one. Call it in a transaction.
    """
    whole = {**asdict(asked), "series": "", "line": list(line)}
    digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    unfinished = Bisection.objects.filter(digest=digest, state=BisectionState.RUNNING).first()
    return unfinished or Bisection.objects.create(
        tree=tree,
        target=target,
        digest=digest,
        good_name=asked.good,
        bad_name=asked.bad,
        line=list(line),
        params=dict(asked.params),
        **attributes(asked, ("workload", "preset", "metric", "clock", "verdict")),
        **attributes(asked, ("boots", "most_boots", "iterations")),
        **more,
    )


def _applied(tree: SourceTree, asked: BisectionRequest) -> tuple[BisectionRequest, tuple[Logged, ...]]:
    """Commit a series onto the good revision, as is done for variants: equal patches make equal commits at any time.

    Raises SubmissionRejected, PatchDoesNotApply, and what `_line` raises.
    """
    good = resolve(tree, asked.good)
    taken = take_in(PatchSpec(name="series", text=asked.series), tree, good)
    tip = apply_patches(tree, good, taken.patches)
    asked = replace(asked, bad=tip.commit, series="")
    first, *commits = _line(tree, asked)
    # All of the lab's own commits have one author; people want to see the patch's.
    named = (
        replace(commit, author=patch.author or commit.author)
        for commit, patch in zip(commits, taken.patches, strict=True)
    )
    return asked, (first, *named)


def _line(tree: SourceTree, asked: BisectionRequest) -> tuple[Logged, ...]:
    """The good commit, then all after it up to the bad one."""
    good, bad = resolve(tree, asked.good), resolve(tree, asked.bad)
    commits = line(tree, good, bad)
    if merge_count := merges(tree, good, bad):
        raise SubmissionRejected(
            f"{asked.good}..{asked.bad} contains {merge_count} merges, which are not patches: bisect one of the merged branches"
        )
    if len(commits) > MAX_PATCHES:
        raise SubmissionRejected(
            f"{asked.good}..{asked.bad} has {len(commits)} commits, at most {MAX_PATCHES} are allowed: "
            f"narrow the range first, with labctl trend --every {len(commits) // 10}"
        )
    return (logged(tree, good.commit), *commits)


def _metric(asked: BisectionRequest) -> str:
    workload = load_catalog()[asked.workload]
    params = workload.resolve(asked.preset, dict(asked.params), asked.clock)
    metrics = workload.metrics_of(params, asked.clock)
    if not asked.metric:
        return next(name for name, metric in metrics.items() if metric.primary)
    if asked.metric not in metrics:
        raise SubmissionRejected(
            f'metric: {asked.workload} has no metric "{asked.metric}"; {nearest(asked.metric, metrics)}'
        )
    return asked.metric


def description(
    asked: BisectionRequest, mid: str, *, name: str, switch: str, boots: int, seed: int
) -> ExperimentSpec:
    """The experiment that compares a revision with the good one: `good..mid` as its one switch. Raises SpecError."""
    return spec_from_mapping(
        {
            "name": name[:200],
            **tree_field(asked.tree),
            "base": asked.good,
            "target": asked.target,
            "patches": [{"name": switch, "range": f"{asked.good}..{mid}"}],
            "cases": [{"workload": asked.workload, "preset": asked.preset, "params": dict(asked.params)}],
            "measure": {
                "clock": asked.clock,
                "boots": boots or (2 if asked.clock == "instructions" else "auto"),
                "iterations": asked.iterations,
                "seed": seed,
            },
        }
    )
