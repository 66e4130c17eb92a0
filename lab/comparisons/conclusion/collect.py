# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the facts of an experiment's conclusion from the tables."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from statistics import median
from typing import NamedTuple

from lab.comparisons.conclusion.conclude import as_data
from lab.comparisons.conclusion.facts import CaseFacts, Facts, FailedBoots, Kernel, MetricFact, Together
from lab.comparisons.conclusion.locks import changes_locks, lock_facts
from lab.comparisons.shape import ConclusionData
from lab.experiments.kernel_notes import runs_code_of_base
from lab.experiments.page import variants_of
from lab.experiments.shown_description import case_titles
from lab.models import Case, Comparison, Experiment, Run, Variant
from lab.models.states import BuildState, Purpose, Role, RunState, VariantState
from lab.statistics.verdict import FALSE_DISCOVERIES
from lab.statistics.verdict_words import kind_of

_OF_CPUS = re.compile(r"(.+)_(\d{1,2})")


class _Boot(NamedTuple):
    """The fields of a boot that a conclusion needs."""

    variant: str
    case: int
    block: int
    state: str
    outcome: str
    blame: str
    invalid: str
    started_at: datetime | None
    finished_at: datetime | None


def conclusion_data(row: Experiment) -> ConclusionData:
    """Return the conclusion of an experiment from what is stored now, as plain data."""
    return as_data(experiment_facts(row))


def experiment_facts(row: Experiment) -> Facts:
    """Return the facts of an experiment. Patches and profiles are read only where they can matter."""
    variants = variants_of(row)
    base = next((variant for variant in variants if variant.role == Role.BASE), None)
    measured = Run.objects.filter(experiment=row, purpose=Purpose.MEASURED)
    runs = [_Boot(*boot) for boot in measured.values_list("variant__name", *_Boot._fields[1:])]
    comparisons = list(row.comparisons.filter(primary=True).select_related("variant").order_by("pk"))
    facts = Facts(
        state=row.state,
        clock=row.clock,
        cases=tuple(_cases(row, comparisons, runs, base.name if base else "")),
        kernels=tuple(_kernel(variant, base) for variant in variants if variant.role == Role.CANDIDATE),
        base=_kernel(base, base) if base else Kernel("base"),
        boots_asked=max((comparison.boots for comparison in comparisons), default=row.boots)
        if row.sequential
        else row.boots,
        boots_open=sum(run.state in (RunState.QUEUED, RunState.RUNNING) for run in runs),
        boots_lost=_lost(runs),
        arms=len({(run.variant, run.case) for run in runs}),
        boot_seconds=_boot_seconds(runs),
    )
    undecided = any(kind_of(comparison.verdict) == "inconclusive" for comparison in comparisons)
    if not comparisons or row.clock == "contention" or not changes_locks(row):
        return facts
    return replace(facts, locks=lock_facts(row, sampled=undecided and row.clock == "wall"))


def _kernel(variant: Variant, base: Variant | None) -> Kernel:
    build = variant.build
    failed = build is not None and build.state == BuildState.FAILED
    return Kernel(
        variant.name,
        tuple(variant.switches),
        state=VariantState.FAILED.value if failed else variant.state,
        lab_fault=bool(build and build.blame == "lab"),
        same_code=runs_code_of_base(variant, base.build if base else None),
    )


def _cases(
    row: Experiment, comparisons: Sequence[Comparison], runs: Sequence[_Boot], base: str
) -> Iterator[CaseFacts]:
    """Yield the cases; a workload that occurs once is named without its preset. base: the name of its kernel.

    A comparison without a single boot says nothing of a kernel: how its boots ended does.
    """
    cases = list(row.cases.all())
    times = Counter(case.workload for case in cases)
    titles = case_titles(cases)
    together = _together(row, cases) if comparisons else {}
    for case in cases:
        points: dict[str, list[MetricFact]] = defaultdict(list)
        control: list[MetricFact] = []
        for comparison in comparisons:
            if comparison.case_id == case.pk and comparison.variant.role == Role.AA:
                control.append(_metric(comparison, row.clock))
            elif (
                comparison.case_id == case.pk
                and comparison.variant.role == Role.CANDIDATE
                and comparison.boots
            ):
                points[comparison.variant.name].append(_metric(comparison, row.clock))
        ends = {failed.kernel: failed for failed in _failed(runs, case.pk)}
        yield CaseFacts(
            case.pk,
            case.workload if times[case.workload] == 1 else titles[case.pk],
            {name: tuple(each) for name, each in points.items()},
            tuple(control),
            tuple(failed for kernel, failed in ends.items() if kernel != base),
            tuple(together.get(case.pk, ())),
            ends.get(base) if base not in _finished(runs, case.pk) else None,
        )


def _metric(row: Comparison, clock: str) -> MetricFact:
    name, cpus = row.metric, None
    if clock == "contention" and (match := _OF_CPUS.fullmatch(row.metric)):
        name, cpus = match[1], int(match[2])
    ratio, low, high = (
        value if value is not None and math.isfinite(value) else None
        for value in (row.ratio, row.low, row.high)
    )
    return MetricFact(
        name, kind_of(row.verdict), ratio, low, high, row.boots, row.boots_needed, row.margin, cpus
    )


def _failed(runs: Sequence[_Boot], case: int) -> Iterator[FailedBoots]:
    """Yield the commonest way in which boots of each kernel failed."""
    ends: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for run in runs:
        if run.case == case and run.state == RunState.FAILED:
            ends[run.variant][run.outcome, run.blame] += 1
    for kernel, counts in ends.items():
        ((outcome, blame), boots) = counts.most_common(1)[0]
        yield FailedBoots(kernel, boots, outcome, blame == "lab")


def _finished(runs: Sequence[_Boot], case: int) -> set[str]:
    """Return the kernels of which a boot finished, whether it counts or not."""
    return {run.variant for run in runs if run.case == case and run.state == RunState.DONE}


def _together(row: Experiment, cases: Sequence[Case]) -> dict[int, list[Together]]:
    """Return by case the pairs of switches whose interaction in a primary metric is significant."""
    primary = {(case.pk, metric["name"]) for case in cases for metric in case.metrics if metric["primary"]}
    pairs: dict[int, list[Together]] = defaultdict(list)
    for effect in row.effects.filter(low__isnull=False, high__isnull=False).order_by("pk"):
        low, high = effect.low or 0.0, effect.high or 0.0
        apart = not low <= 1 <= high and (effect.q_value or 0.0) <= FALSE_DISCOVERIES
        if len(effect.switches) == 2 and apart and (effect.case_id, effect.metric) in primary:
            pairs[effect.case_id].append(Together(*effect.switches))
    return pairs


def _lost(runs: Sequence[_Boot]) -> int:
    """Return the number of requested boots that did not count even after retakes."""
    asked = {(run.variant, run.case, run.block) for run in runs}
    counted = {
        (run.variant, run.case, run.block) for run in runs if run.state == RunState.DONE and not run.invalid
    }
    return len(asked - counted)


def _boot_seconds(runs: Sequence[_Boot]) -> float | None:
    times = [
        (run.finished_at - run.started_at).total_seconds()
        for run in runs
        if run.state == RunState.DONE and run.started_at and run.finished_at
    ]
    return median(times) if times else None
