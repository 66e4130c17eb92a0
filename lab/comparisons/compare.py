# SPDX-License-Identifier: GPL-2.0-or-later
"""Compare every variant with the base, in every metric of every case, and store the comparisons.

Only measured runs that finished inside their validity gates count, without their warm-up. The base
boots twice in each block; both of its boots are base data, except where they are compared with
each other. docs/verdicts.md has the rule in words.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import transaction

from lab.comparisons.triage import note_decisions
from lab.from_attributes import attributes
from lab.models import BasePoint, Case, Comparison, Effect, Experiment, Run, Sample, Variant
from lab.models.states import Purpose, Role, RunState, VariantState
from lab.statistics.arms import Arm, Shift
from lab.statistics.estimate import estimate
from lab.statistics.exact_counts import disagreement, exact_shift
from lab.statistics.family_interval import adjust, allow_for_family
from lab.statistics.iterations import trend_left
from lab.statistics.sequential import ALPHA, level_at
from lab.statistics.spread import SpreadRatio, compare_spread, spread_note
from lab.statistics.switch_effects import effects
from lab.statistics.verdict import judge
from lab.trends.base_points import base_point, store_base_points

# By variant: the boots of one metric of one case.
Arms = Mapping[int, Arm]
# The columns of a comparison that are copied from its shift.
_OF_SHIFT = ("boots", "base_median", "median", "ratio", "low", "high", "p_value", "effect", "method")
# A remaining trend within boots is reported if chance alone would show it less often than this.
TREND_LEVEL = 0.01


@dataclass
class _Shifted:
    """One comparison on its way to a verdict. judged: the shift without the floor, which the rule applies itself.

    at_level: estimates `shift` with an interval of another `level`. q_value: the p value adjusted for all `metrics`.
    """

    case: Case
    variant: Variant
    metric: dict[str, Any]
    shift: Shift
    judged: Shift
    nominal: float
    floor: float
    at_level: Callable[..., Shift]
    spread: SpreadRatio | None = None
    notes: list[str] = field(default_factory=list)
    q_value: float | None = None
    metrics: int = 0


@dataclass(frozen=True, slots=True)
class Compared:
    """Results of comparing the boots of an experiment, not stored yet."""

    comparisons: list[Comparison]
    effects: list[Effect]
    points: list[BasePoint]


def compare_experiment(experiment_id: int) -> int:
    """Compute all comparisons again and store them; returns how many. Doing it twice changes nothing."""
    compared = compute_comparisons(experiment_id)
    store_comparisons(experiment_id, compared)
    return len(compared.comparisons)


def compute_comparisons(experiment_id: int) -> Compared:
    """Compute all comparisons and store nothing; takes some 0.04 CPU seconds for a variant and metric."""
    experiment = Experiment.objects.get(pk=experiment_id)
    variants = list(experiment.variants.filter(state=VariantState.READY))
    shifted: list[_Shifted] = []
    found_effects: list[Effect] = []
    refused: list[Comparison] = []
    points: list[BasePoint] = []
    base = next((variant for variant in variants if variant.role == Role.BASE), None)
    if base is not None:
        for case in experiment.cases.all():
            if reason := mixed_machines(case):
                refused += _refused(case, variants, reason)
                continue
            by_metric = _arms(case, variants)
            for metric in case.metrics:
                arms = by_metric.get(metric["name"])
                if arms is not None:
                    shifted += _shifts(experiment, case, metric, variants, arms)
                    found_effects += _effects(experiment, case, metric, variants, arms)
                    points += base_point(case, metric, base, _ground(variants, arms))
    _adjust(shifted)
    lacking = _is_partial(experiment)
    comparisons = [_comparison(comparison, lacking=lacking) for comparison in shifted] + refused
    adjusted = adjust([effect.p_value for effect in found_effects])
    for effect, q_value in zip(found_effects, adjusted, strict=True):
        effect.q_value = q_value
    return Compared(comparisons, found_effects, points)


def store_comparisons(experiment_id: int, compared: Compared) -> None:
    """Replace the stored comparisons of an experiment. Two processes must not do it at the same time.

    It is one transaction: a page that reads meanwhile sees the old or the new.
    """
    with transaction.atomic():
        note_decisions(experiment_id, compared.comparisons)
        Comparison.objects.filter(experiment=experiment_id).delete()
        Comparison.objects.bulk_create(compared.comparisons)
        Effect.objects.filter(experiment=experiment_id).delete()
        Effect.objects.bulk_create(compared.effects)
        store_base_points(experiment_id, compared.points)


def mixed_machines(case: Case) -> str:
    """Return why a case's boots cannot be compared: they were replayed on different machine models; "" if they can be."""
    boots = Run.objects.filter(case=case, purpose=Purpose.MEASURED, state=RunState.DONE, invalid=[])
    keys = set(boots.values_list("extras__contention__machine_key", flat=True)) - {None}
    if len(keys) < 2:
        return ""
    return (
        f"boots of this case were replayed on {len(keys)} different machine models, and are not compared: "
        "submit it again to workers of one version"
    )


