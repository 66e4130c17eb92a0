# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the stored comparison of an experiment into its one shape, lab/comparisons/shape.py.

The page, the API, labctl, the reply and every export are written from this shape. Only the page also draws boots.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, prefetch_related_objects

from lab.comparisons.conclusion.collect import conclusion_data
from lab.comparisons.described import (
    base_data,
    environment_data,
    experiment_data,
    switches_data,
    variants_data,
)
from lab.comparisons.distribution import CaseSpread, MetricSpread, boots_of, case_spreads, counts
from lab.comparisons.model_and_machine import models_and_machines
from lab.comparisons.shape import (
    FORMAT,
    AlarmsData,
    CaseData,
    CellData,
    ComparisonData,
    EffectData,
    FailureData,
    InvalidData,
    MetricData,
    ModelAndMachineData,
    ProofData,
    SpreadData,
)
from lab.experiments.counts import count_experiments, exit_code
from lab.experiments.page import get_experiment, variants_of
from lab.experiments.shown_description import case_titles
from lab.figures import medians_ratio
from lab.from_attributes import attributes, from_attributes
from lab.models import Case, Comparison, Effect, Experiment, Run, Variant
from lab.models.states import Purpose, Role, RunState, VariantState
from lab.statistics.verdict_words import CHANGES


@dataclass(frozen=True, slots=True)
class ShownBoot:
    """A boot that represents its variant, with the workload's own line and the workload's other data."""

    run: int
    variant: str
    line: str
    extras: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CaseBoots:
    """The boots of a case. medians: of each variant the median boot by the primary metric; verified: those that counted calls."""

    medians: tuple[ShownBoot, ...]
    verified: tuple[ShownBoot, ...]
    spread: CaseSpread


@dataclass(frozen=True, slots=True)
class ComparisonPage:
    """A comparison, and by case the boots that only its page draws."""

    data: ComparisonData
    boots: Mapping[int, CaseBoots]


def comparison_data(experiment_id: int, *, link: str = "") -> ComparisonData:
    """Return the comparison of an experiment as plain data.

    link: the lab's own address, `https://lab.example`, for the permalink; a path alone without it. Raises UnknownRow.
    """
    return comparison_page(experiment_id, link=link).data


def comparison_page(experiment_id: int, *, link: str = "") -> ComparisonPage:
    """Return the comparison of an experiment with the boots behind it. Raises UnknownRow."""
    row = get_experiment(experiment_id)
    counted = count_experiments([row.pk])[row.pk]
    runs: dict[int, list[Run]] = defaultdict(list)
    prefetch_related_objects([row], "cases")
    boots_in_order = boots_of(row)
    for run in boots_in_order:
        runs[run.case_id].append(run)
    spreads = case_spreads(row, boots_in_order)
    cases = list(row.cases.all())
    titles = case_titles(cases)
    boots = {case.pk: _boots(runs[case.pk], spreads[case.pk]) for case in cases}
    rows, effects = _compared(row), list(row.effects.order_by("pk"))
    beside = models_and_machines(row)
    data = ComparisonData(
        format=FORMAT,
        experiment=experiment_data(row),
        base=base_data(row),
        environment=environment_data(row),
        switches=switches_data(row),
        variants=variants_data(row),
        cases=[
            _case(
                case,
                titles[case.pk],
                runs[case.pk],
                boots[case.pk],
                _metrics(case, rows, effects, spreads[case.pk]),
                beside.get(case.pk, []),
            )
            for case in cases
        ],
        conclusion=conclusion_data(row),
        verdicts=counted.verdicts,
        exit_code=exit_code(row.state, counted),
        permalink=f"{link.rstrip('/')}/experiments/{experiment_id}/comparison/",
    )
    return ComparisonPage(data, boots)


def _compared(row: Experiment) -> list[Comparison]:
    """Return the comparisons of an experiment with their variants, without those of pruned ones."""
    variants = {variant.pk: variant for variant in variants_of(row)}
    rows = list(row.comparisons.order_by("pk"))
    for comparison in rows:
        comparison.variant = variants[comparison.variant_id]
    return [comparison for comparison in rows if comparison.variant.state != VariantState.PRUNED]


def _boots(runs: Sequence[Run], spread: CaseSpread) -> CaseBoots:
    measured = [run for run in runs if counts(run) and run.purpose == Purpose.MEASURED]
    verified = [run for run in runs if run.state == RunState.DONE and run.purpose == Purpose.VERIFIED]
    primary = next((metric for metric in spread.metrics if metric.primary), None)
    return CaseBoots(
        medians=tuple(_shown(run) for run in _median_boots(measured, primary)),
        verified=tuple(_shown(run) for run in verified),
        spread=spread,
    )


def _shown(run: Run) -> ShownBoot:
    return ShownBoot(run.pk, run.variant.name, run.line, run.extras)


