# SPDX-License-Identifier: GPL-2.0-or-later
"""Submit a description: everything is checked before the experiment's rows are written.

1. The tree is opened, its base resolved, each switch read (and repaired where a web archive spoilt it).
2. The design's combinations are really applied; those that do not apply are pruned with the reason.
   Every experiment also has the base a second time, and on request the base with another code layout.
3. One transaction writes experiment, switches, variants, builds and runs. Variants of equal tree and
   config share a build; a build whose artifact the store still holds is not made again.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from kernels.errors import UnknownTree
from kernels.trees.branches import BranchPlace, branch_place, place_on_branch
from kernels.trees.tree import has_tag, open_tree
from lab.experiments.expand import Clash, block_order
from lab.experiments.kernel_notes import note_kernels
from lab.experiments.priority import priority_asked
from lab.experiments.spec import ExperimentSpec, spec_digest
from lab.experiments.switch_names import BASE_AGAIN, PLACEBO
from lab.from_attributes import attributes
from lab.hooks.events import tell_experiment
from lab.leases.deadlocks import without_deadlock
from lab.models import Case, Experiment, Standing, Switch, User, Variant
from lab.models.states import OPEN_EXPERIMENT, BuildState, Purpose, Role, VariantState
from lab.models.storable import storable_text
from lab.runs.rounds import add_runs
from lab.statistics.sequential import LOOKS
from lab.submission.blame import lab_at_fault
from lab.submission.build_rows import find_build, follow_builds
from lab.submission.git_addresses import check_tree_location
from lab.submission.parts import pin_of
from lab.submission.prepare import (
    PLACEBO_FRAGMENT,
    BuildInputs,
    Prepared,
    boots_at_most,
    build_inputs,
    group_asked,
    prepare,
)
from lab.submission.shared_sources import share_sources
from lab.submission.sources import tree_row
from lab.submission.tree_history import remember_base
from workloads.catalog import Workload

# An equal description that arrives within this time is a second click.
SAME_S = 60.0
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

# The layout placebo executes the very same code: its profile would say nothing new.
PROFILED_ROLES = frozenset({Role.BASE, Role.AA, Role.CANDIDATE})


def submit_experiment(
    *,
    spec: ExperimentSpec,
    by: User | None = None,
    origin: Experiment | Standing | None = None,
    home: Path | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
    on_written: Callable[[Experiment], None] = lambda _: None,
) -> Experiment:
    """Check, write and queue an experiment; return its row.

    by: the user, None at this machine's own terminal. origin: the experiment it was re-run or cloned from, or the standing
    one that asks for it. home: the state root, settings.HOME if None. on_progress gets lines for people.
    on_written is called in the transaction that writes everything.
    Raises SpecError, SubmissionRejected, or LabUnable where the lab is at fault; then nothing is written.
    """
    root = home or settings.HOME
    check_tree_location(spec, by)
    priority = priority_asked(spec.priority, by)
    prepared = prepare(spec, root, on_progress, pin_of(spec, origin))
    planned = plan_variants(prepared)
    commits = [plan.inputs.revision.commit for plan in planned if plan.inputs]
    with lab_at_fault():
        share_sources(prepared.tree, prepared.source, prepared.base, commits, on_progress)
        place = _place_of_base(prepared, origin)

    # A build that fails meanwhile takes the same rows in another order.
    @without_deadlock
    def write() -> Experiment:
        experiment = _write_experiment(prepared, place, by, origin, priority)
        _write_switches(experiment, prepared)
        variants = _write_variants(experiment, planned, root)
        cases = _write_cases(experiment, prepared)
        _write_runs(experiment, prepared.spec, variants, cases)
        follow_builds(variants)
        note_kernels(experiment.pk)
        remember_base(experiment.tree, prepared.tree, prepared.base.commit, place)
        tell_experiment(experiment.pk)
        on_written(experiment)
        return experiment

    return write()


def find_unfinished(
    spec: ExperimentSpec, *, by: User | None = None, home: Path | None = None
) -> Experiment | None:
    """Return the newest experiment of exactly the same description that is unfinished; by: of one person only.

    A branch may have moved since, and the description then means another commit: where it names one, only an experiment
    queued within SAME_S seconds is the same. Full commits, tags (which stay here) and archives do not move.
    """
    same = Experiment.objects.filter(digest=spec_digest(spec), state__in=OPEN_EXPERIMENT)
    if by is not None:
        same = same.filter(submitter=by)
    newest = same.select_related("tree").order_by("-pk").first()
    if newest is None or newest.created_at > timezone.now() - timedelta(seconds=SAME_S):
        return newest
    return None if _may_move(spec, newest, (home or settings.HOME) / "trees") else newest


def _may_move(spec: ExperimentSpec, experiment: Experiment, trees: Path) -> bool:
    """Return whether a name in the description may mean another commit than it did for an experiment."""
    if experiment.tree.kind == "archive":
        return False
    ranges = [end for patch in spec.patches if patch.range for end in patch.range.split("..") if end]
    names = [name for name in (spec.base, *ranges) if not _COMMIT.fullmatch(name)]
    try:
        tree = open_tree(experiment.tree.name, trees) if names else None
    except UnknownTree:
        return True
    return tree is not None and not all(has_tag(tree, name) for name in names)


def _write_experiment(
    prepared: Prepared,
    place: BranchPlace,
    by: User | None,
    origin: Experiment | Standing | None,
    priority: int,
) -> Experiment:
    spec, source = prepared.spec, prepared.source
    tree = tree_row(source, prepared.tree.default_revision)
    return Experiment.objects.create(
        name=spec.name,
        # Without the priority, which a re-run or a reproducer does not repeat.
        spec=spec.model_dump(mode="json", exclude={"priority"}),
        digest=spec_digest(spec),
        tree=tree,
        base_name=prepared.base.name,
        base_commit=prepared.base.commit,
        base_tree_id=prepared.base.tree_id,
        base_branch=place.branch,
        base_fork=place.fork,
        design=spec.design,
        target=prepared.target,
        group=group_asked(spec.target, prepared.target),
        priority=priority,
        boots=boots_at_most(spec.measure),
        sequential=spec.measure.boots == "auto",
        profile=bool(spec.measure.profile),
        **attributes(spec.measure, ("clock", "iterations", "warmup", "verify", "seed")),
        submitter=by,
        origin=origin if isinstance(origin, Experiment) else None,
        standing=origin if isinstance(origin, Standing) else None,
    )


def _write_switches(experiment: Experiment, prepared: Prepared) -> None:
    Switch.objects.bulk_create(
        Switch(
            experiment=experiment,
            position=position,
            name=name,
            kind=taken.kind,
            title=storable_text(taken.title),
            author=storable_text(taken.author, 300),
            link=storable_text(taken.link, 1000),
            text=storable_text(taken.text),
            claims=[asdict(claim) for claim in taken.claims],
            **attributes(taken.toggle, ("requires", "excludes")),
            **attributes(taken, ("report", "notes")),
        )
        for position, (name, taken) in enumerate(prepared.switches.items())
    )


@dataclass(frozen=True, slots=True)
class PlannedVariant:
    """A planned variant: its build inputs, or the clash that prevents it."""

    name: str
    role: Role
    switches: tuple[str, ...] = ()
    inputs: BuildInputs | None = None
    clash: Clash | None = None


def plan_variants(prepared: Prepared) -> list[PlannedVariant]:
    """The design's combinations, base first, then the controls."""
    planned = []
    for c in prepared.combinations:
        inputs = None if c.clash else build_inputs(prepared, c.switches)
        role = Role.CANDIDATE if c.switches else Role.BASE
        planned.append(PlannedVariant(c.name, role, c.switches, inputs, c.clash))
    planned.append(PlannedVariant(BASE_AGAIN, Role.AA, inputs=planned[0].inputs))
    if prepared.spec.measure.placebo:
        inputs = build_inputs(prepared, (), PLACEBO_FRAGMENT)
        planned.append(PlannedVariant(PLACEBO, Role.PLACEBO, inputs=inputs))
    return planned


