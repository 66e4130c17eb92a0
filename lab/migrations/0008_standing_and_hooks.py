# SPDX-License-Identifier: GPL-2.0-or-later
"""Standing experiments may catch up; hooks may be about one tree."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0007_base_points'),
    ]

    operations = [
        migrations.RenameField(
            model_name='alert',
            old_name='mailed_at',
            new_name='told_at',
        ),
        migrations.AddField(
            model_name='hook',
            name='tree',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='hooks', to='lab.tree'),
        ),
        migrations.AddField(
            model_name='standing',
            name='backfill',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='standing',
            name='stale',
            field=models.BooleanField(default=False),
        ),
        migrations.AlterField(
            model_name='standing',
            name='branch',
            field=models.CharField(blank=True, default='', max_length=200),
        ),
    ]
