# SPDX-License-Identifier: GPL-2.0-or-later
"""The progress of an experiment, for the command line's bar and the live page."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import NamedTuple

from django.utils import timezone

from lab.errors import one_row
from lab.models import Build, Experiment, Run, Variant
from lab.models.states import OPEN_EXPERIMENT, BuildState, RunState

# A guess from less is worthless, because of make's own start and the last links.
_LEAST_SHARE, _LEAST_S = 0.05, 5.0


@dataclass(frozen=True, slots=True)
class Activity:
    """Something being done now: kind is "build" or "boot", label what a person would call it.

    percent, left_s: how much of a build is done and the seconds it still takes; None where that is not known.
    """

    kind: str
    id: int
    label: str
    since: datetime | None
    percent: int | None = None
    left_s: float | None = None


class Boot(NamedTuple):
    """A boot as far as progress needs it; a large experiment has a thousand."""

    id: int
    state: str
    started_at: datetime | None
    finished_at: datetime | None
    purpose: str
    block: int
    claimed_by: str
    lease_until: datetime | None
    variant: str
    workload: str


@dataclass(frozen=True, slots=True)
class Work:
    """The builds of an experiment, each with the names of its variants in their order, and the boots in theirs."""

    builds: Mapping[Build, Sequence[str]]
    boots: Sequence[Boot]


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """The place of an experiment in a queue; text is such as "3rd of 7 for target “kvm1”".

    starts_s: seconds until its turn at the pace of the last hour, None where nothing was done.
    """

    position: int
    length: int
    text: str
    starts_s: float | None


@dataclass(frozen=True, slots=True)
class ExperimentProgress:
    """Counts of finished (successful, failed or cancelled) and of all work; eta in seconds, None if unknown.

    stalled: why no work is going on, "" while some is; way_out: the remedy; queue: its place while it
    waits for its turn. lab/runs/stalls.py fills these in.
    """

    experiment_id: int
    name: str
    state: str
    finished: bool
    builds_done: int
    builds_failed: int
    builds_cancelled: int
    builds_total: int
    boots_done: int
    boots_failed: int
    boots_cancelled: int
    boots_total: int
    now: tuple[Activity, ...]
    eta_s: float | None
    problem: str
    stalled: str = ""
    way_out: str = ""
    queue: QueuePlace | None = None

    @property
    def builds_over(self) -> int:
        """Builds that are over, successful or not."""
        return self.builds_done + self.builds_failed + self.builds_cancelled

    @property
    def boots_over(self) -> int:
        """Boots that are over, successful or not."""
        return self.boots_done + self.boots_failed + self.boots_cancelled

    @property
    def percent(self) -> int:
        """Share of builds and boots that are over; a build weighs as five boots, about its cost."""
        whole = 5 * self.builds_total + self.boots_total
        parts = sum(activity.percent or 0 for activity in self.now) / 100
        return int(100 * (5 * (self.builds_over + parts) + self.boots_over) / whole) if whole else 100


def progress(experiment_id: int) -> ExperimentProgress:
    """Return how far the experiment is. Raises UnknownRow."""
    experiment = one_row(Experiment.objects.filter(pk=experiment_id), f"experiment {experiment_id}")
    return progress_of([experiment], work_of([experiment]))[experiment_id]


def work_of(experiments: Sequence[Experiment]) -> dict[int, Work]:
    """Return by number the builds and boots of experiments, in two statements for all."""
    builds: dict[int, dict[Build, list[str]]] = defaultdict(lambda: defaultdict(list))
    variants = Variant.objects.filter(experiment__in=experiments).exclude(build=None).order_by("position")
    for variant in variants.select_related("build").defer("build__request", "build__problem_detail"):
        if variant.build:
            builds[variant.experiment_id][variant.build].append(variant.name)
    boots: dict[int, list[Boot]] = defaultdict(list)
    columns = ("experiment", *Boot._fields[:-2], "variant__name", "case__workload")
    runs = Run.objects.filter(experiment__in=experiments).values_list(*columns)
    for experiment, *boot in runs:
        boots[experiment].append(Boot(*boot))
    return {row.pk: Work(builds[row.pk], boots[row.pk]) for row in experiments}


def progress_of(experiments: Sequence[Experiment], work: Mapping[int, Work]) -> dict[int, ExperimentProgress]:
    """Return by number how far experiments are. work: theirs."""
    return {row.pk: _progress(row, work[row.pk]) for row in experiments}


def _progress(experiment: Experiment, work: Work) -> ExperimentProgress:
    builds, runs = sorted(work.builds, key=lambda build: build.pk), work.boots
    made = Counter(build.state for build in builds)
    ran = Counter(run.state for run in runs)
    finished = experiment.state not in OPEN_EXPERIMENT
    return ExperimentProgress(
        experiment_id=experiment.pk,
        name=experiment.name,
        state=experiment.state,
        finished=finished,
        builds_done=made[BuildState.BUILT],
        builds_failed=made[BuildState.FAILED],
        builds_cancelled=made[BuildState.CANCELLED],
        builds_total=len(builds),
        boots_done=ran[RunState.DONE],
        boots_failed=ran[RunState.FAILED],
        boots_cancelled=ran[RunState.CANCELLED],
        boots_total=len(runs),
        now=_activities(work),
        eta_s=None if finished else _eta(builds, runs),
        problem=experiment.problem,
    )


def _activities(work: Work) -> tuple[Activity, ...]:
    """Return the current activities. A build is called by the first of its variants."""
    compiling = [
        Activity("build", build.pk, names[0], build.started_at, *build_steps(build))
        for build, names in sorted(work.builds.items(), key=lambda pair: pair[0].pk)
        if build.state == BuildState.BUILDING
    ]
    booting = [
        Activity("boot", run.id, f"{run.variant}: {run.workload}, {_which(run)}", run.started_at)
        for run in work.boots
        if run.state == RunState.RUNNING
    ]
    return tuple(compiling + booting)


def build_steps(build: Build) -> tuple[int | None, float | None]:
    """Return how much of a build under way is done in percent, and the seconds it still takes."""
    begun = build.steps_since or build.started_at
    elapsed = (timezone.now() - begun).total_seconds() if begun else 0.0
    done, expected = build.steps_done, build.steps_expected
    return steps_percent(done, expected), steps_left_s(done, expected, elapsed)


def steps_percent(done: int, expected: int) -> int | None:
    """Return the share of steps that are done, None while nothing is known; only a build that ended is at 100."""
    return min(99, 100 * done // expected) if expected > 0 else None


def steps_left_s(done: int, expected: int, elapsed_s: float) -> float | None:
    """Return the seconds a build still takes at the pace of its steps so far, None while that says nothing."""
    if expected <= 0 or done < _LEAST_SHARE * expected or elapsed_s < _LEAST_S:
        return None
    return elapsed_s * max(0, expected - done) / done


def _which(run: Boot) -> str:
    return f"boot {run.block + 1}" if run.purpose == "measured" else run.purpose


def _eta(builds: Sequence[Build], runs: Sequence[Boot]) -> float | None:
    """Seconds left, from what the same kind of work took here so far, and from the steps of builds under way."""
    under_way = [build_steps(build)[1] for build in builds if build.state == BuildState.BUILDING]
    steps_s = [seconds for seconds in under_way if seconds is not None]
    open_builds = sum(b.state in (BuildState.QUEUED, BuildState.BUILDING) for b in builds) - len(steps_s)
    open_runs = sum(r.state in (RunState.QUEUED, RunState.RUNNING) for r in runs)
    # The last build is the better guess: the first one starts from nothing, the next ones build on it.
    build_s = _durations(b for b in builds if b.state == BuildState.BUILT and not b.cached)
    run_s = _durations(r for r in runs if r.state in (RunState.DONE, RunState.FAILED))
    if (open_builds and not build_s) or (open_runs and not run_s):
        return None
    left = sum(steps_s) + (open_builds * build_s[-1] if open_builds else 0.0)
    return left + (open_runs * median(run_s) if open_runs else 0.0)


def _durations(rows: Iterable[Build | Boot]) -> list[float]:
    """Return the seconds that finished work took, in the order in which it finished."""
    over = sorted((row.finished_at, row.started_at) for row in rows if row.started_at and row.finished_at)
    return [(finished - started).total_seconds() for finished, started in over]
