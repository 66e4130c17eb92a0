# SPDX-License-Identifier: GPL-2.0-or-later
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("lab", "0017_steps")]

    operations = [
        migrations.AddField("target", "check_asked_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("target", "checked_until", models.DateTimeField(blank=True, null=True)),
    ]
