# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn stacks of numbers into the nodes of their prefix tree in preorder, without a loop over frames."""

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def preorder(
    frames: Integers, lengths: Integers, counts: Integers, *, root: int
) -> tuple[Integers, Integers, Integers]:
    """Depth, frame and own samples of each node: node 0 is the root, siblings ascend by frame.

    frames: all stacks one behind the other, outermost frame first, 0 to 2^32 - 1. lengths: frames a stack. counts:
    samples a stack. root: the number that stands for node 0. Takes memory in proportion to the frames.
    """
    frames, lengths, counts = _sorted_stacks(frames, lengths, counts)
    starts = np.cumsum(lengths) - lengths
    place = np.arange(len(frames)) - np.repeat(starts, lengths)
    opens = place >= np.repeat(_shared(frames, lengths, place), lengths)
    depth = np.concatenate(([0], place[opens] + 1))
    name = np.concatenate(([root], frames[opens]))
    own = np.zeros(len(depth), np.int64)
    # The last node that a stack opens is its innermost frame; every stack opens one, except the empty stack.
    some = lengths > 0
    if some.any():
        own[np.cumsum(np.add.reduceat(opens, starts[some], dtype=np.int64))] = counts[some]
    own[0] = counts[~some].sum()
    return depth, name, own


def parents(depth: Integers) -> NDArray[np.int32]:
    """int32[n]: the last node before each that is one less deep; -1 for the root."""
    count = len(depth)
    keys = depth * count + np.arange(count)
    ordered = np.sort(keys)
    places = np.searchsorted(ordered, keys - count, side="right") - 1
    return np.where(places >= 0, ordered[places] % count, -1).astype(np.int32)


def _sorted_stacks(
    frames: Integers, lengths: Integers, counts: Integers
) -> tuple[Integers, Integers, Integers]:
    """Stacks in the order of their ranks, equal ones added up."""
    raw = frames.astype(">u4").tobytes()
    bounds = np.cumsum(lengths) * 4
    added: dict[bytes, int] = {}
    begin = 0
    for end, count in zip(bounds.tolist(), counts.tolist(), strict=True):
        key = raw[begin:end]
        added[key] = added.get(key, 0) + count
        begin = end
    # Big-endian ranks: the order of the bytes is that of the names.
    keys = sorted(added)
    flat = np.frombuffer(b"".join(keys), ">u4").astype(np.int64)
    sizes = np.array([len(key) // 4 for key in keys], np.int64)
    return flat, sizes, np.array([added[key] for key in keys], np.int64)


def _shared(frames: Integers, lengths: Integers, place: Integers) -> Integers:
    """Return how many outermost frames each stack has in common with the one before it."""
    shared = np.zeros(len(lengths), np.int64)
    if not len(frames):
        return shared
    before = np.repeat(np.concatenate(([0], lengths[:-1])), lengths)
    opposite = np.maximum(np.arange(len(frames)) - before, 0)
    same = (place < before) & (frames == frames[opposite])
    some = lengths > 0
    differs = np.where(same, np.repeat(lengths, lengths), place)
    shared[some] = np.minimum.reduceat(differs, (np.cumsum(lengths) - lengths)[some])
    return shared
