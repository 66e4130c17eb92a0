# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the stored comparisons of an experiment for its page, variants side by side."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from lab.comparisons.false_alarms import FalseAlarms, false_alarms
from lab.experiments.page import get_experiment
from lab.experiments.progress import ExperimentProgress, progress
from lab.experiments.shown_description import CaseView, case_views
from lab.models import Comparison, Experiment, Run, Sample, Variant
from lab.models.states import Role
from lab.statistics.verdict import FALSE_DISCOVERIES


@dataclass(frozen=True, slots=True)
class Side:
    """One column: a variant; `base` marks the one the others are compared with.

    control: "" or what it is there to show: nothing but noise, or nothing but code layout.
    """

    id: int
    name: str
    base: bool
    control: str
    state: str
    problem: str
    note: str


@dataclass(frozen=True, slots=True)
class ComparisonCell:
    """One metric of one candidate; ratios are candidate over base, None where not computable."""

    id: int
    variant_id: int
    variant: str
    median: float | None
    base_median: float | None
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    boots: int
    boots_needed: int | None
    reason: str
    margin: float
    method: str
    control: str
    p_value: float | None
    q_value: float | None
    effect: float | None
    floor: float
    partial: bool
    notes: tuple[str, ...]

    @property
    def held_back(self) -> bool:
        """Return whether the shift is clear by itself but not after allowing for all metrics; its interval is then wider."""
        p, q = self.p_value, self.q_value
        clear = p is not None and q is not None and p <= FALSE_DISCOVERIES < q
        return clear and self.verdict == "inconclusive"

    @property
    def percent(self) -> float | None:
        """Change in per cent: -53.0 is 53 % less than the base."""
        return None if self.ratio is None else 100 * (self.ratio - 1)

    @property
    def percent_low(self) -> float | None:
        """Lower end of the interval, per cent."""
        return None if self.low is None else 100 * (self.low - 1)

    @property
    def percent_high(self) -> float | None:
        """Upper end of the interval, per cent."""
        return None if self.high is None else 100 * (self.high - 1)


@dataclass(frozen=True, slots=True)
class EffectCell:
    """The effect of one switch over all combinations, or the interaction of two; ratios."""

    switches: tuple[str, ...]
    ratio: float | None
    low: float | None
    high: float | None
    q_value: float | None
    reason: str

    @property
    def label(self) -> str:
        """The switch, or both with a multiplication sign between."""
        return " × ".join(self.switches)


@dataclass(frozen=True, slots=True)
class InvalidBoot:
    """A boot that ran outside its validity gates, and which of them."""

    run_id: int
    variant: str
    block: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric over all candidates; cells in the order of the page's candidates, None if absent.

    alarms: how often this target called a difference between the base and itself on this metric.
    effects: of each switch and each two together, where there are several.
    """

    metric: str
    unit: str
    better: str
    primary: bool
    base_median: float | None
    cells: tuple[ComparisonCell | None, ...]
    alarms: FalseAlarms
    effects: tuple[EffectCell, ...]


@dataclass(frozen=True, slots=True)
class Representative:
    """The median boot of one variant by the case's primary metric, with its own line and extras."""

    variant_id: int
    variant: str
    run_id: int
    line: str
    extras: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CaseComparison:
    """One case: metrics (primary ones first), median boots, what verified runs counted, boots left out."""

    case: CaseView
    metrics: tuple[MetricRow, ...]
    representatives: tuple[Representative, ...]
    verified: tuple[Representative, ...]
    invalid: tuple[InvalidBoot, ...]


@dataclass(frozen=True, slots=True)
class ComparisonPage:
    """All variants side by side; verdicts counts those of primary metrics of candidates."""

    experiment_id: int
    name: str
    state: str
    clock: str
    boots: int
    sequential: bool
    base: Side | None
    candidates: tuple[Side, ...]
    pruned: tuple[Side, ...]
    cases: tuple[CaseComparison, ...]
    verdicts: dict[str, int]
    progress: ExperimentProgress


def comparison_page(experiment_id: int) -> ComparisonPage:
    """Return the stored comparisons of an experiment. Raises UnknownRow."""
    row = get_experiment(experiment_id)
    sides = _sides(row)
    candidates = tuple(side for side in sides if not side.base and side.state != "pruned")
    found = list(row.comparisons.select_related("variant").order_by("pk"))
    cases = case_views(row)
    return ComparisonPage(
        experiment_id=row.pk,
        name=row.name,
        state=row.state,
        clock=row.clock,
        boots=row.boots,
        sequential=row.sequential,
        base=next((side for side in sides if side.base), None),
        candidates=candidates,
        pruned=tuple(side for side in sides if side.state == "pruned"),
        cases=tuple(_case(row, case, candidates, found) for case in cases),
        verdicts=dict(Counter(c.verdict for c in found if c.primary and c.variant.role == Role.CANDIDATE)),
        progress=progress(row.pk),
    )


