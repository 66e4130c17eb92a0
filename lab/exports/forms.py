# SPDX-License-Identifier: GPL-2.0-or-later
"""The forms in which profiles leave the lab, by the ends of their files' names: for pages and for the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lab.analysis.frametree import FrameTree, pack
from lab.exports.difference import write_diff_svg, write_folded_pair, write_json
from lab.exports.pprof import write_pprof
from lab.exports.speedscope import write_speedscope
from lab.exports.stacks import write_folded, write_script
from lab.exports.svg import write_svg
from lab.queries.difference import Difference

# From a tree and a title. Any may raise ExportTooLarge.
TREE_FORMS: Mapping[str, Callable[[FrameTree, str], str | bytes]] = {
    "tree": lambda tree, _: pack(tree),
    "folded": lambda tree, _: write_folded(tree),
    "script.txt": lambda tree, _: write_script(tree),
    "speedscope.json": write_speedscope,
    "pb.gz": lambda tree, _: write_pprof(tree),
    "svg": write_svg,
}
DIFFERENCE_FORMS: Mapping[str, Callable[[Difference], str]] = {
    "json": write_json,
    "folded": write_folded_pair,
    "svg": write_diff_svg,
}
