# SPDX-License-Identifier: GPL-2.0-or-later
"""Saved views go: the address of a filtered list is one, and browsers keep addresses."""

from django.db import migrations


class Migration(migrations.Migration):
    stops_the_lab = "old code reads saved views on the list of experiments"
    dependencies = [("lab", "0034_finished_seen")]
    operations = [migrations.DeleteModel("SavedView")]
