# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile as speedscope's JSON: a "sampled" profile, one sample a stack, weighted by its samples.

Source: speedscope's file-format-spec.ts, version 1.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from lab.profiles.analysis.frame_tree import FrameTree, stacks_of
from lab.profiles.analysis.weight_unit import Unit
from lab.profiles.exports.stacks import check_size

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write_speedscope(
    tree: FrameTree,
    title: str,
    unit: Unit = "samples",
    lines: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The file's text. lines: where functions begin, "fs/namei.c:2251" by name. Raises ExportTooLarge."""
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
        "shared": {"frames": [_frame(name, lines.get(name, "")) for name in tree.names]},
        "profiles": [profile],
    }
    return json.dumps(whole, separators=(",", ":"))


def _frame(name: str, line: str) -> dict[str, str | int]:
    file, _, number = line.rpartition(":")
    return {"name": name, "file": file, "line": int(number)} if file else {"name": name}
