# SPDX-License-Identifier: GPL-2.0-or-later
"""All variants side by side: every metric with its interval and verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from lab.comparisons.distribution import CaseSpread, case_spreads
from lab.comparisons.page import (
    CaseComparison,
    ComparisonCell,
    ComparisonPage,
    EffectCell,
    InvalidBoot,
    MetricRow,
    Representative,
    comparison_page,
)
from lab.comparisons.regressions import triage_states
from lab.profiles.exact import exact_changes
from lab.statistics.verdict_words import (
    CHANGES,
    CONTROLS,
    DIRECTIONS,
    VerdictWord,
    shown_verdict,
)
from web.charts import Bar, Plot, Span, bar, histogram, span
from web.views.contention import ContentionSection, contention
from web.views.distribution import SpreadSection, spread
from web.views.exact import ExactTable, exact_tables
from web.views.missing import found
from web.words import change, medians_note, quantity, settings


@dataclass(frozen=True, slots=True)
class VariantLine:
    """One variant under one metric; without bar and verdict for the base, which `explain` addresses for others.

    medians: why they and the change differ. shown: the verdict as the page shows it. certainty: q in words. triaged: of a regression.
    """

    variant: str
    control: str
    shown: VerdictWord | None
    certainty: str
    value: str
    change: str
    medians: str
    interval: str
    verdict: str
    bar: Bar | None
    boots: int
    needs: int | None
    reason: str
    explain: int | None
    triaged: str = ""


@dataclass(frozen=True, slots=True)
class EffectLine:
    """The effect of one switch over all combinations, or the interaction of two."""

    label: str
    change: str
    interval: str
    bar: Bar | None
    certainty: str
    reason: str


@dataclass(frozen=True, slots=True)
class EffectGroup:
    """The effects on one metric, on one axis."""

    metric: str
    ends: tuple[str, str]
    lines: tuple[EffectLine, ...]


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """One metric: the base first, then the candidates and controls on one axis."""

    metric: str
    unit: str
    better: str
    primary: bool
    margin: str
    floor: str
    alarms: str
    ends: tuple[str, str]
    lines: tuple[VariantLine, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """The counts of a verified boot of one variant; listing: bpftrace's output, if any."""

    variant: str
    run_id: int
    statement: str
    holds: bool
    listing: str


@dataclass(frozen=True, slots=True)
class CaseSection:
    """One case.

    groups: its primary metrics, or all metrics if none is primary. others: the remaining metrics. moved: the number of
    significant changes among the others.
    """

    title: str
    anchor: str
    params: str
    groups: tuple[MetricGroup, ...]
    others: tuple[MetricGroup, ...]
    moved: int
    mail: tuple[Representative, ...]
    proofs: tuple[Proof, ...]
    plots: tuple[Plot, ...]
    method: str
    effects: tuple[EffectGroup, ...]
    notes: tuple[str, ...]
    invalid: tuple[InvalidBoot, ...]
    spread: SpreadSection | None
    contention: ContentionSection | None
    exact: tuple[ExactTable, ...]
    exact_at: str


@dataclass(frozen=True, slots=True)
class Glance:
    """One primary metric over all candidates: (change, verdict) or None where nothing was compared."""

    anchor: str
    case: str
    metric: str
    cells: tuple[tuple[str, str] | None, ...]


