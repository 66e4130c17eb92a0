# SPDX-License-Identifier: GPL-2.0-or-later
"""Read one experiment for its page."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lab.errors import one_row
from lab.experiments.priority import priority_name
from lab.experiments.progress import ExperimentProgress, progress
from lab.experiments.shown_description import CaseView, SwitchView, case_views, switch_view
from lab.models import Build, Experiment, Run


@dataclass(frozen=True, slots=True)
class BuildLine:
    """One build of the experiment; reused tells that nothing was compiled for this experiment."""

    id: int
    state: str
    release: str
    reused: bool
    variants: tuple[str, ...]
    cpu_seconds: float | None
    wall_seconds: float | None
    problem: str
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunLine:
    """One boot of the experiment; block counts from 0; invalid: why its numbers do not count."""

    id: int
    position: int
    block: int
    variant: str
    case: str
    purpose: str
    state: str
    outcome: str
    problem: str
    invalid: tuple[str, ...]
    findings: int
    attempt: int
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def seconds(self) -> float | None:
        """Return how long the boot took, None while it has not ended."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


@dataclass(frozen=True, slots=True)
class Cell:
    """Boots of one variant × case, all purposes, by state; state is the one word to show."""

    case_id: int
    queued: int
    running: int
    done: int
    failed: int
    cancelled: int

    @property
    def total(self) -> int:
        """All boots planned for this cell."""
        return self.queued + self.running + self.done + self.failed + self.cancelled

    @property
    def state(self) -> str:
        """running, failed, done, queued, cancelled or none."""
        for word in ("running", "failed", "queued", "done", "cancelled"):
            if getattr(self, word):
                return word
        return "none"


@dataclass(frozen=True, slots=True)
class GridRow:
    """One row of the grid; cells in the order of the page's cases (none for a pruned variant)."""

    id: int
    name: str
    switches: tuple[str, ...]
    state: str
    problem: str
    problem_detail: str
    note: str
    build: BuildLine | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class ExperimentPage:
    """Everything the page of one experiment shows."""

    id: int
    name: str
    state: str
    problem: str
    tree: str
    base_name: str
    base_commit: str
    design: str
    # The group's name where there is one.
    target: str
    group: str
    priority: str
    boots: int
    iterations: int
    warmup: int
    profile: bool
    verify: bool
    seed: int
    spec: dict[str, Any]
    submitter: str
    origin: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    switches: tuple[SwitchView, ...]
    cases: tuple[CaseView, ...]
    variants: tuple[GridRow, ...]
    builds: tuple[BuildLine, ...]
    runs: tuple[RunLine, ...]
    progress: ExperimentProgress


def get_experiment(experiment_id: int) -> Experiment:
    """Return the row. Raises UnknownRow."""
    return one_row(
        Experiment.objects.select_related("tree", "target", "submitter").filter(pk=experiment_id),
        f"experiment {experiment_id}",
    )


def find_experiment(experiment_id: int) -> Experiment | None:
    """Return the row, None if there is none."""
    return Experiment.objects.filter(pk=experiment_id).first()


def experiment_page(experiment_id: int) -> ExperimentPage:
    """Return the page of one experiment. Raises UnknownRow."""
    row = get_experiment(experiment_id)
    cases = case_views(row)
    builds = _build_lines(row)
    runs = _run_lines(row)
    return ExperimentPage(
        id=row.pk,
        name=row.name,
        state=row.state,
        problem=row.problem,
        tree=row.tree.name,
        base_name=row.base_name,
        base_commit=row.base_commit,
        design=row.design,
        target=row.group or row.target.name,
        group=row.group,
        priority=priority_name(row.priority),
        boots=row.boots,
        iterations=row.iterations,
        warmup=row.warmup,
        profile=row.profile,
        verify=row.verify,
        seed=row.seed,
        spec=row.spec,
        submitter=row.submitter.username if row.submitter else "",
        origin=row.origin_id,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        switches=tuple(switch_view(switch) for switch in row.switches.all()),
        cases=cases,
        variants=_variant_rows(row, cases, builds),
        builds=builds,
        runs=runs,
        progress=progress(row.pk),
    )


def _build_lines(experiment: Experiment) -> tuple[BuildLine, ...]:
    names: dict[int | None, list[str]] = defaultdict(list)
    for variant in experiment.variants.exclude(build=None):
        names[variant.build_id].append(variant.name)
    builds = Build.objects.filter(pk__in=[pk for pk in names if pk]).defer("request", "problem_detail")
    return tuple(
        BuildLine(
            id=build.pk,
            state=build.state,
            release=build.release,
            reused=is_reused(build, experiment),
            variants=tuple(names[build.pk]),
            cpu_seconds=build.cpu_seconds,
            wall_seconds=build.wall_seconds,
            problem=build.problem,
            started_at=build.started_at,
            finished_at=build.finished_at,
        )
        for build in builds
    )


def is_reused(build: Build, experiment: Experiment) -> bool:
    """Tell whether the experiment found this build made: in the table or in the artifact store."""
    if build.state != "built":
        return False
    return build.cached or (build.finished_at is not None and build.finished_at <= experiment.created_at)


def _run_lines(experiment: Experiment) -> tuple[RunLine, ...]:
    runs = (
        Run.objects.filter(experiment=experiment)
        .select_related("variant", "case")
        .defer("environment", "extras", "problem_detail")
    )
    return tuple(
        RunLine(
            id=run.pk,
            position=run.position,
            block=run.block,
            variant=run.variant.name,
            case=str(run.case),
            purpose=run.purpose,
            state=run.state,
            outcome=run.outcome,
            problem=run.problem,
            invalid=tuple(run.invalid),
            findings=len(run.findings),
            attempt=run.attempt,
            started_at=run.started_at,
            finished_at=run.finished_at,
        )
        for run in runs
    )


def _variant_rows(
    experiment: Experiment, cases: tuple[CaseView, ...], builds: tuple[BuildLine, ...]
) -> tuple[GridRow, ...]:
    by_id = {build.id: build for build in builds}
    counts: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for variant_id, case_id, state in Run.objects.filter(experiment=experiment).values_list(
        "variant_id", "case_id", "state"
    ):
        counts[variant_id, case_id][state] += 1
    words = ("queued", "running", "done", "failed", "cancelled")
    rows = []
    for variant in experiment.variants.all():
        cells = tuple(Cell(case.id, *(counts[variant.pk, case.id][word] for word in words)) for case in cases)
        rows.append(
            GridRow(
                id=variant.pk,
                name=variant.name,
                switches=tuple(variant.switches),
                state=variant.state,
                problem=variant.problem,
                problem_detail=variant.problem_detail,
                note=variant.note,
                build=by_id.get(variant.build_id) if variant.build_id else None,
                cells=() if variant.state == "pruned" else cells,
            )
        )
    return tuple(rows)
