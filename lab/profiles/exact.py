# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions that hold a patch's instructions: exact profiles of a case by function, each variant against the base.

A function is the patch's if its count lies further from the base's than boots of one kernel lie apart
(count_shifts.changed). The others also differ between boots of the base, depending on timer ticks and allocations.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lab.models import Case, Profile
from lab.models.states import Role
from lab.profiles.analysis.count_shifts import changed
from lab.profiles.analysis.frame_alignment import Flags, Integers, UnitedTree, align
from lab.profiles.analysis.frame_names import ASIDE, function_of
from lab.profiles.analysis.frame_tree import unpack
from lab.profiles.analysis.source_lines import merged_lines
from lab.profiles.claims import Measured, VariantClaims, claims_of

_PER = "instructions_per_"
_LEAST_BOOTS = 2


@dataclass(frozen=True, slots=True)
class ExactRow:
    """One function, or all interrupts or kernel threads: its own instructions and its calls, both per operation of the workload.

    touched: whether the diff of a switch of the variant adds or removes lines in it. line: where its code begins in the
    base's source, or in the variant's if the base does not have it.
    """

    symbol: str
    before: float
    after: float
    calls_before: float
    calls_after: float
    of_patch: bool
    touched: bool = False
    line: str = ""

    @property
    def change(self) -> float:
        """Instructions an operation more, or fewer."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class ExactChange:
    """One variant against the base: the functions whose instructions differ, the patch's first, the largest change first.

    operation: what the workload does, such as "open". operations: how many of them one boot's profile covers. equal: how many
    functions did not change at all. doubt: why the patch and chance may be confused, or nothing. claims: the
    functions in the variant's diffs; None if they name none.
    """

    base: str
    variant: str
    operation: str
    operations: int
    before: float
    after: float
    rows: tuple[ExactRow, ...]
    equal: int
    doubt: str
    claims: VariantClaims | None = None

    @property
    def change(self) -> float:
        """Instructions an operation more, or fewer, interrupts included."""
        return self.after - self.before

    @property
    def of_patch(self) -> float:
        """Return the part of the change that is the patch's."""
        return sum(row.change for row in self.rows if row.of_patch)

    @property
    def of_chance(self) -> float:
        """Return the part of the change that boots of one kernel may differ by."""
        return sum(row.change for row in self.rows if not row.of_patch)


@dataclass(frozen=True, eq=False)
class _Counted:
    """Instructions and calls of a case by function: int64[symbols, boots] each. aside: rows of interrupts and kernel threads."""

    symbols: tuple[str, ...]
    instructions: Integers
    calls: Integers
    aside: Flags


def exact_changes(case_id: int, *, variant: str = "") -> tuple[ExactChange, ...]:
    """Return what each candidate, or one variant, changed; nothing where the case has no exact profiles of it and the base."""
    rows = [
        row
        for row in Profile.objects.filter(run__case=case_id, run__state="done", kind=Profile.Kind.EXACT)
        .select_related("run__variant__experiment")
        .order_by("run__variant__position", "run__block")
        if not row.run.invalid and row.calls is not None
    ]
    if not rows:
        return ()
    operation = _operation(Case.objects.get(pk=case_id))
    counted = _counted(tuple(bytes(row.tree) for row in rows), tuple(bytes(row.calls or b"") for row in rows))
    return tuple(_changes(rows, counted, operation, variant))


def _changes(
    rows: Sequence[Profile], counted: _Counted, operation: str, wanted: str
) -> Iterator[ExactChange]:
    roles = [row.run.variant.role for row in rows]
    names = [row.run.variant.name for row in rows]
    base = [place for place, role in enumerate(roles) if role == Role.BASE]
    controls = base + [place for place, role in enumerate(roles) if role == Role.AA]
    for name in dict.fromkeys(names):
        own = [place for place, variant_name in enumerate(names) if variant_name == name]
        asked = name == wanted if wanted else roles[own[0]] == Role.CANDIDATE
        if base and asked and own != base:
            known = [place for place in controls if place not in own]
            yield _change(rows, counted, operation, known, own)


