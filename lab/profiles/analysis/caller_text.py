# SPDX-License-Identifier: GPL-2.0-or-later
"""The callers of a symbol as a text tree, as `perf report --children` prints it and mails quote it.

    -   39.16%    38.98%  showgids  [kernel.kallsyms]  [k] down_read
         39.16% __libc_start_main
                path_openat
              - 36.54% link_path_walk
                 - 20.23% inode_permission

The head has the share of samples in the symbol with what it calls, then in itself. Below, the chains that lead to it,
outermost frame first; a share stands where chains part. What the symbol calls belongs to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from lab.profiles.analysis.frame_alignment import Flags, UnitedTree
from lab.profiles.analysis.symbol_counts import outermost_of

# perf's own limit: branches with less of all samples are not printed.
LEAST = 0.005
# Deeper chains are cut; perf itself records 127 frames at most.
DEEPEST = 200
STEP, INDENT = 3, 5


@dataclass(slots=True)
class _Branch:
    """A node on the way to the symbol: samples of it that came this way."""

    name: str
    samples: int = 0
    below: dict[int, _Branch] = field(default_factory=dict)


def call_text(tree: UnitedTree, own: Flags, symbol: str) -> str:
    """The chains that lead to a symbol, over some profiles together; one tree a command, the largest first.

    own: bool[profiles]. Commands are the outermost frames. Empty where no command spends LEAST in the symbol.
    """
    samples = int(tree.samples[own].sum())
    trees = []
    for command, alone in _chains(tree, own, symbol).values():
        if samples and command.samples >= LEAST * samples:
            head = f"-  {_percent(command.samples, samples)}   {_percent(alone, samples)}"
            lines = _lines(command, samples)
            trees.append((command.samples, [f"{head}  {command.name}  {_place(symbol)} {symbol}", *lines]))
    trees.sort(key=lambda pair: -pair[0])
    return "".join(f"{line}\n" for _, lines in trees for line in lines)


def _chains(tree: UnitedTree, own: Flags, symbol: str) -> dict[int, tuple[_Branch, int]]:
    """The ways to the symbol by command, each with the samples in the symbol itself."""
    by_command: dict[int, tuple[_Branch, int]] = {}
    inner = np.array([name == symbol for name in tree.names], dtype=bool)[tree.name]
    for node in outermost_of(tree, [symbol]).tolist():
        total = int(tree.total[node, own].sum())
        if not total:
            continue
        path = [node]
        while tree.parent[path[-1]] > 0:
            path.append(int(tree.parent[path[-1]]))
        command = path.pop() if len(path) > 1 else node
        below = slice(node, int(tree.end[node]))
        alone = int(tree.own[below][inner[below]][:, own].sum())
        top, before = by_command.get(command, (_Branch(_shown(tree, command)), 0))
        by_command[command] = (top, before + alone)
        _grow(tree, top, list(reversed(path)), total)
    return by_command


def _grow(tree: UnitedTree, top: _Branch, path: Sequence[int], total: int) -> None:
    here = top
    here.samples += total
    for node in path[:DEEPEST]:
        here = here.below.setdefault(node, _Branch(_shown(tree, node)))
        here.samples += total


def _shown(tree: UnitedTree, node: int) -> str:
    name = tree.names[int(tree.name[node])]
    # A name is one line of text, whatever the guest called it.
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)


def _lines(command: _Branch, samples: int) -> list[str]:
    floor = LEAST * samples
    lines: list[str] = []
    waiting = [(branch, INDENT, True) for branch in _ordered(command, floor)]
    while waiting:
        branch, indent, first = waiting.pop()
        chain = list(_straight(branch))
        below = _ordered(chain[-1], floor)
        sign = " " if first or (len(chain) == 1 and not below) else "-"
        share = f"{100 * branch.samples / samples:.2f}% "
        lines.append(f"{' ' * indent}{sign} {share}{branch.name}")
        for number, frame in enumerate(chain[1:], 2):
            mark = "-" if number == len(chain) and below else " "
            lines.append(f"{' ' * (indent + STEP)}{mark} {frame.name}")
        deeper = indent + (2 * STEP if len(chain) > 1 else STEP)
        waiting += [(child, deeper, False) for child in below]
    return lines


def _straight(branch: _Branch) -> Iterator[_Branch]:
    """Yield the branch and its descendants as long as all its samples go one way."""
    yield branch
    while len(branch.below) == 1:
        (only,) = branch.below.values()
        if only.samples != branch.samples:
            return
        branch = only
        yield branch


def _ordered(branch: _Branch, floor: float) -> list[_Branch]:
    """Branches to print, in the order of a stack: the largest is taken first."""
    kept = [child for child in branch.below.values() if child.samples >= floor]
    return sorted(kept, key=lambda child: child.samples)


def _place(symbol: str) -> str:
    """Return a symbol's file as perf prints it: brackets for the files of a user's program."""
    return f"{symbol}  [.]" if symbol.startswith("[") else "[kernel.kallsyms]  [k]"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:6.2f}%"
