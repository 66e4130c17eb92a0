# SPDX-License-Identifier: GPL-2.0-or-later
"""The instruction clock on a real kernel: half a per cent more path is called with two boots, nothing is not.

Kernels stay under the tests' state root, so that only the first run compiles them.
"""

from __future__ import annotations

import pytest

import workers.app  # noqa: F401
from lab.experiments.spec import spec_from_mapping
from lab.models import Comparison, Experiment
from workers import local

pytestmark = [pytest.mark.real, pytest.mark.campaign, pytest.mark.django_db]

NOPS = 76
"""An open and close of a sysfs file takes some 15,200 instructions: half a per cent more."""
LONGER_OPEN = "\n".join(
    (
        "--- a/fs/kernfs/file.c",
        "+++ b/fs/kernfs/file.c",
        "@@ -668,6 +668,7 @@ static int kernfs_fop_open(struct inode *inode, struct file *file)",
        " \tif (!kernfs_get_active(kn))",
        " \t\treturn -ENODEV;",
        " ",
        f'+\tasm volatile(".rept {NOPS}\\n\\tnop\\n\\t.endr");',
        " \tops = kernfs_ops(kn);",
        " ",
        " \thas_read = ops->seq_show || ops->read || ops->mmap;",
        "",
    )
)


def measured(name: str, patches: list[dict[str, str]], seed: int = 1) -> Experiment:
    spec = spec_from_mapping(
        {
            "name": name,
            "tree": "debian-6.1",
            "patches": patches,
            "cases": [{"workload": "showgids", "preset": "smoke"}],
            "measure": {"clock": "instructions", "boots": 2, "iterations": 2, "seed": seed},
        }
    )
    experiment_id = local.take_up(spec, say=print)
    local.work_through(experiment_id)
    return Experiment.objects.get(pk=experiment_id)


def test_half_a_per_cent_more_path_is_a_regression_with_two_boots() -> None:
    experiment = measured("a longer open", [{"name": "longer-open", "text": LONGER_OPEN}])
    troubles = list(experiment.runs.exclude(state="done").values_list("problem", "problem_detail"))
    assert (experiment.state, troubles) == ("done", []), experiment.problem
    comparison = Comparison.objects.get(variant__role="candidate", metric="instructions_per_open")
    assert (comparison.verdict, comparison.boots, comparison.notes) == ("regression", 2, [])
    assert comparison.base_median is not None
    assert comparison.median is not None
    # To the instruction, but for what another layout costs elsewhere on the path.
    assert comparison.median - comparison.base_median == pytest.approx(NOPS, abs=15)
    control = Comparison.objects.get(variant__role="a/a", metric="instructions_per_open")
    assert (control.verdict, control.ratio) == ("unchanged", 1.0)
