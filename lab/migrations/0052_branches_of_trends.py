# SPDX-License-Identifier: GPL-2.0-or-later
"""A trend is of one branch: points of standing experiments on other branches than the default one move to trends of their own."""

import hashlib
import json

from django.db import migrations, models, transaction
from django.db.models import F

BATCH = 200
COPIED = ("tree_id", "workload", "preset", "params", "target", "clock", "config", "metric", "unit", "better", "margin", "primary")


def trend_key(case, metric, config, branch):
    experiment = case.experiment
    identity = [
        experiment.tree.name,
        case.workload,
        case.params,
        experiment.target.group or experiment.target.name,
        experiment.clock,
        config,
        metric,
        branch,
    ]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def move_to_branches(apps, schema_editor):
    """Standing experiments name their branch. Of revisions that were submitted by hand the branch is not known: their points stay."""
    Experiment, Standing = (apps.get_model("lab", name) for name in ("Experiment", "Standing"))
    for standing in Standing.objects.select_related("tree").exclude(branch=""):
        default = standing.tree.default_revision
        if not default or standing.branch == default:
            continue
        left = Experiment.objects.filter(standing=standing, base_branch="").order_by("pk")
        while numbers := list(left.values_list("pk", flat=True)[:BATCH]):
            with transaction.atomic():
                Experiment.objects.filter(pk__in=numbers).update(base_branch=standing.branch)
                for number in numbers:
                    _move_points(apps, number, standing)


move_to_branches.in_batches = True


def _move_points(apps, number, standing):
    BasePoint = apps.get_model("lab", "BasePoint")
    points = BasePoint.objects.filter(case__experiment=number)
    for point in points.select_related("case__experiment__tree", "case__experiment__target"):
        old, new = point.trend, trend_key(point.case, point.metric, point.config, standing.branch)
        BasePoint.objects.filter(pk=point.pk).update(trend=new)
        _move_words(apps, standing, point.commit, old, new)
        _move_summary(apps, old, new, standing.branch)


def _move_words(apps, standing, commit, old, new):
    """Alerts follow their standing experiment; notes and decisions follow once the old trend no longer has the revision."""
    names = ("Alert", "BasePoint", "Note", "StepDecision")
    Alert, BasePoint, Note, StepDecision = (apps.get_model("lab", name) for name in names)
    own = Alert.objects.filter(standing=standing, commit=commit)
    if not own.filter(trend=new).exists():
        own.filter(trend=old).update(trend=new)
    if not BasePoint.objects.filter(trend=old, commit=commit).exists():
        StepDecision.objects.filter(trend=old, commit=commit).update(trend=new)
        Note.objects.filter(trend=old, revision__tree=standing.tree_id, revision__commit=commit).update(trend=new)


def _move_summary(apps, old, new, branch):
    Trend = apps.get_model("lab", "Trend")
    if not Trend.objects.filter(key=new).exists():
        row = Trend.objects.filter(key=old).values(*COPIED, "latest_case").first()
        if row is not None:
            Trend.objects.create(key=new, branch=branch, trunk=old, **row)
    Trend.objects.filter(key__in=(old, new)).update(stale=True, changes=F("changes") + 1)


class Migration(migrations.Migration):

    # A batch at a time: a fleet goes on meanwhile.
    atomic = False

    dependencies = [
        ('lab', '0051_refused_revisions'),
    ]

    operations = [
        migrations.AddField(
            model_name='experiment',
            name='base_branch',
            field=models.CharField(blank=True, db_default='', default='', max_length=200),
        ),
        migrations.AddField(
            model_name='experiment',
            name='base_fork',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='trend',
            name='branch',
            field=models.CharField(blank=True, db_default='', default='', max_length=200),
        ),
        migrations.AddField(
            model_name='trend',
            name='trunk',
            field=models.CharField(blank=True, db_default='', default='', max_length=12),
        ),
        migrations.AddField(
            model_name='trend',
            name='fork',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='revision',
            name='branch',
            field=models.CharField(blank=True, max_length=200, null=True),
        ),
        migrations.AddIndex(
            model_name='trend',
            index=models.Index(fields=['trunk'], name='trend_branches'),
        ),
        migrations.RunPython(move_to_branches, migrations.RunPython.noop),
    ]
