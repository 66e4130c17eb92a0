# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile as speedscope's JSON: a "sampled" profile, one sample a stack, weighted by its samples.

Source: speedscope's file-format-spec.ts, version 1.
"""

from __future__ import annotations

import json

import numpy as np

from lab.profiles.analysis.frame_tree import FrameTree, stacks_of
from lab.profiles.analysis.weight_unit import Unit
from lab.profiles.exports.stacks import check_size

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_speedscope(tree: FrameTree, title: str, unit: Unit = "samples") -> str:
    """The file's text. Raises ExportTooLarge."""
    check_size(tree, np.minimum(tree.own, 1))
    numbers = {name: number for number, name in enumerate(tree.names)}
    samples, weights = [], []
    for stack, count in stacks_of(tree):
        samples.append([numbers[frame] for frame in stack])
        weights.append(count)
    profile = {
        "type": "sampled",
        "name": title,
        "unit": "nanoseconds" if unit == "ns" else "none",
        "startValue": 0,
        "endValue": tree.samples,
        "samples": samples,
        "weights": weights,
    }
    whole = {
        "$schema": SCHEMA,
        "exporter": "kperflab",
        "name": title,
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in tree.names]},
        "profiles": [profile],
    }
    return json.dumps(whole, separators=(",", ":"))
