# SPDX-License-Identifier: GPL-2.0-or-later
"""Invariants of a lab under faults, read from its tables, its diary and its files."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from django.db.models import Count, Max, Min

from bench.faults.audit import Entry, entries
from bench.faults.campaign_file import Breach, BreachKind
from kernels.errors import KernelsError
from lab.errors import LabError
from lab.models import Build, Experiment, Run, Sample
from lab.models.states import MOVES, BuildState, ExperimentState, RunState
from workers.artifact_transfer import at_hand

OVER = {ExperimentState.DONE, ExperimentState.FAILED, ExperimentState.CANCELLED}


def breaches(home: Path | None) -> list[Breach]:
    """Return everything that is wrong with what was recorded, once nothing is open any more. home: None where kernels are made up."""
    return [*_changed(), *_moves(), *_samples(), *_artifacts(home), *_open(), *_failed()]


def _changed() -> Iterator[Breach]:
    """Nothing that was recorded may be changed or deleted."""
    for entry in entries("sample"):
        yield Breach("lost", f"sample {entry.note} of run {entry.row} was {entry.became.lower()}d")
    for kind in ("run", "build"):
        for entry in entries(kind):
            if entry.note == "rewritten":
                yield Breach("doubled", f"{kind} {entry.row} was {entry.was} and was recorded again")
            if entry.became == "deleted":
                yield Breach("lost", f"{kind} {entry.row} was {entry.was} and was deleted")


def _moves() -> Iterator[Breach]:
    """Each run is recorded once, by who held it, along the table of states."""
    tables: dict[str, dict[str, frozenset[str]]] = {
        "run": dict(MOVES[RunState]),
        "build": dict(MOVES[BuildState]),
        "experiment": dict(MOVES[ExperimentState]),
    }
    for kind, table in tables.items():
        histories: dict[int, list[Entry]] = defaultdict(list)
        for entry in entries(kind):
            histories[entry.row].append(entry)
        for row, history in histories.items():
            yield from told_by_history(kind, row, history, table)


def told_by_history(
    kind: str, row: int, history: list[Entry], table: dict[str, frozenset[str]]
) -> Iterator[Breach]:
    """Yield the breaches in one row's history; table: the allowed changes of its state."""
    ends = Counter(entry.became for entry in history if entry.was != entry.became)
    if kind == "run" and sum(ends[state] for state in ("done", "failed")) > 1:
        yield Breach("doubled", f"run {row} was recorded {ends['done'] + ends['failed']} times")
    holder = ""
    for entry in history:
        if entry.was != entry.became and entry.became not in table.get(entry.was, frozenset()):
            yield Breach("illegal", f"{kind} {row} went from {entry.was} to {entry.became}")
        if entry.became in {"running", "building"}:
            holder = entry.token
        elif (
            entry.became in {"done", "built"}
            and entry.was in {"running", "building"}
            and entry.token != holder
        ):
            yield Breach("doubled", f"{kind} {row} was recorded by another claim than the last")


def _samples() -> Iterator[Breach]:
    """A run that is done has each of its metrics for each of its iterations."""
    done = Run.objects.filter(state=RunState.DONE, purpose="measured").select_related("experiment")
    samples: dict[int, dict[str, tuple[int, int, int]]] = defaultdict(dict)
    rows = Sample.objects.values("run", "metric").annotate(
        n=Count("pk"), low=Min("iteration"), high=Max("iteration")
    )
    for row in rows:
        samples[row["run"]][row["metric"]] = (row["n"], row["low"], row["high"])
    for run in done:
        wanted = run.experiment.iterations + run.experiment.warmup
        if not samples[run.pk]:
            yield Breach("lost", f"run {run.pk} is done and has no samples")
        for metric, (count, low, high) in samples[run.pk].items():
            if (count, low, high) != (wanted, 0, wanted - 1):
                kind: BreachKind = "lost" if count < wanted else "doubled"
                yield Breach(kind, f"run {run.pk} has {count} samples of {metric}, not {wanted}")


def _artifacts(home: Path | None) -> Iterator[Breach]:
    """Each built kernel is here or in the store, byte for byte; of made-up ones nothing is looked at."""
    if home is None:
        return
    for build in Build.objects.filter(state=BuildState.BUILT):
        try:
            with at_hand(home, build.artifact_key):
                pass
        except (KernelsError, LabError) as exc:
            yield Breach("lost", f"build {build.pk}: {exc}")


def _open() -> Iterator[Breach]:
    for experiment in Experiment.objects.exclude(state__in=OVER):
        yield Breach("open", f"experiment {experiment.pk} is {experiment.state} for ever")
    for run in Run.objects.filter(state__in=(RunState.QUEUED, RunState.RUNNING)):
        yield Breach(
            "open",
            f"run {run.pk} of a closed experiment is {run.state}, held by {run.claimed_by or 'nobody'}",
        )
    for build in Build.objects.filter(state=BuildState.BUILDING):
        yield Breach("open", f"build {build.pk} is held by {build.claimed_by or 'nobody'}")


def _failed() -> Iterator[Breach]:
    for experiment in Experiment.objects.filter(state=ExperimentState.FAILED):
        yield Breach("failed", f"experiment {experiment.pk}: {experiment.problem[:160]}")
    for run in Run.objects.filter(state=RunState.FAILED, blame="lab"):
        yield Breach("failed", f"run {run.pk}: {run.outcome}: {run.problem[:160]}")
    for build in Build.objects.filter(state=BuildState.FAILED):
        yield Breach("failed", f"build {build.pk}: {build.blame}: {build.problem[:160]}")