def _refused(case: Case, variants: list[Variant], reason: str) -> list[Comparison]:
    """Return a row without a ratio for each variant and metric, with the reason."""
    return [
        Comparison(
            experiment_id=case.experiment_id,
            case=case,
            variant=variant,
            boots=0,
            verdict="inconclusive",
            reason=reason,
            notes=[reason],
            **_of_metric(metric),
        )
        for variant in variants
        if variant.role != Role.BASE
        for metric in case.metrics
    ]


def _of_metric(metric: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a comparison that say what its metric is."""
    return {"metric": metric["name"]} | {
        name: metric[name] for name in ("unit", "better", "primary", "margin")
    }


def _arms(case: Case, variants: list[Variant]) -> dict[str, dict[int, Arm]]:
    """Return by metric every variant's boots, by block: their iterations without warm-up."""
    samples = Sample.objects.filter(
        run__case=case,
        run__purpose=Purpose.MEASURED,
        run__state=RunState.DONE,
        run__invalid=[],
        warmup=False,
    )
    boots: dict[tuple[str, int], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    rows = samples.order_by("run__block", "run__retake", "iteration", "pk")
    for metric, variant_id, block, value in rows.values_list(
        "metric", "run__variant_id", "run__block", "value"
    ):
        boots[metric, variant_id][block].append(value)
    return {
        metric: {variant.pk: _arm(variant, boots[metric, variant.pk]) for variant in variants}
        for metric in {metric for metric, _ in boots}
    }


def _arm(variant: Variant, boots: Mapping[int, list[float]]) -> Arm:
    return Arm(variant.name, {block: tuple(values) for block, values in boots.items()})


def _ground(variants: list[Variant], arms: Arms) -> list[Arm]:
    """Return the boots of the base and of its A/A twin."""
    return [arms[variant.pk] for variant in variants if variant.role in {Role.BASE, Role.AA}]


def _shifts(
    experiment: Experiment, case: Case, metric: dict[str, Any], variants: list[Variant], arms: Arms
) -> list[_Shifted]:
    """Compare every variant with the base; the placebo's own shift is the candidates' floor."""
    ground = {role: [arms[v.pk] for v in variants if v.role == role] for role in Role}
    base = [*ground[Role.BASE], *ground[Role.AA]]
    comparisons = []
    for variant in variants:
        if variant.role == Role.BASE:
            continue
        own = ground[Role.BASE] if variant.role == Role.AA else base
        others = [arm for pk, arm in arms.items() if pk != variant.pk and arm not in own]
        candidate, floor = arms[variant.pk], _own_floor(experiment, metric)
        nominal = _nominal(experiment, candidate)
        if experiment.clock == "instructions":
            at_level = partial(exact_shift, own, candidate, floor=floor)
            shift, judged = at_level(), exact_shift(own, candidate, floor=0.0)
        else:
            at_level = partial(estimate, own, candidate, others, looks=experiment.sequential)
            shift = judged = at_level(level=1 - nominal)
        notes = _notes(experiment, case, metric, [*own, candidate])
        # Boots that should agree to the last instruction have no spread; their disagreement is a note of its own.
        spread = None if experiment.clock == "instructions" else compare_spread(own, candidate)
        comparisons.append(
            _Shifted(case, variant, metric, shift, judged, nominal, floor, at_level, spread, notes)
        )
    layout = max(
        (_spread(comparison) for comparison in comparisons if comparison.variant.role == Role.PLACEBO),
        default=0.0,
    )
    for comparison in comparisons:
        if comparison.variant.role == Role.CANDIDATE:
            comparison.floor = max(comparison.floor, layout)
    return comparisons


def _nominal(experiment: Experiment, candidate: Arm) -> float:
    """Return the p value at which a shift is called: in a sequential experiment, the level of the arm's last look."""
    return level_at(len(candidate.boots)) if experiment.sequential else ALPHA


def _own_floor(experiment: Experiment, metric: dict[str, Any]) -> float:
    """Return the floor without a placebo: for exact counts the metric's margin, else 0."""
    return float(metric["margin"]) if experiment.clock == "instructions" else 0.0


def _spread(placebo: _Shifted) -> float:
    """Return how far code layout alone moved the metric, as a fraction."""
    ratio = placebo.shift.ratio
    return max(ratio, 1 / ratio) - 1 if ratio else 0.0


def _notes(experiment: Experiment, case: Case, metric: dict[str, Any], sides: list[Arm]) -> list[str]:
    """Return warnings for readers: boots that should agree and do not, unfinished warm-up."""
    if experiment.clock == "instructions":
        said = filter(None, (disagreement(arm) for arm in sides))
        return [f"{case.workload} is not deterministic here: {metric['name']}, {warning}" for warning in said]
    trend = trend_left(list(sides[-1].boots.values()), alpha=TREND_LEVEL)
    if trend is None or trend.p_value >= TREND_LEVEL:
        return []
    more = (
        f"raise measure.warmup by {trend.more_warmups}" if trend.more_warmups else "boots drift to their end"
    )
    return [f"{metric['name']} still moves by {trend.total:+.1%} over a boot's iterations: {more}"]


def _effects(
    experiment: Experiment, case: Case, metric: dict[str, Any], variants: list[Variant], arms: Arms
) -> list[Effect]:
    """Return the effect of each switch and each pair over all combinations; none for a single switch."""
    names = list(experiment.switches.values_list("name", flat=True))
    if len(names) < 2:
        return []
    by_switches = {tuple(v.switches): arms[v.pk] for v in variants if v.role in {Role.BASE, Role.CANDIDATE}}
    controls = [arms[v.pk] for v in variants if v.role == Role.AA]
    floor = 1 + _own_floor(experiment, metric)
    return [
        Effect(
            experiment=experiment,
            case=case,
            metric=metric["name"],
            switches=list(effect.switches),
            ratio=effect.ratio,
            low=None if effect.low is None else effect.low / floor,
            high=None if effect.high is None else effect.high * floor,
            p_value=effect.p_value,
            reason=effect.why,
        )
        for effect in effects(by_switches, names, controls=controls)
    ]


def _adjust(shifted: list[_Shifted]) -> None:
    """Adjust each variant's p values for all metrics of all cases, which are read together."""
    families: dict[int, list[_Shifted]] = defaultdict(list)
    for comparison in shifted:
        families[comparison.variant.pk].append(comparison)
    for family in families.values():
        _note_spreads(family)
        adjusted = adjust([comparison.shift.p_value for comparison in family])
        for comparison, q_value in zip(family, adjusted, strict=True):
            comparison.q_value, comparison.metrics = q_value, len(adjusted) - adjusted.count(None)


def _note_spreads(family: list[_Shifted]) -> None:
    """Add a note to each metric whose spread changed significantly, over all metrics of one variant."""
    spreads = [(comparison, comparison.spread) for comparison in family if comparison.spread is not None]
    adjusted = adjust([spread.p_value for _, spread in spreads])
    for (comparison, spread), q_value in zip(spreads, adjusted, strict=True):
        line = spread_note(comparison.metric["name"], comparison.variant.name, spread, q_value)
        comparison.notes += [line] if line else []


def _is_partial(experiment: Experiment) -> bool:
    """Return whether requested boots are missing even after retakes."""
    measured = Run.objects.filter(experiment=experiment, purpose=Purpose.MEASURED)
    counted = measured.filter(state=RunState.DONE, invalid=[]).values_list("variant", "case", "block")
    asked = measured.values_list("variant", "case", "block")
    return set(asked) != set(counted)


def _comparison(comparison: _Shifted, *, lacking: bool) -> Comparison:
    """Return the row of one comparison. lacking: requested boots are missing."""
    metric = comparison.metric
    verdict = judge(
        comparison.judged,
        better=metric["better"],
        margin=metric["margin"],
        floor=comparison.floor,
        q_value=comparison.q_value,
        level_used=comparison.nominal,
        unit=metric["unit"],
    )
    verdict, shift = allow_for_family(
        verdict,
        comparison.shift,
        comparison.q_value,
        metrics=comparison.metrics,
        at_level=comparison.at_level,
        unit=metric["unit"],
    )
    return Comparison(
        experiment_id=comparison.case.experiment_id,
        case=comparison.case,
        variant=comparison.variant,
        **_of_metric(metric),
        **attributes(shift, _OF_SHIFT),
        q_value=comparison.q_value,
        floor=comparison.floor,
        partial=lacking,
        verdict=verdict.word,
        boots_needed=verdict.boots_needed,
        reason=verdict.reason,
        notes=comparison.notes,
    )
