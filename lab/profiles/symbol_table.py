# SPDX-License-Identifier: GPL-2.0-or-later
"""All symbols of a case's profiles: those of all variants side by side, in order, and the claims of the patches beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.models import Variant
from lab.models.states import Role
from lab.profiles.analysis.frame_alignment import Flags, Integers
from lab.profiles.analysis.share_shifts import CERTAIN, Floats
from lab.profiles.analysis.share_table import VariantShares
from lab.profiles.case_profiles import CaseProfiles
from lab.profiles.cells import cells, family_shares
from lab.profiles.claims import Measured, VariantClaims, claims_of
from lab.profiles.shape import SymbolRow


def symbol_table(profiles: CaseProfiles) -> SymbolTable:
    """Return the symbols of profiles of at least one variant."""
    return SymbolTable(profiles, family_shares(profiles, [])[0])


@dataclass(frozen=True, eq=False)
class SymbolTable:
    """All symbols of some profiles. shares: each variant's, of own samples of each name, then of total ones."""

    profiles: CaseProfiles
    shares: Sequence[VariantShares]

    @cached_property
    def levels(self) -> Floats:
        """float64[variants, own or total, names]: shares, or amounts where those are compared."""
        return self._by_name([variant.interval.share for variant in self.shares])

    @cached_property
    def certain(self) -> Flags:
        """bool[variants, own or total, names]: whether it differs from the base's for more than chance."""
        none = np.zeros(2 * len(self.profiles.tree.names), bool)
        return self._by_name([own.shifts.q <= CERTAIN if own.shifts else none for own in self.shares])

    @cached_property
    def seen(self) -> Flags:
        """bool[names]: whether any variant has a sample of it."""
        seen: Flags = np.any(self.levels[:, 1] != 0, axis=0)
        return seen

    @cached_property
    def _candidates(self) -> Mapping[int, Variant]:
        """Return the variants that may have claims, by key, read in one query."""
        keys = [variant.id for variant in self.profiles.variants if variant.role == Role.CANDIDATE]
        return Variant.objects.select_related("experiment").in_bulk(keys)

    def _by_name(self, of_variants: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.stack(of_variants).reshape(len(of_variants), 2, -1)

    def moved(self, place: int) -> Integers:
        """int64[symbols]: places of the names that certainly changed in one variant, in order()."""
        order = self.order()
        changed: Flags = np.any(self.certain[place], axis=0)
        return order[changed[order]]

    def order(self) -> Integers:
        """int64[symbols]: places of names by their largest certain change, then those without one by their largest own share anywhere."""
        base = self.profiles.base
        moved = np.zeros(self.levels.shape[2])
        if base is not None:
            moved = np.where(self.certain, np.abs(self.levels - self.levels[base]), 0.0).max(axis=(0, 1))
        order = np.lexsort((np.array(self.profiles.tree.names), -self.levels[:, 0].max(axis=0), -moved))
        return order[self.seen[order]]

    def rows(self, places: Integers) -> tuple[SymbolRow, ...]:
        """Return the rows of some names."""
        tree, lines = self.profiles.tree, self.profiles.lines
        own, total = (cells(self.shares, self.profiles, places + start) for start in (0, len(tree.names)))
        names = [tree.names[place] for place in places]
        raw = [tree.raw.get(int(place), ()) for place in places]
        return tuple(
            SymbolRow(*row)
            for row in zip(names, raw, own, total, map(lines.get, names, repeat("")), strict=True)
        )

    def measured(self, place: int) -> Iterator[Measured]:
        """Yield each symbol's own numbers in one variant and the base, or with its callees if only these changed or count."""
        base, tree = self.profiles.base, self.profiles.tree
        own, total = self.certain[place, 0], self.certain[place, 1]
        idle = self.levels[base, 0] + self.levels[place, 0] == 0
        alone: Flags = own | ~(total | idle)
        before, after, certain = (
            np.where(alone, *values)
            for values in (self.levels[base], self.levels[place], self.certain[place])
        )
        for at in np.flatnonzero(self.seen).tolist():
            yield Measured(
                tree.names[at],
                float(before[at]),
                float(after[at]),
                bool(certain[at]),
                not alone[at],
                line=self.profiles.lines.get(tree.names[at], ""),
            )

    def claims(self, place: int) -> VariantClaims | None:
        """Return the functions in the diffs of a variant beside its share of them and the base's; None unless it is a candidate."""
        base, variant = self.profiles.base, self._candidates.get(self.profiles.variants[place].id)
        if base is None or variant is None:
            return None
        return claims_of(
            variant,
            base=self.profiles.variants[base].name,
            unit=self.profiles.unit,
            measured=self.measured(place),
        )