def _change(
    rows: Sequence[Profile], counted: _Counted, operation: str, base: list[int], own: list[int]
) -> ExactChange:
    """Return one variant's change. base, own: boots of both sides; the first of each repeats the measured boots and is shown."""
    old, new = base[0], own[0]
    sizes = [float(rows[place].operations or 1) for place in (old, new)]
    before, after = (
        counted.instructions[:, place] / size for place, size in zip((old, new), sizes, strict=True)
    )
    called, calls = (counted.calls[:, place] / size for place, size in zip((old, new), sizes, strict=True))
    is_patch = changed(counted.instructions[:, base], counted.instructions[:, own]) & ~counted.aside
    differs = (counted.instructions[:, old] != counted.instructions[:, new]) | is_patch
    lines = merged_lines((rows[old].lines, rows[new].lines))
    measured = [
        Measured(symbol, old_, new_, certain, line=lines.get(symbol, ""))
        for symbol, old_, new_, certain in zip(
            counted.symbols, before.tolist(), after.tolist(), is_patch.tolist(), strict=True
        )
    ]
    base_name, variant = rows[old].run.variant.name, rows[new].run.variant
    claims = claims_of(variant, base=base_name, unit="instructions", measured=measured)
    touched = {claim.function for claim in claims.claims} if claims else set()
    exact_rows = [
        ExactRow(
            function.symbol, function.before, function.after, float(called[at]), float(calls[at]),
            function.certain, function_of(function.symbol) in touched, function.line,
        )
        for at, function in enumerate(measured)
        if differs[at]
    ]  # fmt: skip
    return ExactChange(
        base=base_name,
        variant=variant.name,
        operation=operation,
        operations=rows[old].operations,
        before=float(before.sum()),
        after=float(after.sum()),
        rows=tuple(sorted(exact_rows, key=lambda row: (not row.of_patch, -abs(row.change), row.symbol))),
        equal=len(counted.symbols) - len(exact_rows),
        doubt=_doubt(base, own),
        claims=claims,
    )


def _doubt(base: list[int], own: list[int]) -> str:
    if len(base) < _LEAST_BOOTS or len(own) < _LEAST_BOOTS:
        return (
            "With one boot of a side, what boots differ by for no reason may be taken for the patch; "
            "ask for profile_boots = 2 or more."
        )
    return ""


def _operation(case: Case) -> str:
    names = (str(metric.get("name", "")) for metric in case.metrics)
    return next((name.removeprefix(_PER) for name in names if name.startswith(_PER)), "iteration")


# Profiles never change, and a page asks for the same ones for each of its metrics.
@lru_cache(maxsize=4)
def _counted(trees: tuple[bytes, ...], calls: tuple[bytes, ...]) -> _Counted:
    tree = align([unpack(blob) for blob in (*trees, *calls)], idle=True)
    top = _top(tree)
    aside = np.array([name in ASIDE for name in tree.names], dtype=bool)
    name = np.where(aside[tree.name[top]], tree.name[top], tree.name)
    # The calls of interrupts are their number: the calls of the functions right below them.
    entered = ~aside[tree.name[top]] | (tree.parent == top) | (np.arange(len(tree)) == top)
    boots = len(trees)
    instructions = _by_name(name, tree.own[:, :boots], len(tree.names))
    called = _by_name(name, np.where(entered[:, None], tree.own[:, boots:], 0), len(tree.names))
    held = instructions.any(axis=1)
    symbols = tuple(tree.names[at] for at in np.flatnonzero(held).tolist())
    return _Counted(symbols, instructions[held], called[held], aside[held])


def _top(tree: UnitedTree) -> Integers:
    """int64[nodes]: the node right below the root that each lies in or below; the root's own is itself."""
    top = np.zeros(len(tree), np.int64)
    for node in np.flatnonzero(tree.parent == 0).tolist():
        top[node : tree.end[node]] = node
    return top


def _by_name(name: Integers, own: Integers, rows: int) -> Integers:
    added = np.zeros((rows, own.shape[1]), np.int64)
    np.add.at(added, name, own)
    return added
