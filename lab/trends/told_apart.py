# SPDX-License-Identifier: GPL-2.0-or-later
"""Words that distinguish trends of the same title, place, machine and clock. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence

from lab.trends.page import TrendLine


def told_apart(lines: Iterable[TrendLine]) -> dict[str, str]:
    """Return by key the parameters, or else the config, that only some of its namesakes have; "" without namesakes."""
    namesakes = defaultdict(list)
    for line in lines:
        namesakes[line.title, line.place, line.target, line.clock].append(line)
    return {key: words for alike in namesakes.values() for key, words in _told_apart(alike).items()}


def _told_apart(alike: Sequence[TrendLine]) -> dict[str, str]:
    written = [{name: json.dumps(value) for name, value in line.params.items()} for line in alike]
    names = sorted({name for params in written for name in params})
    differ = [name for name in names if len({params.get(name) for params in written}) > 1]
    configs = len({line.config for line in alike}) > 1
    return {
        line.key: ", ".join(
            [f"{name}={params[name]}" for name in differ if name in params]
            + ([f"config {line.config}"] if configs else [])
        )
        for line, params in zip(alike, written, strict=True)
    }
