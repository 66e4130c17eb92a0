# SPDX-License-Identifier: GPL-2.0-or-later
"""The words of a switch's kind are the program's, so a new kind takes no migration; no table changes."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0043_builds_left'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='switch', name='kind', field=models.CharField(max_length=10),
                ),
            ],
        ),
    ]
