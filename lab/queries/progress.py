# SPDX-License-Identifier: GPL-2.0-or-later
"""How far an experiment is: for the bar on the command line and the live page."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from lab.errors import UnknownRow
from lab.models import Build, Experiment, Run
from lab.states import BuildState, ExperimentState, RunState


@dataclass(frozen=True, slots=True)
class Activity:
    """Something being done now: kind is "build" or "boot", label what a person would call it."""

    kind: str
    id: int
    label: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of what is over (well or not) and what there is; eta in seconds, None if unknown."""

    experiment_id: int
    name: str
    state: str
    finished: bool
    builds_done: int
    builds_failed: int
    builds_total: int
    boots_done: int
    boots_failed: int
    boots_total: int
    now: tuple[Activity, ...]
    eta_s: float | None
    problem: str

    @property
    def builds_over(self) -> int:
        """Builds that need nothing more, well or not."""
        return self.builds_done + self.builds_failed

    @property
    def boots_over(self) -> int:
        """Boots that need nothing more, well or not."""
        return self.boots_done + self.boots_failed

    @property
    def percent(self) -> int:
        """Share of builds and boots that are over; a build weighs as five boots, about its cost."""
        whole = 5 * self.builds_total + self.boots_total
        return int(100 * (5 * self.builds_over + self.boots_over) / whole) if whole else 100


def progress(experiment_id: int) -> Progress:
    """Return how far the experiment is. Raises UnknownRow."""
    experiment = Experiment.objects.filter(pk=experiment_id).first()
    if experiment is None:
        raise UnknownRow(f"there is no experiment {experiment_id}")
    builds = list(Build.objects.filter(variants__experiment=experiment).defer("request").distinct())
    runs = list(
        Run.objects.filter(experiment=experiment)
        .select_related("variant", "case")
        .only("state", "started_at", "finished_at", "purpose", "block", "variant__name", "case__workload")
    )
    built = Counter(build.state for build in builds)
    ran = Counter(run.state for run in runs)
    finished = experiment.state not in (ExperimentState.QUEUED, ExperimentState.RUNNING)
    return Progress(
        experiment_id=experiment.pk,
        name=experiment.name,
        state=experiment.state,
        finished=finished,
        builds_done=built[BuildState.BUILT],
        builds_failed=built[BuildState.FAILED] + built[BuildState.CANCELLED],
        builds_total=len(builds),
        boots_done=ran[RunState.DONE],
        boots_failed=ran[RunState.FAILED] + ran[RunState.CANCELLED],
        boots_total=len(runs),
        now=_activities(builds, runs, experiment),
        eta_s=None if finished else _eta(builds, runs),
        problem=experiment.problem,
    )


def _activities(builds: list[Build], runs: list[Run], experiment: Experiment) -> tuple[Activity, ...]:
    names: dict[int | None, str] = {}
    for variant in experiment.variants.exclude(build=None):
        names.setdefault(variant.build_id, variant.name)
    compiling = [
        Activity("build", build.pk, names[build.pk], build.started_at)
        for build in builds
        if build.state == BuildState.BUILDING
    ]
    booting = [
        Activity("boot", run.pk, f"{run.variant.name}: {run.case.workload}, {_which(run)}", run.started_at)
        for run in runs
        if run.state == RunState.RUNNING
    ]
    return tuple(compiling + booting)


def _which(run: Run) -> str:
    return f"boot {run.block + 1}" if run.purpose == "measured" else run.purpose


def _eta(builds: list[Build], runs: list[Run]) -> float | None:
    """Seconds left, from what the same kind of work took here so far."""
    open_builds = sum(b.state in (BuildState.QUEUED, BuildState.BUILDING) for b in builds)
    open_runs = sum(r.state in (RunState.QUEUED, RunState.RUNNING) for r in runs)
    # The last build is the better guess: the first one was cold, the next ones lie over it.
    build_s = _durations(b for b in builds if b.state == BuildState.BUILT and not b.cached)
    run_s = _durations(r for r in runs if r.state in (RunState.DONE, RunState.FAILED))
    if (open_builds and not build_s) or (open_runs and not run_s):
        return None
    left = open_builds * build_s[-1] if open_builds else 0.0
    return left + (open_runs * median(run_s) if open_runs else 0.0)


def _durations(rows: Iterable[Build | Run]) -> list[float]:
    over = [row for row in rows if row.started_at and row.finished_at]
    over.sort(key=lambda row: row.finished_at or datetime.min)
    return [
        (row.finished_at - row.started_at).total_seconds()
        for row in over
        if row.started_at and row.finished_at
    ]
