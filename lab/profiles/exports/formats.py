# SPDX-License-Identifier: GPL-2.0-or-later
"""The formats of a profile's export by file suffix: one table for pages and command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from lab.profiles.analysis.frame_tree import FrameTree, pack
from lab.profiles.analysis.weight_unit import Unit
from lab.profiles.difference import Difference
from lab.profiles.exports.difference import write_diff_svg, write_folded_pair, write_json
from lab.profiles.exports.pprof import write_pprof
from lab.profiles.exports.speedscope import write_speedscope
from lab.profiles.exports.stacks import write_folded, write_script
from lab.profiles.exports.svg import write_svg


class TreeWriter(Protocol):
    """From a tree, its title and what its weights count. May raise ExportTooLarge or NoSuchForm."""

    def __call__(self, tree: FrameTree, title: str, unit: Unit = "samples") -> str | bytes:
        """The file's text or bytes."""


TREE_FORMS: Mapping[str, TreeWriter] = {
    "tree": lambda tree, title, unit="samples": pack(tree),
    "folded": lambda tree, title, unit="samples": write_folded(tree),
    "script.txt": lambda tree, title, unit="samples": write_script(tree, unit),
    "speedscope.json": write_speedscope,
    "pb.gz": lambda tree, title, unit="samples": write_pprof(tree, unit),
    "svg": lambda tree, title, unit="samples": write_svg(tree, title, unit=unit),
}
DIFFERENCE_FORMS: Mapping[str, Callable[[Difference], str]] = {
    "json": write_json,
    "folded": write_folded_pair,
    "svg": write_diff_svg,
}
