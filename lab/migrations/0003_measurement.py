# SPDX-License-Identifier: GPL-2.0-or-later
"""What a trustworthy comparison keeps: the clock, controls, retakes, p values, effects."""

import django.db.models.deletion
from django.db import migrations, models


def name_the_bases(apps, schema_editor):
    apps.get_model("lab", "Variant").objects.filter(position=0).update(role="base")


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0002_guest_target'),
    ]

    operations = [
        migrations.CreateModel(
            name='Effect',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('metric', models.CharField(max_length=60)),
                ('switches', models.JSONField()),
                ('ratio', models.FloatField(blank=True, null=True)),
                ('low', models.FloatField(blank=True, null=True)),
                ('high', models.FloatField(blank=True, null=True)),
                ('p_value', models.FloatField(blank=True, null=True)),
                ('q_value', models.FloatField(blank=True, null=True)),
                ('reason', models.TextField(blank=True, default='')),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='run',
            name='run_once_a_block',
        ),
        migrations.AddField(
            model_name='comparison',
            name='notes',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='comparison',
            name='effect',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='comparison',
            name='floor',
            field=models.FloatField(default=0.0),
        ),
        migrations.AddField(
            model_name='comparison',
            name='p_value',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='comparison',
            name='partial',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='comparison',
            name='q_value',
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='experiment',
            name='clock',
            field=models.CharField(default='wall', max_length=15),
        ),
        migrations.AddField(
            model_name='experiment',
            name='sequential',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='run',
            name='invalid',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='run',
            name='retake',
            field=models.PositiveSmallIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='variant',
            name='role',
            field=models.CharField(choices=[('base', 'Base'), ('candidate', 'Candidate'), ('a/a', 'Aa'), ('placebo', 'Placebo')], default='candidate', max_length=10),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(fields=('variant', 'case', 'purpose', 'block', 'retake'), name='run_once_a_block'),
        ),
        migrations.AddField(
            model_name='effect',
            name='case',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='effects', to='lab.case'),
        ),
        migrations.AddField(
            model_name='effect',
            name='experiment',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='effects', to='lab.experiment'),
        ),
        migrations.RunPython(name_the_bases, migrations.RunPython.noop),
    ]
