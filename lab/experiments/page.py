# SPDX-License-Identifier: GPL-2.0-or-later
"""Read one experiment for its page."""

from collections import Counter, defaultdict
from dataclasses import dataclass

from django.db.models import Prefetch, prefetch_related_objects

from lab.errors import one_row
from lab.models import Build, Case, Experiment, Run, Switch, Variant


@dataclass(frozen=True, slots=True)
class ExperimentBuild:
    """A build with the variants of the experiment that use it; reused: nothing was compiled for this experiment."""

    row: Build
    variants: tuple[str, ...]
    reused: bool


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

    row: Variant
    build: ExperimentBuild | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class ExperimentPage:
    """An experiment and everything of it that its page shows."""

    row: Experiment
    switches: tuple[Switch, ...]
    cases: tuple[Case, ...]
    variants: tuple[GridRow, ...]
    builds: tuple[ExperimentBuild, ...]
    runs: tuple[Run, ...]


def get_experiment(experiment_id: int) -> Experiment:
    """Return the row. Raises UnknownRow."""
    return one_row(
        Experiment.objects.select_related("tree", "target", "submitter").filter(pk=experiment_id),
        f"experiment {experiment_id}",
    )


def variants_of(row: Experiment) -> list[Variant]:
    """Return the variants of an experiment with their builds, in order. Read once for each row object."""
    builds = Variant.objects.select_related("build").defer("build__request", "build__problem_detail")
    prefetch_related_objects([row], Prefetch("variants", builds))
    return list(row.variants.all())


def experiment_page(experiment_id: int) -> ExperimentPage:
    """Return the page of one experiment. Raises UnknownRow."""
    row = get_experiment(experiment_id)
    cases, builds = tuple(row.cases.all()), _builds(row)
    runs = row.runs.select_related("variant", "case").defer("environment", "extras", "problem_detail")
    return ExperimentPage(
        row=row,
        switches=tuple(row.switches.all()),
        cases=cases,
        variants=_variant_rows(row, cases, builds),
        builds=builds,
        runs=tuple(runs),
    )


def _builds(experiment: Experiment) -> tuple[ExperimentBuild, ...]:
    names: dict[int | None, list[str]] = defaultdict(list)
    for variant in experiment.variants.exclude(build=None):
        names[variant.build_id].append(variant.name)
    builds = Build.objects.filter(pk__in=[pk for pk in names if pk]).defer("request", "problem_detail")
    return tuple(
        ExperimentBuild(build, tuple(names[build.pk]), is_reused(build, experiment)) for build in builds
    )


def is_reused(build: Build, experiment: Experiment) -> bool:
    """Return whether the experiment found this build made: in the table or in the artifact store."""
    if build.state != "built":
        return False
    return build.cached or (build.finished_at is not None and build.finished_at <= experiment.created_at)


def _variant_rows(
    experiment: Experiment, cases: tuple[Case, ...], builds: tuple[ExperimentBuild, ...]
) -> tuple[GridRow, ...]:
    by_id = {build.row.pk: build for build in builds}
    counts: dict[tuple[int, int], Counter[str]] = defaultdict(Counter)
    for variant_id, case_id, state in experiment.runs.values_list("variant_id", "case_id", "state"):
        counts[variant_id, case_id][state] += 1
    words = ("queued", "running", "done", "failed", "cancelled")
    rows = []
    for variant in experiment.variants.all():
        cells = tuple(Cell(case.pk, *(counts[variant.pk, case.pk][word] for word in words)) for case in cases)
        build = by_id.get(variant.build_id) if variant.build_id else None
        rows.append(GridRow(variant, build, () if variant.state == "pruned" else cells))
    return tuple(rows)
