# SPDX-License-Identifier: GPL-2.0-or-later
"""Read one build or one run for its page."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from django.db.models import Max

from lab.errors import UnknownRow, one_row
from lab.experiments.progress import build_steps
from lab.experiments.shown_description import case_title
from lab.models import Build, Profile, Run, Variant
from lab.models.states import BuildState, RunState
from lab.profiles.counters import SHARED_LINES
from lab.runs.claim import Kind
from lab.storage.files import KeptFile


@dataclass(frozen=True, slots=True)
class BuildPage:
    """One build, with the variants that use it, whatever their experiments. percent, left_s: while it is under way."""

    row: Build
    log: KeptFile | None
    uses: tuple[Variant, ...]
    percent: int | None
    left_s: float | None


@dataclass(frozen=True, slots=True)
class MetricValues:
    """One metric of one run: values in order of iteration, with the number that are warm-up."""

    metric: str
    values: tuple[float, ...]
    warmups: int

    @property
    def median(self) -> float | None:
        """Return the median of the iterations that count, None without any."""
        return median(self.values[self.warmups :]) if self.values[self.warmups :] else None


@dataclass(frozen=True, slots=True)
class RunPage:
    """One boot with its files and numbers. case: its title. shared_lines: the report of `perf c2c`, which extras lack here. profiles: their kinds."""

    row: Run
    case: str
    extras: dict[str, Any]
    shared_lines: str
    console: KeptFile | None
    directory: KeptFile | None
    metrics: tuple[MetricValues, ...]
    profiles: tuple[str, ...]


def build_page(build_id: int) -> BuildPage:
    """Return one build. Raises UnknownRow."""
    build = one_row(Build.objects.filter(pk=build_id), f"build {build_id}")
    percent, left_s = build_steps(build) if build.state == BuildState.BUILDING else (None, None)
    variants = build.variants.select_related("experiment").order_by("-experiment_id", "position")
    return BuildPage(build, _kept(build.log, build.expired_at), tuple(variants), percent, left_s)


def get_run(run_id: int) -> Run:
    """Return the row. Raises UnknownRow."""
    return one_row(Run.objects.filter(pk=run_id), f"run {run_id}")


def run_page(run_id: int) -> RunPage:
    """Return one run. Raises UnknownRow."""
    run = one_row(
        Run.objects.select_related("experiment", "variant__build", "case").filter(pk=run_id), f"run {run_id}"
    )
    return RunPage(
        row=run,
        case=case_title(run.case),
        extras={name: value for name, value in run.extras.items() if name != SHARED_LINES},
        shared_lines=str(run.extras.get(SHARED_LINES, "")),
        console=_kept(run.console, run.expired_at),
        directory=_kept(run.directory, run.expired_at),
        metrics=_metrics(run),
        profiles=tuple(run.profiles.order_by("pk").values_list("kind", flat=True)),
    )


def _kept(name: str, removed_at: datetime | None) -> KeptFile | None:
    return KeptFile(name, removed_at) if name else None


def _metrics(run: Run) -> tuple[MetricValues, ...]:
    values: dict[str, list[float]] = defaultdict(list)
    warmups: dict[str, int] = defaultdict(int)
    for sample in run.samples.order_by("metric", "iteration"):
        values[sample.metric].append(sample.value)
        warmups[sample.metric] += sample.warmup
    return tuple(MetricValues(name, tuple(values[name]), warmups[name]) for name in values)


def files_removed_at(experiment_id: int) -> datetime | None:
    """Return when the retention policy last removed files of an experiment's boots; None if never."""
    removed_at: datetime | None = Run.objects.filter(experiment=experiment_id).aggregate(
        at=Max("expired_at")
    )["at"]
    return removed_at


def runs_under_way(among: Collection[int]) -> set[str]:
    """Return the names of the folders that boots write to now, `<id>-<attempt>`; among: numbers of boots."""
    busy = Run.objects.filter(pk__in=among, state=RunState.RUNNING).order_by().values_list("pk", "attempt")
    return {f"{pk}-{attempt}" for pk, attempt in busy}


def is_under_way(folder: str) -> bool:
    """Return whether a boot writes to the folder of this name, `<id>-<attempt>`, now."""
    return folder in runs_under_way([int(folder.partition("-")[0])])


def raw_profiles(run_id: int) -> tuple[str, ...]:
    """The SHA-256 of each perf.data that a boot left."""
    profiles = Profile.objects.filter(run=run_id).exclude(perf_data_sha256="")
    return tuple(profiles.order_by("pk").values_list("perf_data_sha256", flat=True))


def ended(kind: Kind, pk: int) -> str:
    """Return a line for a log: how a build or boot ended. Raises UnknownRow."""
    row: Build | Run | None
    if kind == "build":
        row = Build.objects.filter(pk=pk).first()
        what = f"build {pk} of {row.commit[:12]}" if row else ""
    else:
        row = Run.objects.select_related("variant", "case", "experiment").filter(pk=pk).first()
        what = f"boot {pk} of experiment {row.experiment_id}, {row.variant} with {row.case}" if row else ""
    if row is None:
        raise UnknownRow(f"there is no {kind} {pk}")
    how = row.state if isinstance(row, Build) else row.outcome or row.state
    end = ""
    if isinstance(row, Run) and row.experiment.finished_at is not None:
        end = f"; experiment {row.experiment_id} is {row.experiment.state}"
    return f"{what}: {how}{f' ({row.problem})' if row.problem else ''}{end}"
