# SPDX-License-Identifier: GPL-2.0-or-later
"""All variants side by side: every metric with its interval and verdict."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from lab.comparisons.distribution import is_histogram
from lab.comparisons.exports.figures import interval_head, is_fine, own_medians
from lab.comparisons.page import CaseBoots, ShownBoot, comparison_page
from lab.comparisons.regressions import triage_states
from lab.comparisons.shape import (
    CaseData,
    CellData,
    ComparisonData,
    EffectData,
    MetricData,
)
from lab.experiments.progress import progress
from lab.profiles.exact import exact_changes
from lab.statistics.verdict_words import (
    CHANGES,
    CONTROLS,
    DIRECTIONS,
    shown_verdict,
)
from web.charts import Span, bar, histogram, span
from web.views.contention import CYCLES, contention
from web.views.distribution import spread
from web.views.exact import exact_table
from web.words import change, conclusion_block, interval, prose, quantity, settings


@require_safe
def show(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """The verdicts at a glance, then each case in full."""
    page = comparison_page(experiment_id)
    data = page.data
    states = triage_states(experiment_id)
    kernels = [variant for variant in data["variants"] if variant["state"] != "pruned"]
    ctx = {
        "page": data["experiment"],
        "progress": progress(experiment_id),
        "judged": [variant for variant in kernels if variant["role"] == "candidate"],
        "failed": [
            variant for variant in kernels if variant["state"] == "failed" and variant["role"] != "base"
        ],
        "pruned": [variant for variant in data["variants"] if variant["state"] == "pruned"],
        "key": experiment_id,
        "tab": "comparison",
        "conclusion": conclusion_block(data["conclusion"]),
        "glances": _glances(data),
        "sections": [
            _section(data, case, page.boots[case["id"]], states)
            for case in data["cases"]
            if case["metrics"] or page.boots[case["id"]].medians
        ],
    }
    return render(request, "web/comparison.html", ctx)


def _glances(data: ComparisonData) -> list[dict[str, Any]]:
    """Return each primary metric over all candidates: (change, verdict), None where there was nothing to compare."""
    judged = [
        variant["name"]
        for variant in data["variants"]
        if variant["role"] == "candidate" and variant["state"] != "pruned"
    ]
    return [
        {
            "anchor": _anchor(case),
            "case": case["title"],
            "metric": metric["name"],
            "cells": [_glance(metric, name, fine=is_fine(data)) for name in judged],
        }
        for case in data["cases"]
        for metric in case["metrics"]
        if metric["primary"]
    ]


def _glance(metric: MetricData, variant: str, *, fine: bool) -> tuple[str, str] | None:
    cell = next((candidate for candidate in metric["cells"] if candidate["variant"] == variant), None)
    return (change(cell["ratio"], fine=fine), cell["verdict"]) if cell else None


def _anchor(case: CaseData) -> str:
    return f"case-{case['id']}"


def _section(
    data: ComparisonData, case: CaseData, boots: CaseBoots, states: Mapping[int, str]
) -> dict[str, Any]:
    """Return one case. groups: the metrics to show open; moved: the significant changes among the others."""
    metrics = case["metrics"]
    cells = [cell for metric in metrics for cell in metric["cells"]]
    first = _deciding(metrics)
    shown = {metric["name"] for metric in first}
    drawn = spread(boots.spread)
    others = [metric for metric in metrics if metric not in first]
    fine = is_fine(data)
    return {
        "title": case["title"],
        "anchor": _anchor(case),
        "params": settings(case["params"]),
        "interval": interval_head(data, cells).replace("95%", "95\N{NO-BREAK SPACE}%"),
        "groups": [_group(data, metric, states) for metric in first],
        "others": [_group(data, metric, states) for metric in others],
        "moved": sum(_is_called(cell) for metric in others for cell in metric["cells"]),
        "mail": [boot for boot in boots.medians if boot.line],
        "proofs": [proof for boot in boots.verified if (proof := _proof(boot))],
        "plots": _plots(boots.medians),
        "method": next(
            (cell["method"] for cell in cells if cell["method"] and cell["role"] not in CONTROLS), ""
        ),
        "effects": [
            _effects(metric, fine=fine) for metric in metrics if metric["primary"] and metric["effects"]
        ],
        "notes": list(dict.fromkeys(_notes(cells))),
        "invalid": case["invalid"],
        "contention": contention(data, case, boots.medians),
        "beside": case["models_and_machines"],
        "exact": [exact_table(exact, brief=True) for exact in exact_changes(case["id"])],
        "exact_at": f"{reverse('profile', args=(data['experiment']['id'], case['id']))}?kind=exact",
        "strips": [plot for plot in drawn["plots"] if plot["metric"] in shown],
        "spread": drawn | {"plots": [plot for plot in drawn["plots"] if plot["metric"] not in shown]},
    }


def _deciding(metrics: list[MetricData]) -> list[MetricData]:
    """Return the metric to show open, or all where none is primary.

    In a case on several numbers of CPUs, it is the metric on the most CPUs, where waiting shows; the curve has the others.
    """
    primary = [metric for metric in metrics if metric["primary"]]
    by_cpus = {int(name[2]): metric for metric in primary if (name := CYCLES.fullmatch(metric["name"]))}
    if by_cpus:
        return [by_cpus[max(by_cpus)]]
    return primary or metrics


def _is_called(cell: CellData) -> bool:
    return cell["verdict"] in CHANGES and cell["role"] not in CONTROLS


def _notes(cells: list[CellData]) -> Iterator[str]:
    if any(cell["partial"] for cell in cells):
        yield "Partial: some requested boots are missing."
    for cell in cells:
        yield from cell["notes"]


def _axis(shifts: Sequence[CellData | EffectData], margin: float) -> Span:
    """Return an axis on which all these shifts and their intervals have room."""
    return span([end for shift in shifts for end in (shift["low"], shift["ratio"], shift["high"])], margin)


def _effects(metric: MetricData, *, fine: bool) -> dict[str, Any]:
    """Return the effects on one metric, on one axis."""
    axis = _axis(metric["effects"], 0.0)
    return {
        "metric": metric["name"],
        "ends": [change(end) for end in axis.ends],
        "lines": [
            drawn_shift(axis, effect, fine=fine)
            | {"label": " × ".join(effect["switches"]), "reason": effect["reason"]}
            for effect in metric["effects"]
        ],
    }


def drawn_shift(axis: Span, shift: CellData | EffectData, *, fine: bool) -> dict[str, Any]:
    """Return a shift in words and as a bar, as web/bar.html draws it; no bar where an end is missing."""
    low, middle, high = shift["low"], shift["ratio"], shift["high"]
    drawn = None if low is None or middle is None or high is None else bar(axis, low, middle, high)
    q_value = shift["q"]
    return {
        "change": change(middle, fine=fine),
        "interval": interval(low, high, fine=fine) if drawn else "",
        "bar": drawn,
        "certainty": "" if q_value is None else "q < 0.001" if q_value < 0.001 else f"q {q_value:.3f}",
    }


def _group(data: ComparisonData, metric: MetricData, states: Mapping[int, str]) -> dict[str, Any]:
    """Return one metric: the base first, then the candidates and controls on one axis."""
    cells = metric["cells"]
    margin = max((cell["margin"] for cell in cells), default=0.0)
    floor = max((cell["floor"] for cell in cells), default=0.0)
    axis, fine = _axis(cells, margin), is_fine(data)
    return {
        "metric": metric["name"],
        "better": DIRECTIONS.get(metric["better"], ""),
        "primary": metric["primary"],
        "margin": change(1 + margin).lstrip("+"),
        "floor": change(1 + floor).lstrip("+") if floor else "",
        "alarms": _alarms(metric),
        "ends": [change(end) for end in axis.ends],
        "base": {
            "variant": data["base"]["name"],
            "value": quantity(metric["base_median"], metric["unit"]),
            "boots": next(
                (row["boots"] for row in metric["spreads"] if row["variant"] == data["base"]["name"]), 0
            ),
        },
        "lines": [
            drawn_shift(axis, cell, fine=fine)
            | {
                "cell": cell,
                "value": quantity(cell["median"], metric["unit"]),
                "shown": shown_verdict(cell["verdict"], cell["role"]),
                "control": CONTROLS[cell["role"]].description if cell["role"] in CONTROLS else "",
                "medians": prose(own_medians(cell, shown_base=metric["base_median"], fine=fine)),
                "triaged": states.get(cell["id"], ""),
            }
            for cell in cells
        ],
    }


def _alarms(metric: MetricData) -> str:
    """Return how far this metric can be trusted here: the share of A/A comparisons that called a change."""
    seen = metric["alarms"]
    return f"control: {seen['called']} of {seen['compared']} wrongly flagged" if seen["compared"] else ""


def _proof(item: ShownBoot) -> dict[str, Any] | None:
    """Return a verified run's evidence for its claim; None if the workload counts nothing."""
    statement, listing = item.extras.get("verified"), item.extras.get("bpftrace")
    if not isinstance(statement, str):
        return None
    return {
        "variant": item.variant,
        "run_id": item.run,
        "statement": statement,
        "holds": item.extras.get("verified_holds") is True,
        "listing": listing if isinstance(listing, str) else "",
    }


def _plots(items: tuple[ShownBoot, ...]) -> tuple[dict[str, Any], ...]:
    """The latency histograms of the median boots, if the workload keeps any."""
    kept = [(item.variant, item.extras["histogram"]) for item in items if is_histogram(item.extras)]
    counts = {variant: _counts(latencies["counts"]) for variant, latencies in kept}
    unit = next((str(latencies.get("unit", "")) for _, latencies in kept), "")
    return (histogram(counts, f"latency, {unit}"),) if any(counts.values()) else ()


def _counts(counts: Mapping[str, Any]) -> dict[float, int]:
    try:
        return {float(value): int(amount) for value, amount in counts.items() if int(amount) > 0}
    except (TypeError, ValueError):
        return {}
