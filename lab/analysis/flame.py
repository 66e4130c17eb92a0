# SPDX-License-Identifier: GPL-2.0-or-later
"""Folded stacks into what a page draws: a flame tree, shares by symbol, shares by caller.

Folded stacks are a mapping from a stack, outermost frame first, to its number of samples.
Shares are fractions of all samples, 0 to 1.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypedDict

# A CPU that idles is below this function, unless it is below one through which an interrupt enters.
IDLE = "do_idle"
INTERRUPTS = ("interrupt", "sysvec", "softirq")
Stack = tuple[str, ...]
Folded = Mapping[Stack, int]

# What GCC appends to the name of a copy it made of a function: the copy is the same source.
_COPIES = frozenset({"isra", "constprop", "part", "cold", "lto_priv"})


class FlameNode(TypedDict):
    """One frame: its name, samples in it or below, and its callees by descending samples."""

    name: str
    value: int
    children: list["FlameNode"]


@dataclass(frozen=True, slots=True)
class SymbolShare:
    """Share of samples whose innermost frame is the symbol (own) or that hold it anywhere (total)."""

    symbol: str
    own: float
    total: float


@dataclass(frozen=True, slots=True)
class CallerShare:
    """Share of all samples in which `caller` called one of the symbols asked for."""

    caller: str
    share: float


@dataclass(frozen=True, slots=True)
class CallerSplit:
    """Share of a set of symbols (called `total`), by symbol and by who called it."""

    total: float
    by_symbol: tuple[tuple[str, float, tuple[CallerShare, ...]], ...]
    by_caller: tuple[CallerShare, ...]


def normalise(symbol: str) -> str:
    """Return the source's name of a symbol: without .isra.0, .constprop.1, .part.2, .cold."""
    if "." not in symbol:
        return symbol
    # From the end, a word at a time: linear however long a hostile symbol is.
    parts = symbol.split(".")
    kept = word = len(parts)
    while word > 1:
        word -= 1
        if parts[word] in _COPIES:
            kept = word
        elif not parts[word].isdecimal():
            break
    return ".".join(parts[:kept])


def normalise_stacks(folded: Folded) -> dict[Stack, int]:
    """Return the stacks under the names of the source; stacks that become equal are added up."""
    merged: Counter[Stack] = Counter()
    for stack, count in folded.items():
        merged[tuple(normalise(frame) for frame in stack)] += count
    return dict(merged)


def without_idle(folded: Folded) -> dict[Stack, int]:
    """Return the stacks in which a CPU did something.

    How long CPUs idle depends on the load's balance, and would dilute every other share with it.
    An interrupt taken by an idle CPU is work.
    """
    return {stack: count for stack, count in folded.items() if not _idles(stack)}


def _idles(stack: Stack) -> bool:
    return IDLE in stack and not any(word in frame for frame in stack for word in INTERRUPTS)


def read_folded(text: str) -> dict[Stack, int]:
    """Read lines `outer;…;inner count`; raises ValueError naming a line that is not one."""
    folded: Counter[Stack] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        stack, _, count = line.rpartition(" ")
        if not stack or not count.isdecimal():
            raise ValueError(f"line {number} of the folded stacks is not 'stack count': {line[:80]!r}")
        folded[tuple(stack.split(";"))] += int(count)
    return dict(folded)


def write_folded(folded: Folded) -> str:
    """Write stacks as lines `outer;…;inner count`, sorted; a `;` inside a name becomes `:`."""
    lines = (";".join(f.replace(";", ":").replace("\n", " ") for f in s) + f" {n}" for s, n in folded.items())
    return "".join(f"{line}\n" for line in sorted(lines))


def flame_tree(folded: Folded, *, root: str = "all", least: float = 0.0) -> FlameNode:
    """Build the tree a flame graph draws; frames below `least` (share of all) are left out.

    A frame's value counts what is left out below it, so widths stay true.
    """
    top: FlameNode = {"name": root, "value": sum(folded.values()), "children": []}
    index: dict[int, dict[str, FlameNode]] = {id(top): {}}
    for stack, count in folded.items():
        here = top
        for frame in stack:
            known = index[id(here)]
            if frame not in known:
                child: FlameNode = {"name": frame, "value": 0, "children": []}
                known[frame] = child
                here["children"].append(child)
                index[id(child)] = {}
            here = known[frame]
            here["value"] += count
    _trim(top, least * top["value"])
    return top


def _trim(top: FlameNode, floor: float) -> None:
    """Sort children by size, dropping those below `floor` samples; a loop, since stacks are deep."""
    waiting = [top]
    while waiting:
        frame = waiting.pop()
        kept = [child for child in frame["children"] if child["value"] >= floor]
        frame["children"] = sorted(kept, key=lambda child: (-child["value"], child["name"]))
        waiting.extend(frame["children"])


def symbol_shares(folded: Folded) -> dict[str, SymbolShare]:
    """Return each symbol's own and total share; a recursive symbol counts once a stack."""
    samples = sum(folded.values())
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for stack, count in folded.items():
        if not stack:
            continue
        own[stack[-1]] += count
        for frame in set(stack):
            total[frame] += count
    return {name: SymbolShare(name, own[name] / samples, total[name] / samples) for name in total if samples}


def caller_shares(folded: Folded, symbols: Iterable[str]) -> CallerSplit:
    """Split the share of `symbols` by who called them, the way the kernfs mail tells its profile.

    A stack counts once, at the outermost of the symbols it holds, so that shares add up to the
    total; what such a symbol calls in turn (down_read's slow path) belongs to it.
    """
    wanted = frozenset(symbols)
    samples = sum(folded.values())
    pairs: Counter[tuple[str, str]] = Counter()
    for stack, count in folded.items():
        for depth, frame in enumerate(stack):
            if frame in wanted:
                pairs[frame, stack[depth - 1] if depth else "(no caller)"] += count
                break
    by_symbol = []
    for symbol in sorted({symbol for symbol, _ in pairs}, key=lambda s: (-_sum(pairs, 0, s), s)):
        own = Counter({caller: n for (name, caller), n in pairs.items() if name == symbol})
        by_symbol.append((symbol, own.total() / samples, _ranked(own, samples)))
    callers: Counter[str] = Counter()
    for (_, caller), count in pairs.items():
        callers[caller] += count
    share = pairs.total() / samples if samples else 0.0
    return CallerSplit(share, tuple(by_symbol), _ranked(callers, samples))


def _sum(pairs: Mapping[tuple[str, str], int], part: int, name: str) -> int:
    return sum(count for pair, count in pairs.items() if pair[part] == name)


def _ranked(counts: Mapping[str, int], samples: int) -> tuple[CallerShare, ...]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(CallerShare(caller, count / samples) for caller, count in ranked)
