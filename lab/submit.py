# SPDX-License-Identifier: GPL-2.0-or-later
"""From a description to an experiment in the tables: everything is tried before anything is written.

1. The tree is opened, its base resolved, each switch read (and repaired where a web archive spoilt it).
2. The design's combinations are really applied; those that cannot be are pruned with the reason.
   Beside them every experiment has the base once more, and on request the base laid out otherwise.
3. One transaction writes experiment, switches, variants, builds and runs. Variants of equal tree and
   config share a build; a build whose artifact the store still holds is not made again.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings
from django.db import transaction

from kernels.artifact import ArtifactStore
from lab.analysis.sequential import LOOKS
from lab.expand import Clash, block_order
from lab.models import Build, Case, Experiment, Switch, Tree, Variant
from lab.prepare import PLACEBO_FRAGMENT, BuildInputs, Prepared, boots_at_most, build_inputs, prepare
from lab.rounds import add_runs
from lab.settle import note_same_code
from lab.spec import BASE_AGAIN, PLACEBO, ExperimentSpec, spec_digest
from lab.states import BuildState, ExperimentState, Purpose, Role, VariantState, move
from lab.trend import remember_base
from workloads.catalog import Workload

OPEN = (ExperimentState.QUEUED, ExperimentState.RUNNING)
# A build that failed or was cancelled is tried again by who asks anew: the lab may have been mended.
AGAIN = (BuildState.FAILED, BuildState.CANCELLED)

# The layout placebo executes the very same code: its profile would say nothing new.
PROFILED_ROLES = frozenset({Role.BASE, Role.AA, Role.CANDIDATE})


def submit_experiment(
    *,
    spec: ExperimentSpec,
    home: Path | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Experiment:
    """Take an experiment in and queue it; returns its row.

    home: the state root, settings.HOME if None. on_progress gets lines for people.
    Raises SpecError, SubmissionRejected, or LabUnable where the lab is at fault; then nothing is written.
    """
    root = home or settings.HOME
    prepared = prepare(spec, root, on_progress)
    planned = plan_variants(prepared)
    with transaction.atomic():
        experiment = _write_experiment(prepared)
        _write_switches(experiment, prepared)
        variants = _write_variants(experiment, planned, ArtifactStore(root / "artifacts"))
        cases = _write_cases(experiment, prepared)
        _write_runs(experiment, prepared.spec, variants, cases)
        note_same_code(experiment.pk)
        remember_base(experiment.tree, prepared.tree, prepared.base.commit)
    return experiment


def find_unfinished(spec: ExperimentSpec) -> Experiment | None:
    """Return the newest experiment of the very same description that is not over yet."""
    same = Experiment.objects.filter(digest=spec_digest(spec), state__in=OPEN)
    return same.order_by("-pk").first()


def _write_experiment(prepared: Prepared) -> Experiment:
    spec, source = prepared.spec, prepared.source
    tree, _ = Tree.objects.update_or_create(
        name=source.name,
        defaults={
            "kind": source.kind,
            "location": source.location,
            "default_revision": prepared.tree.default_revision,
        },
    )
    return Experiment.objects.create(
        name=spec.name,
        spec=spec.model_dump(mode="json"),
        digest=spec_digest(spec),
        tree=tree,
        base_name=prepared.base.name,
        base_commit=prepared.base.commit,
        base_tree_id=prepared.base.tree_id,
        design=spec.design,
        target=prepared.target,
        clock=spec.measure.clock,
        boots=boots_at_most(spec.measure),
        sequential=spec.measure.boots == "auto",
        iterations=spec.measure.iterations,
        warmup=spec.measure.warmup,
        profile=spec.measure.profile,
        verify=spec.measure.verify,
        seed=spec.measure.seed,
    )


def _write_switches(experiment: Experiment, prepared: Prepared) -> None:
    Switch.objects.bulk_create(
        Switch(
            experiment=experiment,
            position=position,
            name=name,
            kind=taken.kind,
            title=taken.title,
            author=taken.author,
            link=taken.link,
            text=taken.text,
            requires=list(taken.toggle.requires),
            excludes=list(taken.toggle.excludes),
            report=list(taken.report),
            claims=[asdict(claim) for claim in taken.claims],
        )
        for position, (name, taken) in enumerate(prepared.switches.items())
    )


@dataclass(frozen=True, slots=True)
class PlannedVariant:
    """A variant to be: what it is built from, or why it cannot be."""

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


def _write_variants(
    experiment: Experiment, planned: list[PlannedVariant], store: ArtifactStore
) -> list[Variant]:
    """Write all variants; returns those that are built, base first."""
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
            variant.build = _find_build(plan.inputs, store)
            variant.commit, variant.tree_id = plan.inputs.revision.commit, plan.inputs.revision.tree_id
            if variant.build.state == BuildState.BUILT:
                variant.state = VariantState.READY
            live.append(variant)
        variant.save()
    return live


def _find_build(found: BuildInputs, store: ArtifactStore) -> Build:
    """Return the row for these inputs, queued unless its artifact is there or it is being made."""
    build, _created = Build.objects.get_or_create(
        inputs=found.digest,
        defaults={
            "tree_id": found.revision.tree_id,
            "commit": found.revision.commit,
            "request": found.request,
        },
    )
    gone = build.state == BuildState.BUILT and not store.has(build.artifact_key)
    if gone or build.state in AGAIN:
        move(
            Build,
            build.pk,
            BuildState(build.state),
            BuildState.QUEUED,
            request=found.request,
            attempt=0,
            blame="",
            problem="",
            problem_detail="",
            finished_at=None,
        )
        build.refresh_from_db()
    return build


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
                {
                    "name": metric.name,
                    "unit": metric.unit,
                    "better": metric.better,
                    "margin": metric.margin,
                    "primary": metric.primary,
                }
                for metric in workload.metrics_of(params, clock).values()
            ],
        )
        cases.append((case, workload))
    return cases


def is_profiled(spec: ExperimentSpec, case: int) -> bool:
    """Whether a case, by its position, is profiled: what it says of itself, else what is said of all."""
    own = spec.cases[case].profile
    return spec.measure.profile if own is None else own


def _write_runs(
    experiment: Experiment,
    spec: ExperimentSpec,
    variants: Sequence[Variant],
    cases: Sequence[tuple[Case, Workload]],
) -> None:
    """Write measured runs in their shuffled blocks, then those that are profiled, likewise, and verified.

    The base is profiled twice as well: what its two profiles differ by is noise. Other controls are only
    measured. Where boots may stop early, just the blocks of the first look.
    """
    blocks = LOOKS[0] if experiment.sequential else experiment.boots
    cells = [(variant, case) for case, _ in cases for variant in variants]
    judged = [cell for cell in cells if cell[0].role in {Role.BASE, Role.CANDIDATE}]
    order = [
        (Purpose.MEASURED, block, cell) for block, cell in block_order(cells, range(blocks), experiment.seed)
    ]
    seen = [c for c in cells if c[0].role in PROFILED_ROLES and is_profiled(spec, c[1].position)]
    rounds = block_order(seen, range(spec.measure.profile_boots), experiment.seed)
    order += [(Purpose.PROFILED, block, cell) for block, cell in rounds]
    if experiment.verify:
        able = {case.pk for case, workload in cases if workload.verifies}
        order += [(Purpose.VERIFIED, 0, cell) for cell in judged if cell[1].pk in able]
    add_runs(experiment, order)
