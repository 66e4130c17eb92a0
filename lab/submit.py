# SPDX-License-Identifier: GPL-2.0-or-later
"""From a description to an experiment in the tables: everything is tried before anything is written.

1. The tree is opened, its base resolved, each switch read (and repaired where a web archive spoilt it).
2. The design's combinations are really applied; those that cannot be are pruned with the reason.
3. One transaction writes experiment, switches, variants, builds and runs. Variants of equal tree and
   config share a build; a build whose artifact the store still holds is not made again.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from django.conf import settings
from django.db import transaction

from kernels.artifact import ArtifactStore
from lab.expand import block_order
from lab.models import Build, Case, Experiment, Run, Switch, Tree, Variant
from lab.prepare import BuildInputs, Prepared, build_inputs, prepare
from lab.settle import note_same_code
from lab.spec import ExperimentSpec, spec_digest
from lab.states import BuildState, ExperimentState, Purpose, Role, VariantState, move
from workloads.catalog import Workload

OPEN = (ExperimentState.QUEUED, ExperimentState.RUNNING)
# A build that failed or was cancelled is tried again by who asks anew: the lab may have been mended.
AGAIN = (BuildState.FAILED, BuildState.CANCELLED)


def submit_experiment(
    *,
    spec: ExperimentSpec,
    home: Path | None = None,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Experiment:
    """Take an experiment in and queue it; returns its row.

    home: the state root, settings.HOME if None. on_progress gets lines for people.
    Raises SpecError, SubmissionRejected, or a KernelsError where the lab is at fault; then nothing is written.
    """
    root = home or settings.HOME
    prepared = prepare(spec, root, on_progress)
    inputs = {c.switches: build_inputs(prepared, c.switches) for c in prepared.combinations if not c.clash}
    with transaction.atomic():
        experiment = _write_experiment(prepared)
        _write_switches(experiment, prepared)
        variants = _write_variants(experiment, prepared, inputs, ArtifactStore(root / "artifacts"))
        cases = _write_cases(experiment, prepared)
        _write_runs(experiment, prepared.spec, variants, cases)
        note_same_code(experiment.pk)
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
        boots=spec.measure.boots,
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


def _write_variants(
    experiment: Experiment,
    prepared: Prepared,
    inputs: dict[tuple[str, ...], BuildInputs],
    store: ArtifactStore,
) -> list[Variant]:
    """Write all variants; returns those that are built, base first."""
    live = []
    for position, combination in enumerate(prepared.combinations):
        variant = Variant(
            experiment=experiment,
            position=position,
            name=combination.name,
            switches=list(combination.switches),
            role=Role.CANDIDATE if combination.switches else Role.BASE,
        )
        if combination.clash:
            variant.state = VariantState.PRUNED
            variant.problem, variant.problem_detail = combination.clash.reason, combination.clash.detail
        else:
            found = inputs[combination.switches]
            variant.build = _find_build(found, store)
            variant.commit, variant.tree_id = found.revision.commit, found.revision.tree_id
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
    for position, (spec, workload) in enumerate(zip(prepared.spec.cases, prepared.workloads, strict=True)):
        params = workload.resolve(spec.preset, spec.params)
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
                for metric in workload.metrics_of(params).values()
            ],
        )
        cases.append((case, workload))
    return cases


def _is_profiled(spec: ExperimentSpec, case: Case) -> bool:
    """What the case says of itself, else what is said of all."""
    own = spec.cases[case.position].profile
    return spec.measure.profile if own is None else own


def _write_runs(
    experiment: Experiment,
    spec: ExperimentSpec,
    variants: Sequence[Variant],
    cases: Sequence[tuple[Case, Workload]],
) -> None:
    """Write measured runs in their shuffled blocks, then those that are profiled and verified."""
    cells = [(variant, case) for case, _ in cases for variant in variants]
    order = [
        (Purpose.MEASURED, block, cell)
        for block, cell in block_order(cells, experiment.boots, experiment.seed)
    ]
    order += [(Purpose.PROFILED, 0, cell) for cell in cells if _is_profiled(spec, cell[1])]
    if experiment.verify:
        able = {case.pk for case, workload in cases if workload.verifies}
        order += [(Purpose.VERIFIED, 0, cell) for cell in cells if cell[1].pk in able]
    Run.objects.bulk_create(
        (
            Run(
                experiment=experiment,
                variant=variant,
                case=case,
                purpose=purpose,
                block=block,
                position=position,
            )
            for position, (purpose, block, (variant, case)) in enumerate(order)
        ),
        batch_size=500,
    )
