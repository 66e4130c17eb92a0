# SPDX-License-Identifier: GPL-2.0-or-later
"""What trends and bisections keep."""


import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0003_measurement'),
    ]

    operations = [
        migrations.CreateModel(
            name='Bisection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(db_index=True, max_length=64)),
                ('good_name', models.CharField(max_length=200)),
                ('bad_name', models.CharField(max_length=200)),
                ('line', models.JSONField()),
                ('workload', models.CharField(max_length=100)),
                ('preset', models.CharField(max_length=50)),
                ('params', models.JSONField(default=dict)),
                ('metric', models.CharField(max_length=60)),
                ('clock', models.CharField(max_length=15)),
                ('boots', models.PositiveIntegerField()),
                ('most_boots', models.PositiveIntegerField()),
                ('iterations', models.PositiveIntegerField()),
                ('verdict', models.CharField(max_length=15)),
                ('state', models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('failed', 'Failed')], default='running', max_length=10)),
                ('answer', models.CharField(blank=True, choices=[('commit', 'Commit'), ('range', 'Range'), ('no-step', 'No Step'), ('untold', 'Untold')], default='', max_length=10)),
                ('suspects', models.JSONField(default=list)),
                ('problem', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('target', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='lab.target')),
                ('tree', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='lab.tree')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='BisectionStep',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('revision', models.PositiveIntegerField()),
                ('boots', models.PositiveIntegerField()),
                ('outcome', models.CharField(blank=True, choices=[('good', 'Good'), ('bad', 'Bad'), ('skipped', 'Skipped'), ('ambiguous', 'Ambiguous'), ('again', 'Again'), ('fault', 'Fault')], default='', max_length=10)),
                ('verdict', models.CharField(blank=True, default='', max_length=15)),
                ('ratio', models.FloatField(blank=True, null=True)),
                ('low', models.FloatField(blank=True, null=True)),
                ('high', models.FloatField(blank=True, null=True)),
                ('reason', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('bisection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='lab.bisection')),
                ('experiment', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to='lab.experiment')),
            ],
            options={
                'ordering': ('number',),
                'constraints': [models.UniqueConstraint(fields=('bisection', 'number'), name='bisection_step_once')],
            },
        ),
        migrations.CreateModel(
            name='Revision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('commit', models.CharField(max_length=64)),
                ('position', models.PositiveIntegerField()),
                ('subject', models.CharField(max_length=500)),
                ('author', models.CharField(max_length=300)),
                ('date', models.CharField(blank=True, default='', max_length=40)),
                ('tree', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='lab.tree')),
            ],
            options={
                'ordering': ('position', 'commit'),
                'indexes': [models.Index(fields=['tree', 'position'], name='revision_line')],
                'constraints': [models.UniqueConstraint(fields=('tree', 'commit'), name='revision_once')],
            },
        ),
    ]
