# SPDX-License-Identifier: GPL-2.0-or-later
"""Read one build or one run for its page."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max

from lab.errors import UnknownRow, one_row
from lab.experiments.progress import build_steps
from lab.experiments.shown_description import CaseView, case_view
from lab.models import Build, Profile, Run
from lab.models.states import BuildState, RunState
from lab.profiles.counters import SHARED_LINES
from lab.runs.claim import Kind
from lab.storage.files import KeptFile


@dataclass(frozen=True, slots=True)
class BuildPage:
    """One build, whatever experiments share it; uses lists (experiment id, name, variant name)."""

    id: int
    state: str
    release: str
    tree_id: str
    commit: str
    artifact_key: str
    code_hash: str
    cached: bool
    cpu_seconds: float | None
    wall_seconds: float | None
    blame: str
    problem: str
    problem_detail: str
    log: KeptFile | None
    expired_at: datetime | None
    request: dict[str, Any]
    uses: tuple[tuple[int, str, str], ...]
    percent: int | None
    left_s: float | None
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class MetricValues:
    """One metric of one run: values in order of iteration, with the number that are warm-up."""

    metric: str
    values: tuple[float, ...]
    warmups: int


@dataclass(frozen=True, slots=True)
class FindingView:
    """Something the kernel complained about on the console."""

    kind: str
    title: str
    line_no: int
    excerpt: str
    frame: str = ""
    corrupted: bool = False


@dataclass(frozen=True, slots=True)
class RunPage:
    """One boot with everything recorded about it.

    invalid: why its numbers do not count although it finished. shared_lines: the report of `perf c2c`. profiles: their kinds.
    """

    id: int
    experiment_id: int
    experiment_name: str
    variant: str
    case: CaseView
    block: int
    position: int
    purpose: str
    state: str
    outcome: str
    invalid: tuple[str, ...]
    blame: str
    problem: str
    problem_detail: str
    attempt: int
    build_id: int | None
    release: str
    line: str
    extras: dict[str, Any]
    shared_lines: str
    environment: dict[str, Any]
    findings: tuple[FindingView, ...]
    console: KeptFile | None
    directory: KeptFile | None
    metrics: tuple[MetricValues, ...]
    profiles: tuple[str, ...]
    started_at: datetime | None
    finished_at: datetime | None


def build_page(build_id: int) -> BuildPage:
    """Return one build. Raises UnknownRow."""
    build = one_row(Build.objects.filter(pk=build_id), f"build {build_id}")
    percent, left_s = build_steps(build)
    variants = build.variants.select_related("experiment").order_by("-experiment_id", "position")
    return BuildPage(
        id=build.pk,
        state=build.state,
        release=build.release,
        tree_id=build.tree_id,
        commit=build.commit,
        artifact_key=build.artifact_key,
        code_hash=build.code_hash,
        cached=build.cached,
        cpu_seconds=build.cpu_seconds,
        wall_seconds=build.wall_seconds,
        blame=build.blame,
        problem=build.problem,
        problem_detail=build.problem_detail,
        log=_kept(build.log, build.expired_at),
        expired_at=build.expired_at,
        request=build.request,
        uses=tuple((v.experiment_id, v.experiment.name, v.name) for v in variants),
        percent=percent if build.state == BuildState.BUILDING else None,
        left_s=left_s if build.state == BuildState.BUILDING else None,
        started_at=build.started_at,
        finished_at=build.finished_at,
    )


def get_run(run_id: int) -> Run:
    """Return the row. Raises UnknownRow."""
    return one_row(Run.objects.filter(pk=run_id), f"run {run_id}")


def run_page(run_id: int) -> RunPage:
    """Return one run. Raises UnknownRow."""
    run = one_row(
        Run.objects.select_related("experiment", "variant__build", "case").filter(pk=run_id), f"run {run_id}"
    )
    build = run.variant.build
    return RunPage(
        id=run.pk,
        experiment_id=run.experiment_id,
        experiment_name=run.experiment.name,
        variant=run.variant.name,
        case=case_view(run.case),
        block=run.block,
        position=run.position,
        purpose=run.purpose,
        state=run.state,
        outcome=run.outcome,
        invalid=tuple(run.invalid),
        blame=run.blame,
        problem=run.problem,
        problem_detail=run.problem_detail,
        attempt=run.attempt,
        build_id=build.pk if build else None,
        release=build.release if build else "",
        line=run.line,
        extras={name: value for name, value in run.extras.items() if name != SHARED_LINES},
        shared_lines=str(run.extras.get(SHARED_LINES, "")),
        environment=run.environment,
        findings=tuple(FindingView(**finding) for finding in run.findings),
        console=_kept(run.console, run.expired_at),
        directory=_kept(run.directory, run.expired_at),
        metrics=_metrics(run),
        profiles=tuple(run.profiles.order_by("pk").values_list("kind", flat=True)),
        started_at=run.started_at,
        finished_at=run.finished_at,
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
    found: datetime | None = Run.objects.filter(experiment=experiment_id).aggregate(at=Max("expired_at"))[
        "at"
    ]
    return found


def runs_under_way() -> set[str]:
    """The names of the folders that boots write to now: `<id>-<attempt>`."""
    busy = Run.objects.filter(state=RunState.RUNNING).values_list("pk", "attempt")
    return {f"{pk}-{attempt}" for pk, attempt in busy}


def raw_profiles(run_id: int) -> tuple[str, ...]:
    """The SHA-256 of each perf.data that a boot left."""
    found = Profile.objects.filter(run=run_id).exclude(perf_data_sha256="")
    return tuple(found.order_by("pk").values_list("perf_data_sha256", flat=True))


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
