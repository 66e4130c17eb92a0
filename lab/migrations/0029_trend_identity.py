# SPDX-License-Identifier: GPL-2.0-or-later
"""Trends are made by what their case needs and the kind of machine; points, alerts and notes of before are carried over."""

import hashlib
import json

from django.db import migrations, transaction

BATCH = 200


def config_of(request, workload):
    own = f"workload {workload}"
    fragments = [
        [name, text]
        for name, text in request["fragments"]
        if name == own or not name.startswith("workload ")
    ]
    return hashlib.sha256(json.dumps([fragments, request["cc"]]).encode()).hexdigest()[:8]


def trend_key(case, metric, config):
    experiment = case.experiment
    identity = [
        experiment.tree.name,
        case.workload,
        case.params,
        experiment.target.group or experiment.target.name,
        experiment.clock,
        config,
        metric,
    ]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def carry_over(apps, schema_editor):
    Experiment, BasePoint = (apps.get_model("lab", name) for name in ("Experiment", "BasePoint"))
    numbers = list(
        Experiment.objects.filter(cases__base_points__isnull=False).order_by("pk").values_list("pk", flat=True).distinct()
    )
    moved = {}
    for start in range(0, len(numbers), BATCH):
        with transaction.atomic():
            for number in numbers[start : start + BATCH]:
                _carry_experiment(apps, number, moved)
    with transaction.atomic():
        for old, new in moved.items():
            if not BasePoint.objects.filter(trend=old).exists():
                _carry_words(apps, old, new)


carry_over.in_batches = True


def _carry_experiment(apps, number, moved):
    Variant, BasePoint = (apps.get_model("lab", name) for name in ("Variant", "BasePoint"))
    base = Variant.objects.select_related("build").filter(experiment=number, role="base").first()
    if base is None or base.build is None:
        return
    points = BasePoint.objects.filter(case__experiment=number)
    for point in points.select_related("case__experiment__tree", "case__experiment__target"):
        config = config_of(base.build.request, point.case.workload)
        key = trend_key(point.case, point.metric, config)
        # The latest experiment says where a trend went that several come from.
        moved[point.trend] = key
        BasePoint.objects.filter(pk=point.pk).update(trend=key, config=config)


def _carry_words(apps, old, new):
    """Notes and alerts follow; an alert that the new trend has already, of the same step, stays under the old key."""
    Alert, Note = (apps.get_model("lab", name) for name in ("Alert", "Note"))
    Note.objects.filter(trend=old).update(trend=new)
    for alert in Alert.objects.filter(trend=old):
        if not Alert.objects.filter(standing=alert.standing_id, commit=alert.commit, trend=new).exists():
            Alert.objects.filter(pk=alert.pk).update(trend=new)


class Migration(migrations.Migration):

    # A batch at a time: a fleet goes on meanwhile.
    atomic = False

    dependencies = [
        ('lab', '0028_fetch'),
    ]

    operations = [
        migrations.RunPython(carry_over, migrations.RunPython.noop),
    ]