def _write_variants(experiment: Experiment, planned: list[PlannedVariant], root: Path) -> list[Variant]:
    """Write all variants; return those that have a build, base first."""
    live = []
    for position, plan in enumerate(planned):
        variant = Variant(
            experiment=experiment,
            position=position,
            name=plan.name,
            role=plan.role,
            switches=list(plan.switches),
        )
        if plan.clash:
            variant.state = VariantState.PRUNED
            variant.problem, variant.problem_detail = plan.clash.reason, plan.clash.detail
        if plan.inputs:
            variant.build = find_build(plan.inputs, root)
            variant.commit, variant.tree_id = plan.inputs.revision.commit, plan.inputs.revision.tree_id
            if variant.build.state == BuildState.BUILT:
                variant.state = VariantState.READY
            live.append(variant)
        variant.save()
    return live


def _write_cases(experiment: Experiment, prepared: Prepared) -> list[tuple[Case, Workload]]:
    cases = []
    clock = prepared.spec.measure.clock
    for position, (spec, workload) in enumerate(zip(prepared.spec.cases, prepared.workloads, strict=True)):
        params = workload.resolve(spec.preset, spec.params, clock)
        case = Case.objects.create(
            experiment=experiment,
            position=position,
            workload=spec.workload,
            preset=spec.preset,
            params=params,
            metrics=[
                attributes(metric, ("name", "unit", "better", "margin", "primary"))
                for metric in workload.metrics_of(params, clock).values()
            ],
        )
        cases.append((case, workload))
    return cases


