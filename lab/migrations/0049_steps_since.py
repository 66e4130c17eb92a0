# SPDX-License-Identifier: GPL-2.0-or-later

from django.db import migrations, models


class Migration(migrations.Migration):

    lived_through = "the column may be empty: a build of an older worker has its time left from its claim on"

    dependencies = [
        ('lab', '0048_queues_of_workers'),
    ]

    operations = [
        migrations.AddField(
            model_name='build',
            name='steps_since',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
