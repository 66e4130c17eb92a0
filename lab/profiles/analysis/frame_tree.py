# SPDX-License-Identifier: GPL-2.0-or-later
"""One profile as a tree of frames: the form in which it is stored, sent to browsers and compared.

A node is one chain of calls: its frame and all frames above it. Nodes stand in preorder, siblings ascend by
their names' UTF-8 bytes, node 0 is the root: equal profiles are equal bytes.

The packed form, which the browser reads as well, is one zlib stream (RFC 1950: what DecompressionStream calls
"deflate") over

    bytes    "KPT1"
    varint   number of names
    names    each: varint length in bytes, then that much UTF-8; no name twice, at most NAME_BYTES bytes
    varint   number of nodes, at least 1
    varints  up:   one a node: depth of the node before + 1 - depth of this one; 0 means its first child
    varints  name: one a node: index into names
    varints  own:  one a node: samples whose innermost frame it is

and nothing behind. A varint is unsigned LEB128: 7 bits a byte, the lowest first, the top bit set on all bytes but the
last, at most 8 bytes. The node "before" node 0 has depth -1, so its `up` is 0; no other node has depth 0. All samples
together are less than 2^53, which JavaScript's numbers hold. Names that more nodes carry come first: their indices are
short. Depth has no limit of its own.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lab.profiles.analysis.prefix_tree import parents, preorder
from lab.profiles.analysis.varints import decode, decode_one, encode, encode_one

MAGIC = b"KPT1"
ROOT = "all"
NAME_BYTES = 1024
MOST_NODES = 4 << 20
MOST_BYTES = 32 << 20
MOST_SAMPLES = 1 << 53

Integers = NDArray[np.int64]
Stack = tuple[str, ...]


class TreeDamaged(ValueError):
    """Bytes that are not a packed tree, or a tree too large to pack; `str()` is one line."""

    blame: ClassVar[Literal["submission", "kernel", "lab"]] = "lab"
    retry: ClassVar[bool] = False


def depths(parent: Integers | NDArray[np.int32]) -> Integers:
    """Return how deep each node of a tree lies, 0 for the root. Doubles the stride each turn, so there are log2(deepest) turns."""
    above = np.maximum(parent.astype(np.int64), 0)
    depth = (parent >= 0).astype(np.int64)
    while above.any():
        depth += depth[above]
        above = above[above]
    return depth


@dataclass(frozen=True, eq=False)
class FrameTree:
    """Nodes in preorder; node 0 is the root, with parent -1. Arrays are not to be written to.

    names: each once. parent: int32[n], less than the node's own index. name: int32[n], indices into names.
    own: int64[n], samples whose innermost frame it is.
    """

    names: tuple[str, ...]
    parent: NDArray[np.int32]
    name: NDArray[np.int32]
    own: Integers

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def samples(self) -> int:
        """Return the sum of all samples."""
        return int(self.own.sum())

    @cached_property
    def depth(self) -> Integers:
        """int64[n]; 0 for the root."""
        return depths(self.parent)

    @cached_property
    def end(self) -> Integers:
        """int64[n]: a node and all below it are the nodes from its own index up to, not including, this."""
        # After node i, open nodes from its depth up to that of node i + 1 close; after the last node, all.
        closings = 1 - np.diff(self.depth, append=0)
        after = np.repeat(np.arange(1, len(self) + 1), closings)
        firsts = np.repeat(np.cumsum(closings) - closings, closings)
        depths = np.repeat(self.depth, closings) - (np.arange(len(after)) - firsts)
        end = np.empty(len(self), np.int64)
        # At one depth a node closes before the next opens: the k-th to open is the k-th to close.
        end[np.argsort(self.depth, kind="stable")] = after[np.argsort(depths, kind="stable")]
        return end

    @cached_property
    def total(self) -> Integers:
        """int64[n]: samples in the node or anywhere below it."""
        running = np.concatenate(([0], np.cumsum(self.own)))
        total: Integers = running[self.end] - running[:-1]
        return total


def build_tree(stacks: Iterable[tuple[Sequence[str], int]]) -> FrameTree:
    """Build the tree of stacks, outermost frame first, each with its samples; equal stacks are added up.

    Names longer than NAME_BYTES in UTF-8 are cut, and end in "…"; an empty stack counts at the root.
    """
    numbers: dict[str, int] = {}
    rows: list[list[int]] = []
    counts: list[int] = []
    for stack, count in stacks:
        rows.append([numbers.setdefault(frame, len(numbers)) for frame in stack])
        counts.append(count)
    lengths = np.array([len(row) for row in rows], np.int64)
    flat = np.array([number for row in rows for number in row], np.int64)
    return grow_tree(tuple(numbers), flat, lengths, np.array(counts, np.int64))


def grow_tree(names: Sequence[str], frames: Integers, lengths: Integers, counts: Integers) -> FrameTree:
    """Build a tree from stacks that are already numbers.

    names: may repeat. frames: indices into names, all stacks one behind the other, outermost first. lengths: frames a
    stack. counts: samples a stack.
    """
    cut = [*(cut_name(name) for name in names), ROOT.encode()]
    ordered = sorted(set(cut))
    ranks = {name: rank for rank, name in enumerate(ordered)}
    ranked = np.array([ranks[name] for name in cut], np.int64)
    depth, name, own = preorder(ranked[frames], lengths, counts, root=ranks[ROOT.encode()])
    return numbered([raw.decode() for raw in ordered], parents(depth), name, own)


def stacks_of(tree: FrameTree) -> Iterator[tuple[Stack, int]]:
    """The stacks of a tree, outermost frame first and without the root, with their samples (never 0)."""
    path: list[str] = []
    depths, names, owns = tree.depth.tolist(), tree.name.tolist(), tree.own.tolist()
    for depth, name, own in zip(depths, names, owns, strict=True):
        del path[max(0, depth - 1) :]
        if depth:
            path.append(tree.names[name])
        if own:
            yield tuple(path), own


def pack(tree: FrameTree) -> bytes:
    """The packed form. Raises TreeDamaged for a tree that unpack would not take."""
    raw = [name.encode() for name in tree.names]
    up = np.concatenate(([0], tree.depth[:-1] + 1 - tree.depth[1:]))
    columns = np.concatenate((up, tree.name, tree.own))
    parts = [MAGIC, encode_one(len(raw))]
    parts += [part for name in raw for part in (encode_one(len(name)), name)]
    parts += [encode_one(len(tree)), encode(columns)]
    body = b"".join(parts)
    if len(tree) > MOST_NODES or len(body) > MOST_BYTES or tree.samples >= MOST_SAMPLES:
        raise TreeDamaged(f"a profile of {len(tree)} nodes and {tree.samples} samples is too large to store")
    return zlib.compress(body, 9)


def unpack(data: bytes) -> FrameTree:
    """The tree of a packed form. Raises TreeDamaged for anything else; inflates at most MOST_BYTES."""
    try:
        return _read(_inflated(data))
    except (ValueError, zlib.error) as exc:
        raise TreeDamaged(f"a stored profile is damaged: {exc}") from exc


def cut_name(name: str) -> bytes:
    """Return a name as a tree holds it, in UTF-8; one longer than NAME_BYTES ends in "…"."""
    raw = name.encode(errors="replace")
    if len(raw) <= NAME_BYTES:
        return raw
    return (raw[: NAME_BYTES - 3].decode(errors="ignore") + "…").encode()


def numbered(names: Sequence[str], parent: NDArray[np.int32], name: Integers, own: Integers) -> FrameTree:
    """Return the tree with its names ordered by how many nodes carry them."""
    uses = np.bincount(name, minlength=len(names))
    order = np.argsort(-uses, kind="stable")[: np.count_nonzero(uses)]
    place = np.zeros(len(names), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return FrameTree(tuple(names[number] for number in order.tolist()), parent, place[name], own)


def _inflated(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    body = stream.decompress(data, MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise ValueError(f"it unpacks to more than {MOST_BYTES >> 20} MiB")
    if not stream.eof or stream.unused_data:
        raise ValueError("it is cut short, or something follows it")
    return body


def _read(body: bytes) -> FrameTree:
    if not body.startswith(MAGIC):
        raise ValueError("it does not begin with KPT1")
    count, at = decode_one(body, len(MAGIC))
    names: list[str] = []
    for _ in range(count):
        length, at = decode_one(body, at)
        if length > NAME_BYTES or at + length > len(body):
            raise ValueError(f"name {len(names)} is {length} bytes long")
        names.append(body[at : at + length].decode())
        at += length
    nodes, at = decode_one(body, at)
    if not 1 <= nodes <= MOST_NODES or len(set(names)) != len(names):
        raise ValueError(f"no tree has {nodes} nodes and {count} such names")
    up, name, own = np.split(decode(body[at:], 3 * nodes), 3)
    # `up` is bounded before it is added up, so that nothing overflows.
    depth = np.cumsum(1 - np.minimum(up, nodes + 1)) - 1
    if depth[0] != 0 or (depth[1:] < 1).any():
        raise ValueError("its nodes do not form a tree")
    if name.max() >= len(names):
        raise ValueError(f"it names frame {name.max()} of {len(names)}")
    if own.sum(dtype=np.float64) >= MOST_SAMPLES:
        raise ValueError("it has more samples than can be counted")
    return FrameTree(tuple(names), parents(depth), name.astype(np.int32), own)