def _write_runs(
    experiment: Experiment,
    spec: ExperimentSpec,
    variants: Sequence[Variant],
    cases: Sequence[tuple[Case, Workload]],
) -> None:
    """Write the measured runs in shuffled blocks, then the profiled ones likewise, then the verified ones.

    The base is profiled twice as well: its two profiles differ by noise alone. Other controls are only
    measured. Where boots may stop early, only the blocks of the first look are written.
    """
    blocks = LOOKS[0] if experiment.sequential else experiment.boots
    cells = [(variant, case) for case, _ in cases for variant in variants]
    judged = [cell for cell in cells if cell[0].role in {Role.BASE, Role.CANDIDATE}]
    order = [
        (Purpose.MEASURED, block, cell) for block, cell in block_order(cells, range(blocks), experiment.seed)
    ]
    seen = [c for c in cells if c[0].role in PROFILED_ROLES and spec.profile_of(c[1].position)]
    rounds = block_order(seen, range(spec.measure.profile_boots), experiment.seed)
    order += [(Purpose.PROFILED, block, cell) for block, cell in rounds]
    if experiment.verify:
        able = {case.pk for case, workload in cases if workload.verifies}
        order += [(Purpose.VERIFIED, 0, cell) for cell in judged if cell[1].pk in able]
    add_runs(experiment, order)


def _place_of_base(prepared: Prepared, origin: Experiment | Standing | None) -> BranchPlace:
    """Return the branch of a base, whose revisions alone its trends hold, and its fork off the default branch. Raises GitFailed.

    The branch is that of a standing experiment, or of the experiment that is run again on the same revision. Of other experiments
    it is the default branch if that holds the base, else the branch that the description names, else one that is measured by a
    standing experiment, else the first by name. An archive has no branches.
    """
    tree, source, commit = prepared.tree, prepared.source, prepared.base.commit
    if source.kind != "git":
        return BranchPlace()
    if isinstance(origin, Standing):
        return place_on_branch(tree, commit, origin.branch)
    if origin is not None and origin.base_branch and origin.base_commit == commit:
        return BranchPlace(origin.base_branch, origin.base_fork, known=True)
    standing = Standing.objects.filter(tree__name=source.name).exclude(branch="")
    measured = standing.order_by("pk").values_list("branch", flat=True)
    return branch_place(tree, commit, [prepared.spec.base, *measured])