def _sides(experiment: Experiment) -> tuple[Side, ...]:
    return tuple(
        Side(v.pk, v.name, v.role == Role.BASE, _control(v), v.state, v.problem, v.note)
        for v in experiment.variants.all()
    )


def _control(variant: Variant) -> str:
    return variant.role if variant.role in {Role.AA, Role.PLACEBO} else ""


def _case(
    experiment: Experiment, case: CaseView, candidates: tuple[Side, ...], found: list[Comparison]
) -> CaseComparison:
    here = [comparison for comparison in found if comparison.case_id == case.id]
    names = list(dict.fromkeys(c.metric for c in here))
    alarms = false_alarms(experiment, case.workload)
    effects = _effects(experiment, case.id)
    rows = [
        _metric_row(name, here, candidates, alarms.get(name, FalseAlarms(0, 0)), effects.get(name, []))
        for name in names
    ]
    rows.sort(key=lambda row: not row.primary)
    primary = next((row.metric for row in rows if row.primary), "")
    runs = Run.objects.filter(experiment=experiment, case_id=case.id, state="done").select_related("variant")
    measured = list(runs.filter(purpose="measured", invalid=[]))
    return CaseComparison(
        case=case,
        metrics=tuple(rows),
        representatives=_representatives(measured, primary),
        verified=tuple(_representative(run) for run in runs.filter(purpose="verified")),
        invalid=tuple(
            InvalidBoot(run.pk, run.variant.name, run.block, tuple(run.invalid))
            for run in runs.exclude(invalid=[])
        ),
    )


def _effects(experiment: Experiment, case_id: int) -> dict[str, list[EffectCell]]:
    found: dict[str, list[EffectCell]] = defaultdict(list)
    for row in experiment.effects.filter(case=case_id).order_by("pk"):
        cell = EffectCell(tuple(row.switches), row.ratio, row.low, row.high, row.q_value, row.reason)
        found[row.metric].append(cell)
    return found


def _metric_row(
    metric: str,
    here: list[Comparison],
    candidates: tuple[Side, ...],
    alarms: FalseAlarms,
    effects: list[EffectCell],
) -> MetricRow:
    own = {c.variant_id: c for c in here if c.metric == metric}
    first = next(iter(own.values()))
    # The base's median over both of its boots a block; only the second ones are compared with the first alone.
    judged = [c for c in own.values() if c.variant.role != Role.AA] or list(own.values())
    return MetricRow(
        metric=metric,
        unit=first.unit,
        better=first.better,
        primary=first.primary,
        base_median=next((c.base_median for c in judged if c.base_median is not None), None),
        cells=tuple(comparison_cell(own[side.id]) if side.id in own else None for side in candidates),
        alarms=alarms,
        effects=tuple(effects),
    )


def comparison_cell(row: Comparison) -> ComparisonCell:
    """Return one stored comparison as pages show it."""
    return ComparisonCell(
        id=row.pk,
        variant_id=row.variant_id,
        variant=row.variant.name,
        median=row.median,
        base_median=row.base_median,
        ratio=row.ratio,
        low=row.low,
        high=row.high,
        verdict=row.verdict,
        boots=row.boots,
        boots_needed=row.boots_needed,
        reason=row.reason,
        margin=row.margin,
        method=row.method,
        control=_control(row.variant),
        p_value=row.p_value,
        q_value=row.q_value,
        effect=row.effect,
        floor=row.floor,
        partial=row.partial,
        notes=tuple(row.notes),
    )


def _representatives(measured: list[Run], primary: str) -> tuple[Representative, ...]:
    values = _boot_medians([run.pk for run in measured], primary)
    by_variant: dict[int, list[Run]] = defaultdict(list)
    for run in sorted(measured, key=lambda run: run.variant.position):
        by_variant[run.variant_id].append(run)
    chosen = []
    for runs in by_variant.values():
        ranked = sorted(runs, key=lambda run: (values.get(run.pk, 0.0), run.position))
        chosen.append(ranked[(len(ranked) - 1) // 2])
    return tuple(_representative(run) for run in chosen)


def _boot_medians(run_ids: Iterable[int], metric: str) -> dict[int, float]:
    values: dict[int, list[float]] = defaultdict(list)
    for run_id, value in Sample.objects.filter(run__in=run_ids, metric=metric, warmup=False).values_list(
        "run_id", "value"
    ):
        values[run_id].append(value)
    return {run_id: median(boot) for run_id, boot in values.items()}


def _representative(run: Run) -> Representative:
    return Representative(run.variant_id, run.variant.name, run.pk, run.line, run.extras)
