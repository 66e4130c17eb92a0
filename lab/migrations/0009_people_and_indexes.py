# SPDX-License-Identifier: GPL-2.0-or-later
"""Who is made at a terminal runs the lab; regressions and boots lately ended are found fast."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0008_standing_and_hooks'),
    ]

    operations = [
        migrations.AlterModelManagers(
            name='user',
            managers=[
            ],
        ),
        migrations.AddIndex(
            model_name='comparison',
            index=models.Index(condition=models.Q(('verdict', 'regression')), fields=['-experiment', 'primary'], name='comparison_regressions'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['finished_at'], name='run_by_end'),
        ),
    ]
