# SPDX-License-Identifier: GPL-2.0-or-later
"""What experiments add to trends gets rows of its own; those that are over are noted here."""

import hashlib
import json
from collections import defaultdict
from statistics import median

import django.db.models.deletion
from django.db import migrations, models


def config_of(request):
    return hashlib.sha256(json.dumps([request["fragments"], request["cc"]]).encode()).hexdigest()[:8]


def trend_key(case, metric, config):
    experiment = case.experiment
    identity = [
        experiment.tree.name,
        case.workload,
        case.params,
        experiment.target.name,
        experiment.clock,
        config,
        metric,
    ]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def note_base_points(apps, schema_editor):
    Case, Sample, BasePoint = (apps.get_model("lab", name) for name in ("Case", "Sample", "BasePoint"))
    for case in Case.objects.select_related("experiment__tree", "experiment__target").iterator():
        base = case.experiment.variants.filter(role="base").select_related("build").first()
        if base is None or base.build is None:
            continue
        counted = Sample.objects.filter(
            run__case=case,
            run__variant__role__in=("base", "a/a"),
            run__purpose="measured",
            run__state="done",
            run__invalid=[],
            warmup=False,
        )
        boots = defaultdict(lambda: defaultdict(list))
        for metric, run, value in counted.order_by("run", "iteration").values_list("metric", "run", "value"):
            boots[metric][run].append(value)
        config = config_of(base.build.request)
        BasePoint.objects.bulk_create(
            BasePoint(
                trend=trend_key(case, metric["name"], config),
                case=case,
                metric=metric["name"],
                primary=metric["primary"],
                config=config,
                commit=case.experiment.base_commit,
                boots=[median(values) for values in boots[metric["name"]].values()],
            )
            for metric in case.metrics
            if boots[metric["name"]]
        )


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0006_people_and_profile_kinds'),
    ]

    operations = [
        migrations.CreateModel(
            name='BasePoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('trend', models.CharField(db_index=True, max_length=12)),
                ('metric', models.CharField(max_length=60)),
                ('primary', models.BooleanField(default=False)),
                ('config', models.CharField(max_length=8)),
                ('commit', models.CharField(max_length=64)),
                ('boots', models.JSONField()),
                ('case', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='base_points', to='lab.case')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('case', 'metric'), name='base_point_once')],
            },
        ),
        migrations.RunPython(note_base_points, migrations.RunPython.noop),
    ]
