# SPDX-License-Identifier: GPL-2.0-or-later
"""A difference of two variants for browsers and scripts: JSON, columns of one entry a node, nodes in preorder.

    sides              [{name, boots, samples}]: base, then candidate; samples of busy CPUs over all its boots
    kind, unit         of the profiles; unit is samples, ns, instructions or cycles: "samples" below means nanoseconds
                       waited, instructions executed, or cycles waited per operation accordingly
    doubt              why nothing can be certain, or ""
    certain            q up to which a difference counts as certain
    names              [text]                 of the source, without .isra.0 and the like
    raw                {index: [text]}        the compiler's names, where they differ
    parent             [int]                  -1 for node 0, the root
    name               [int]                  index into names
    base, candidate    [int]                  samples whose innermost frame it is, over all boots of the side
    log_ratio, q       [float | null]         of shares: binary logarithm of candidate over base, and its certainty
    log_ratio_samples, q_samples              the same of samples a boot

The two columns of samples count idle CPUs too, for readers who want to see them; ratios and q leave them out unless the
difference was asked for with them. q is null where a frame has too few samples to be tested.
"""

import json
from typing import Any

import numpy as np

from lab.profiles.analysis.frame_alignment import Flags, UnitedTree
from lab.profiles.analysis.frame_tree import FrameTree
from lab.profiles.analysis.share_shifts import CERTAIN, Floats, Shifts
from lab.profiles.analysis.weight_unit import amount_name
from lab.profiles.cells import known
from lab.profiles.difference import Difference
from lab.profiles.exports.stacks import write_two_counts
from lab.profiles.exports.svg import Paint, write_svg


def write_json(difference: Difference) -> str:
    """The text described above; only nodes that one of the sides holds."""
    tree = difference.tree
    every = tree.own + tree.resting
    sides = [every[:, own].sum(axis=1) for own in (difference.base_boots, difference.boots)]
    keep = _held(tree, sides[0] + sides[1])
    place = np.cumsum(keep) - 1
    used, name = np.unique(tree.name[keep], return_inverse=True)
    whole: dict[str, Any] = {
        "base": sides[0][keep].tolist(),
        "candidate": sides[1][keep].tolist(),
        "sides": [
            _side(difference, own, variant.name)
            for own, variant in (
                (difference.base_boots, difference.base),
                (difference.boots, difference.variant),
            )
        ],
        "kind": difference.kind,
        "unit": difference.unit,
        "doubt": difference.shifts.doubt,
        "certain": CERTAIN,
        "names": [tree.names[number] for number in used.tolist()],
        "raw": {at: tree.raw[number] for at, number in enumerate(used.tolist()) if number in tree.raw},
        "parent": np.where(tree.parent[keep] < 0, -1, place[tree.parent[keep]]).tolist(),
        "name": name.tolist(),
        **_shifts(difference.shifts.shares, keep, ""),
        **_shifts(difference.shifts.samples, keep, "_samples"),
    }
    return json.dumps(whole, separators=(",", ":"), allow_nan=False)


def _side(difference: Difference, own: Flags, name: str) -> dict[str, Any]:
    return {"name": name, "boots": int(own.sum()), "samples": int(difference.whole[own].sum())}


def _held(tree: UnitedTree, samples: np.ndarray[Any, np.dtype[np.int64]]) -> Flags:
    running = np.concatenate(([0], np.cumsum(samples)))
    keep = running[tree.end] > running[:-1]
    keep[0] = True
    return np.asarray(keep, dtype=bool)


def _shifts(shifts: Shifts, keep: Flags, suffix: str) -> dict[str, list[float | None]]:
    # Digits that no reader needs would be most of the file.
    return {
        f"log_ratio{suffix}": known(np.round(shifts.log_ratio[keep], 3)),
        f"q{suffix}": known(np.round(shifts.q[keep], 6)),
    }


def write_folded_pair(difference: Difference) -> str:
    """Lines `stack base candidate`, samples of busy CPUs or nanoseconds waited. Raises ExportTooLarge."""
    return write_two_counts(*difference.sides)


def write_diff_svg(difference: Difference) -> str:
    """Frames as wide as the mean of both shares; red is more, blue is less, grey may be chance. Of waits, time a boot."""
    tree, shares = difference.tree, difference.shifts.shares
    judged = shares if difference.unit == "samples" else difference.shifts.samples
    plain = FrameTree(
        tree.names, tree.parent.astype(np.int32), tree.name.astype(np.int32), tree.own.sum(axis=1)
    )
    colours, words = [], []
    rows = zip(
        judged.base.tolist(),
        judged.candidate.tolist(),
        judged.log_ratio.tolist(),
        judged.q.tolist(),
        strict=True,
    )
    for base, candidate, ratio, q in rows:
        colours.append(_colour(ratio, q))
        certainty = "not compared" if q != q else f"q {q:.3g}"
        words.append(f"{_level(base, difference)} → {_level(candidate, difference)}, {certainty}")
    caption = f"{difference.title}: red more, blue less, grey not significant. {difference.shifts.doubt}"
    return write_svg(plain, caption, Paint(colours, words), _widths(difference))


def _widths(difference: Difference) -> Floats:
    """float64[nodes]: the mean of both sides; of time a boot where weights are nanoseconds."""
    shifts = difference.shifts.shares if difference.unit == "samples" else difference.shifts.samples
    return np.asarray((shifts.base + shifts.candidate) / 2, dtype=float)


def _level(value: float, difference: Difference) -> str:
    return f"{100 * value:.2f} %" if difference.unit == "samples" else amount_name(value, difference.unit)


def _colour(ratio: float, q: float) -> str:
    """Hue by direction, strength by size up to fourfold."""
    if not q <= CERTAIN:
        return "rgb(222,222,222)"
    fade = round(200 - 140 * min(abs(ratio) / 2, 1.0))
    return f"rgb(235,{fade},{fade})" if ratio > 0 else f"rgb({fade},{fade},235)"