@require_safe
def show(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """The verdicts at a glance, then each case in full."""
    page = found(comparison_page, experiment_id)
    spreads = case_spreads(experiment_id)
    states = triage_states(experiment_id)
    ctx = {
        "page": page,
        "judged": [side for side in page.candidates if not side.control],
        "key": experiment_id,
        "tab": "comparison",
        "glances": _glances(page),
        "sections": [
            _section(page, one, spreads.get(one.case.id), states)
            for one in page.cases
            if one.metrics or one.representatives
        ],
    }
    return render(request, "web/comparison.html", ctx)


def _glances(page: ComparisonPage) -> list[Glance]:
    return [
        Glance(
            anchor=_anchor(one),
            case=one.case.title,
            metric=row.metric,
            cells=tuple(
                (change(cell.ratio, fine=page.clock == "instructions"), cell.verdict) if cell else None
                for side, cell in zip(page.candidates, row.cells, strict=True)
                if not side.control
            ),
        )
        for one in page.cases
        for row in one.metrics
        if row.primary
    ]


def _anchor(one: CaseComparison) -> str:
    return f"case-{one.case.id}"


def _section(
    page: ComparisonPage, one: CaseComparison, told: CaseSpread | None, states: Mapping[int, str]
) -> CaseSection:
    cells = [cell for row in one.metrics for cell in row.cells if cell]
    first = [row for row in one.metrics if row.primary] or list(one.metrics)
    others = [row for row in one.metrics if row not in first]
    return CaseSection(
        title=one.case.title,
        anchor=_anchor(one),
        params=settings(one.case.params),
        groups=tuple(_group(page, row, states) for row in first),
        others=tuple(_group(page, row, states) for row in others),
        moved=sum(_is_called(cell) for row in others for cell in row.cells if cell),
        mail=tuple(item for item in one.representatives if item.line),
        proofs=tuple(proof for item in one.verified if (proof := _proof(item))),
        plots=_plots(one.representatives),
        method=next((cell.method for cell in cells if cell.method and not cell.control), ""),
        effects=tuple(
            _effects(row, fine=page.clock == "instructions")
            for row in one.metrics
            if row.primary and row.effects
        ),
        notes=tuple(dict.fromkeys(_notes(cells))),
        invalid=one.invalid,
        contention=contention(page, one),
        exact=tuple(exact_tables(exact_changes(one.case.id), brief=True)),
        exact_at=f"{reverse('profile', args=(page.experiment_id, one.case.id))}?kind=exact",
        spread=spread(told) if told else None,
    )


def _is_called(cell: ComparisonCell) -> bool:
    return cell.verdict in CHANGES and not cell.control


def _notes(cells: list[ComparisonCell]) -> Iterator[str]:
    if any(cell.partial for cell in cells):
        yield "Partial: some requested boots are missing."
    for cell in cells:
        yield from cell.notes


def _effects(row: MetricRow, *, fine: bool) -> EffectGroup:
    axis = span([value for effect in row.effects for value in (effect.low, effect.ratio, effect.high)], 0.0)
    low, high = axis.ends
    return EffectGroup(
        metric=row.metric,
        ends=(change(low), change(high)),
        lines=tuple(_effect(effect, axis, fine=fine) for effect in row.effects),
    )


def _effect(effect: EffectCell, axis: Span, *, fine: bool) -> EffectLine:
    interval, drawn = interval_bar(axis, effect.low, effect.ratio, effect.high, fine=fine)
    return EffectLine(
        effect.label,
        change(effect.ratio, fine=fine),
        interval,
        drawn,
        certainty(effect.q_value),
        effect.reason,
    )


def interval_bar(
    axis: Span, low: float | None, middle: float | None, high: float | None, *, fine: bool = False
) -> tuple[str, Bar | None]:
    """An interval in words and as a bar; nothing where there is none."""
    if low is None or middle is None or high is None:
        return "", None
    return f"{change(low, fine=fine)} to {change(high, fine=fine)}", bar(axis, low, middle, high)


def certainty(q_value: float | None) -> str:
    """q in words."""
    if q_value is None:
        return ""
    return "q < 0.001" if q_value < 0.001 else f"q {q_value:.3f}"


def _group(page: ComparisonPage, row: MetricRow, states: Mapping[int, str]) -> MetricGroup:
    cells = [cell for cell in row.cells if cell]
    fine = page.clock == "instructions"
    margin = max((cell.margin for cell in cells), default=0.0)
    axis = span([value for cell in cells for value in (cell.low, cell.ratio, cell.high)], margin)
    base = VariantLine(
        variant=page.base.name if page.base else "base",
        control="",
        shown=None,
        certainty="",
        value=quantity(row.base_median, row.unit),
        change="",
        medians="",
        interval="",
        verdict="",
        bar=None,
        boots=max((cell.boots for cell in cells), default=0),
        needs=None,
        reason="",
        explain=None,
    )
    low, high = axis.ends
    return MetricGroup(
        metric=row.metric,
        unit=row.unit,
        better=DIRECTIONS.get(row.better, ""),
        primary=row.primary,
        margin=change(1 + margin).lstrip("+"),
        floor=change(1 + floor).lstrip("+") if (floor := max((c.floor for c in cells), default=0.0)) else "",
        alarms=_alarms(row),
        ends=(change(low), change(high)),
        lines=(base, *(_line(cell, row, axis, states.get(cell.id, ""), fine=fine) for cell in cells)),
    )


def _alarms(row: MetricRow) -> str:
    """Return how far this metric can be trusted here: what A/A comparisons have called so far."""
    seen = row.alarms
    return f"control: {seen.called} of {seen.compared} wrongly flagged" if seen.compared else ""


def _line(cell: ComparisonCell, row: MetricRow, axis: Span, triaged: str, *, fine: bool) -> VariantLine:
    interval, drawn = interval_bar(axis, cell.low, cell.ratio, cell.high, fine=fine)
    base = row.base_median
    return VariantLine(
        variant=cell.variant,
        control=CONTROLS[cell.control].description if cell.control else "",
        shown=shown_verdict(cell.verdict, cell.control),
        certainty=certainty(cell.q_value),
        value=quantity(cell.median, row.unit),
        change=change(cell.ratio, fine=fine),
        medians=medians_note(cell.base_median, cell.median, cell.ratio, shown_base=base, fine=fine),
        interval=interval,
        verdict=cell.verdict,
        bar=drawn,
        boots=cell.boots,
        needs=cell.boots_needed,
        reason=cell.reason,
        explain=cell.id,
        triaged=triaged,
    )


def _proof(item: Representative) -> Proof | None:
    """Return a verified run's evidence for its claim; None if the workload counts nothing."""
    statement = item.extras.get("verified")
    if not isinstance(statement, str):
        return None
    listing = item.extras.get("bpftrace")
    return Proof(
        variant=item.variant,
        run_id=item.run_id,
        statement=statement,
        holds=item.extras.get("verified_holds") is True,
        listing=listing if isinstance(listing, str) else "",
    )


def _plots(items: tuple[Representative, ...]) -> tuple[Plot, ...]:
    """The latency histograms of the median boots, if the workload keeps any."""
    kept = [(item.variant, item.extras["histogram"]) for item in items if _is_histogram(item.extras)]
    counts = {variant: _counts(given["counts"]) for variant, given in kept}
    unit = next((str(given.get("unit", "")) for _, given in kept), "")
    return (histogram(counts, f"latency, {unit}"),) if any(counts.values()) else ()


def _is_histogram(extras: Mapping[str, Any]) -> bool:
    given = extras.get("histogram")
    return isinstance(given, Mapping) and isinstance(given.get("counts"), Mapping)


def _counts(given: Mapping[str, Any]) -> dict[float, int]:
    try:
        return {float(value): int(amount) for value, amount in given.items() if int(amount) > 0}
    except (TypeError, ValueError):
        return {}
