# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles become packed trees, and raw perf.data is found by its hash."""

import zlib
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.db import migrations, models

from lab.profiles.analysis.frame_names import read_folded
from lab.profiles.analysis.frame_tree import build_tree, pack
from lab.storage.raw_profiles import keep_raw


def pack_stacks(apps, schema_editor):
    for profile in apps.get_model("lab", "Profile").objects.iterator():
        stacks = read_folded(zlib.decompress(bytes(profile.folded)).decode())
        profile.tree = pack(build_tree(stacks.items()))
        raw = Path(profile.perf_data or "/nonexistent")
        # A file that is gone, or cannot be linked, is no reason to keep the lab from starting.
        with suppress(OSError):
            profile.perf_data_sha256 = keep_raw(Path(settings.HOME), raw)
        profile.save(update_fields=["tree", "perf_data_sha256"])


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0004_trend'),
    ]

    operations = [
        migrations.AddField(
            model_name='profile',
            name='tree',
            field=models.BinaryField(default=b''),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='profile',
            name='throttled',
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='profile',
            name='truncated',
            field=models.CharField(blank=True, default='', max_length=200),
        ),
        migrations.AddField(
            model_name='profile',
            name='kernel_build_id',
            field=models.CharField(blank=True, default='', max_length=40),
        ),
        migrations.AddField(
            model_name='profile',
            name='perf_data_sha256',
            field=models.CharField(blank=True, default='', max_length=64),
        ),
        migrations.RunPython(pack_stacks, migrations.RunPython.noop),
        migrations.RemoveField(
            model_name='profile',
            name='folded',
        ),
        migrations.RemoveField(
            model_name='profile',
            name='perf_data',
        ),
    ]
