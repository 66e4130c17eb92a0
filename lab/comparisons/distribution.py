# SPDX-License-Identifier: GPL-2.0-or-later
"""Read how numbers are spread: every boot of every metric, and the tails of latency histograms."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from lab.experiments.page import variants_of
from lab.models import Case, Experiment, Run, Sample
from lab.models.states import Purpose, Role, RunState, VariantState
from lab.statistics.quantiles import Middle, Quantile, histogram_quantile, middle

TAILS = (0.99, 0.999, 0.9999)


@dataclass(frozen=True, slots=True)
class BootSpread:
    """One boot that counts: its number and the iterations behind it, without warm-up."""

    run_id: int
    block: int
    number: float
    iterations: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class VariantSpread:
    """The boots of one variant, by block. middle: the median of all boots that count as its own; counted: their number.

    Boots of the A/A twin also count as the base's where another variant is compared with both, as in compare.py.
    """

    variant: str
    control: bool
    boots: tuple[BootSpread, ...]
    middle: Middle
    counted: int


@dataclass(frozen=True, slots=True)
class MetricSpread:
    """One metric over all variants that have boots."""

    metric: str
    unit: str
    primary: bool
    variants: tuple[VariantSpread, ...]


@dataclass(frozen=True, slots=True)
class Tail:
    """The tail quantiles of one variant's pooled histograms, in the order of TAILS."""

    variant: str
    boots: int
    samples: int
    quantiles: tuple[Quantile, ...]


@dataclass(frozen=True, slots=True)
class CaseSpread:
    """One case: its metrics, primary ones first, and its tails where the workload keeps histograms."""

    case_id: int
    metrics: tuple[MetricSpread, ...]
    tails: tuple[Tail, ...]
    unit: str


def boots_of(row: Experiment) -> list[Run]:
    """Return the boots of an experiment in order, with their variants and without what only the page of a boot shows."""
    variants = {variant.pk: variant for variant in variants_of(row)}
    boots = list(
        row.runs.defer("environment", "counters", "steps", "unavailable", "findings").order_by("position")
    )
    for run in boots:
        run.variant = variants[run.variant_id]
    return boots


def counts(run: Run) -> bool:
    """Return whether the numbers of a boot count."""
    return run.state == RunState.DONE and not run.invalid


def case_spreads(row: Experiment, boots: Iterable[Run]) -> dict[int, CaseSpread]:
    """Return by case how boots of an experiment are spread."""
    by_case: dict[int, list[Run]] = defaultdict(list)
    for run in sorted(boots, key=lambda run: (run.variant.position, run.block, run.position)):
        if run.purpose == Purpose.MEASURED and counts(run):
            by_case[run.case_id].append(run)
    both = any(
        variant.state == VariantState.READY and variant.role not in (Role.BASE, Role.AA)
        for variant in variants_of(row)
    )
    return {case.pk: _case(case, by_case[case.pk], both=both) for case in row.cases.all()}


def _case(case: Case, runs: list[Run], *, both: bool) -> CaseSpread:
    values = _values(runs)
    metrics = []
    for metric in sorted(case.metrics, key=lambda metric: not metric["primary"]):
        variants = _variants(runs, values.get(metric["name"], {}), both=both)
        if variants:
            metrics.append(MetricSpread(metric["name"], metric["unit"], metric["primary"], variants))
    kept = [(run, run.extras["histogram"]) for run in runs if is_histogram(run.extras)]
    unit = next((str(histogram.get("unit", "")) for _, histogram in kept), "")
    return CaseSpread(case.pk, tuple(metrics), _tails(kept), unit)


def _values(runs: list[Run]) -> dict[str, dict[int, list[float]]]:
    """Return by metric and run the iterations in order."""
    by_metric: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    rows = Sample.objects.filter(run__in=[run.pk for run in runs], warmup=False).order_by(
        "run_id", "iteration"
    )
    for metric, run, value in rows.values_list("metric", "run_id", "value"):
        by_metric[metric][run].append(value)
    return by_metric


def _variants(runs: list[Run], values: Mapping[int, list[float]], *, both: bool) -> tuple[VariantSpread, ...]:
    """Return each variant's boots. both: whether the base's median is over its own boots and its second ones."""
    boots: dict[int, list[BootSpread]] = defaultdict(list)
    variants = {run.variant_id: run.variant for run in runs}
    for run in runs:
        if iterations := values.get(run.pk):
            boots[run.variant_id].append(BootSpread(run.pk, run.block, median(iterations), tuple(iterations)))
    again = [boot for key, own in boots.items() if both and variants[key].role == Role.AA for boot in own]
    spreads = []
    for key, own in boots.items():
        counted = [boot.number for boot in (own + again if variants[key].role == Role.BASE else own)]
        control = variants[key].role in {Role.AA, Role.PLACEBO}
        spreads.append(VariantSpread(variants[key].name, control, tuple(own), middle(counted), len(counted)))
    return tuple(spreads)


def is_histogram(extras: Mapping[str, Any]) -> bool:
    """Return whether a workload kept how often it saw each value."""
    histogram = extras.get("histogram")
    return isinstance(histogram, Mapping) and isinstance(histogram.get("counts"), Mapping)


def _tails(kept: list[tuple[Run, Mapping[str, Any]]]) -> tuple[Tail, ...]:
    by_variant: dict[str, list[tuple[dict[float, int], int]]] = defaultdict(list)
    for run, histogram in kept:
        try:
            counts = {float(value): int(n) for value, n in histogram["counts"].items() if int(n) > 0}
            by_variant[run.variant.name].append((counts, int(histogram.get("overflow", 0))))
        except (TypeError, ValueError):
            # A workload of another lab may keep something else under this name: no histogram then.
            continue
    return tuple(
        Tail(
            variant,
            len(boots),
            sum(sum(counts.values()) + lost for counts, lost in boots),
            tuple(
                histogram_quantile([counts for counts, _ in boots], at, overflow=[lost for _, lost in boots])
                for at in TAILS
            ),
        )
        for variant, boots in by_variant.items()
    )
