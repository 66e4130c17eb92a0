# SPDX-License-Identifier: GPL-2.0-or-later

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0032_waiting_profile'),
    ]

    operations = [
        migrations.AddField(
            model_name='build',
            name='steps_done',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='build',
            name='steps_expected',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