def _median_boots(runs: Sequence[Run], primary: MetricSpread | None) -> Iterable[Run]:
    """Yield the median boot of each variant by the primary metric, in the order of variants."""
    variants = primary.variants if primary else ()
    numbers = {boot.run_id: boot.number for variant in variants for boot in variant.boots}
    by_variant: dict[int, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.variant.position):
        by_variant[run.variant_id].append(run)
    for own in by_variant.values():
        ranked = sorted(own, key=lambda run: (numbers.get(run.pk, 0.0), run.position))
        yield ranked[(len(ranked) - 1) // 2]


def _case(
    case: Case,
    title: str,
    runs: Sequence[Run],
    boots: CaseBoots,
    metrics: list[MetricData],
    beside: list[ModelAndMachineData],
) -> CaseData:
    return CaseData(
        id=case.pk,
        workload=case.workload,
        preset=case.preset,
        title=title,
        params=case.params,
        metrics=metrics,
        lines=[
            {"run": boot.run, "variant": boot.variant, "line": boot.line}
            for boot in boots.medians
            if boot.line
        ],
        proofs=[_proof(boot) for boot in boots.verified if "verified" in boot.extras],
        failures=_failures(runs),
        invalid=[invalid_data(run) for run in runs if run.state == RunState.DONE and run.invalid],
        models_and_machines=beside,
    )


def _proof(boot: ShownBoot) -> ProofData:
    holds = boot.extras.get("verified_holds")
    return ProofData(
        run=boot.run,
        variant=boot.variant,
        statement=str(boot.extras["verified"]),
        holds=holds if isinstance(holds, bool) else None,
    )


def _failures(runs: Iterable[Run]) -> list[FailureData]:
    """Return the measured boots that failed, those that ended alike counted together."""
    counted = Counter(
        (run.variant.name, run.outcome, run.blame, run.problem)
        for run in runs
        if run.purpose == Purpose.MEASURED and run.state == RunState.FAILED
    )
    return [
        FailureData(variant=variant, outcome=outcome, blame=blame, problem=problem, boots=boots)
        for (variant, outcome, blame, problem), boots in counted.items()
    ]


def invalid_data(run: Run) -> InvalidData:
    """Return a boot that ran outside its validity gates."""
    return InvalidData(run=run.pk, variant=run.variant.name, block=run.block, reasons=list(run.invalid))


def _metrics(
    case: Case, compared: Iterable[Comparison], effects: Sequence[Effect], spread: CaseSpread
) -> list[MetricData]:
    """Return the metrics of a case, primary ones first, each with its cells in the order of the variants."""
    by_metric: dict[str, list[Comparison]] = defaultdict(list)
    for comparison in sorted(compared, key=lambda comparison: comparison.variant.position):
        if comparison.case_id == case.pk:
            by_metric[comparison.metric].append(comparison)
    alarms = false_alarms(case) if by_metric else {}
    spreads = {metric.metric: metric for metric in spread.metrics}
    metrics = []
    for name, rows in by_metric.items():
        # The base's median is over both of its boots a block, unless the second ones are themselves compared.
        judged = [comparison for comparison in rows if comparison.variant.role != Role.AA] or rows
        metrics.append(
            MetricData(
                name=name,
                unit=rows[0].unit,
                better=rows[0].better,
                primary=rows[0].primary,
                base_median=next(
                    (comparison.base_median for comparison in judged if comparison.base_median is not None),
                    None,
                ),
                alarms=alarms.get(name, AlarmsData(called=0, compared=0)),
                spreads=_spreads(spreads[name]) if name in spreads else [],
                cells=[cell_data(comparison) for comparison in rows],
                effects=[
                    from_attributes(EffectData, effect, switches=list(effect.switches), q=effect.q_value)
                    for effect in effects
                    if effect.case_id == case.pk and effect.metric == name
                ],
            )
        )
    return sorted(metrics, key=lambda metric: not metric["primary"])


def _spreads(spread: MetricSpread) -> list[SpreadData]:
    return [
        from_attributes(
            SpreadData,
            variant.middle,
            variant=variant.variant,
            boots=variant.counted,
            median=variant.middle.value,
        )
        for variant in spread.variants
    ]


def cell_data(row: Comparison) -> CellData:
    """Return one metric of one variant against the base."""
    numbers = attributes(row, ("base_median", "median", "ratio", "low", "high", "effect"))
    numbers |= {"p": row.p_value, "q": row.q_value}
    return from_attributes(
        CellData,
        row,
        variant=row.variant.name,
        role=row.variant.role,
        medians_ratio=medians_ratio(row.base_median, row.median),
        notes=list(row.notes),
        **{name: _finite(value) for name, value in numbers.items()},
    )


def _finite(value: float | None) -> float | None:
    """Return a finite number or None: JSON has neither infinity nor NaN."""
    return value if value is not None and math.isfinite(value) else None


# The A/A record covers this many of a target's experiments.
NEWEST = 100


def false_alarms(case: Case) -> dict[str, AlarmsData]:
    """Return by metric the A/A record of a case's workload over its target's newest experiments, under its clock and model."""
    experiment = case.experiment
    # The newest experiments show the target as it is now, and reading all would take longer each month.
    newest = Experiment.objects.filter(target=experiment.target_id, clock=experiment.clock).order_by("-pk")
    keys = list(newest.values_list("pk", flat=True)[:NEWEST])
    again = list(Variant.objects.filter(experiment__in=keys, role=Role.AA).values_list("pk", flat=True))
    cases = list(
        Case.objects.filter(experiment__in=keys, workload=case.workload).values_list("pk", flat=True)
    )
    judged = Comparison.objects.filter(variant__in=again, case__in=cases, low__isnull=False)
    if experiment.clock == "contention":
        judged = judged.filter(case__params__machine=case.params.get("machine"))
    counted = judged.values("metric").annotate(
        compared=Count("pk"), called=Count("pk", filter=Q(verdict__in=CHANGES))
    )
    return {row["metric"]: AlarmsData(called=row["called"], compared=row["compared"]) for row in counted}
