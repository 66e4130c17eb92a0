# SPDX-License-Identifier: GPL-2.0-or-later
"""Comparisons of an experiment: every variant against the base, every metric of every case.

Only measured runs that finished count, without their warm-up. Boots are paired within their
block; a block in which one side has no finished boot is left out for this variant alone.
"""

from collections import defaultdict
from typing import Any

from django.db import transaction

from lab.analysis.bootstrap import METHOD, boot_median, compare_boots
from lab.analysis.verdict import judge
from lab.models import Case, Comparison, Experiment, Sample, Variant
from lab.states import Purpose, RunState

# By variant, metric and block, the median of a boot's iterations.
Boots = dict[tuple[int, str], dict[int, float]]


def compare_experiment(experiment_id: int) -> int:
    """Compute all comparisons anew and store them; returns how many. Doing it twice changes nothing."""
    experiment = Experiment.objects.get(pk=experiment_id)
    variants = list(experiment.variants.all())
    base = next(variant for variant in variants if not variant.switches)
    found = []
    for case in experiment.cases.all():
        boots = _boots(case)
        for variant in variants:
            if variant.switches and any(key[0] == variant.pk for key in boots):
                found += _compare(case, boots, (base, variant), experiment.seed)
    _store(experiment_id, found)
    return len(found)


def _boots(case: Case) -> Boots:
    values: dict[tuple[int, str, int], list[float]] = defaultdict(list)
    samples = Sample.objects.filter(
        run__case=case, run__purpose=Purpose.MEASURED, run__state=RunState.DONE, warmup=False
    )
    for variant_id, metric, block, value in samples.values_list(
        "run__variant_id", "metric", "run__block", "value"
    ):
        values[variant_id, metric, block].append(value)
    boots: Boots = defaultdict(dict)
    for (variant_id, metric, block), iterations in values.items():
        boots[variant_id, metric][block] = boot_median(iterations)
    return dict(boots)


def _compare(case: Case, boots: Boots, sides: tuple[Variant, Variant], seed: int) -> list[Comparison]:
    base_variant, variant = sides
    found = []
    for metric in case.metrics:
        base = boots.get((base_variant.pk, metric["name"]), {})
        candidate = boots.get((variant.pk, metric["name"]), {})
        if not candidate:
            continue
        blocks = sorted(base.keys() & candidate.keys())
        found.append(
            _comparison(
                case, variant, metric, [base[b] for b in blocks], [candidate[b] for b in blocks], seed
            )
        )
    return found


def _comparison(
    case: Case,
    variant: Variant,
    metric: dict[str, Any],
    base: list[float],
    candidate: list[float],
    seed: int,
) -> Comparison:
    shift = compare_boots(base, candidate, seed=seed)
    verdict = judge(shift, better=metric["better"], margin=metric["margin"])
    return Comparison(
        experiment_id=case.experiment_id,
        case=case,
        variant=variant,
        metric=metric["name"],
        unit=metric["unit"],
        better=metric["better"],
        primary=metric["primary"],
        boots=shift.boots,
        base_median=shift.base_median,
        median=shift.median,
        ratio=shift.ratio,
        low=shift.low,
        high=shift.high,
        verdict=verdict.word,
        boots_needed=verdict.boots_needed,
        reason=verdict.reason,
        margin=metric["margin"],
        method=METHOD,
    )


def _store(experiment_id: int, found: list[Comparison]) -> None:
    """Replace what is stored, in one step: a page that reads meanwhile sees the old or the new."""
    with transaction.atomic():
        Comparison.objects.filter(experiment=experiment_id).delete()
        Comparison.objects.bulk_create(found)
