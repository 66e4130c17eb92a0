# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions that a variant's patches change, with the hunks, beside what its profiles measured in them."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kernels.diffs.touched_functions import TouchedFunction, touched_functions
from kernels.errors import PatchRejected
from kernels.mails.stored_diff import shown_diff
from lab.models import Switch, Variant
from lab.profiles.analysis.frame_names import function_of
from lab.profiles.analysis.weight_unit import Unit

CHANGED, UNCHANGED, UNSEEN = "changed", "unchanged", "unseen"
# The number of functions kept that changed outside the diff: those of the largest changes.
_MOST_UNCLAIMED = 8


@dataclass(frozen=True, slots=True)
class Measured:
    """One symbol of the profiles, before and after, in the unit of the profiles.

    certain: whether it differs for more than chance. children: whether what it calls is counted too. line: where its code begins.
    """

    symbol: str
    before: float
    after: float
    certain: bool
    children: bool = False
    line: str = ""


@dataclass(frozen=True, slots=True)
class ClaimedFunction:
    """One function in which the diffs change lines. measured: None where no profile holds it under its own name.

    hunks: those of the diffs that change it. verdict: CHANGED, UNCHANGED (by no more than chance) or UNSEEN.
    """

    function: str
    path: str
    hunks: tuple[str, ...]
    verdict: str
    measured: Measured | None = None


@dataclass(frozen=True, slots=True)
class VariantClaims:
    """The functions in a variant's diffs, those that changed first. unclaimed: some that changed though no diff names them."""

    variant: str
    base: str
    unit: Unit
    claims: tuple[ClaimedFunction, ...]
    unclaimed: tuple[Measured, ...] = ()


def claims_of(
    variant: Variant, *, base: str, unit: Unit, measured: Iterable[Measured]
) -> VariantClaims | None:
    """Return the functions in the diffs of a variant's patches beside what was measured; None if no diff names one."""
    touched = _touched(variant)
    if not touched:
        return None
    known = list(measured)
    by_name: dict[str, list[Measured]] = {}
    for row in known:
        by_name.setdefault(function_of(row.symbol), []).append(row)
    names = {function.name for function in touched}
    claims = [_claim(function, by_name) for function in touched]
    others = [
        row for row in known if row.certain and not row.children and function_of(row.symbol) not in names
    ]
    return VariantClaims(
        variant=variant.name,
        base=base,
        unit=unit,
        claims=tuple(sorted(claims, key=lambda claim: (CHANGED, UNCHANGED, UNSEEN).index(claim.verdict))),
        unclaimed=tuple(sorted(others, key=_size)[:_MOST_UNCLAIMED]),
    )


def _claim(touched: TouchedFunction, by_name: Mapping[str, Sequence[Measured]]) -> ClaimedFunction:
    """Return one function's claim. If a function has several symbols, the one that changed most represents it."""
    own = sorted(by_name.get(touched.name, ()), key=lambda row: (not row.certain, *_size(row)))
    if not own:
        return ClaimedFunction(touched.name, touched.path, touched.hunks, UNSEEN)
    verdict = CHANGED if own[0].certain else UNCHANGED
    return ClaimedFunction(touched.name, touched.path, touched.hunks, verdict, own[0])


def _size(row: Measured) -> tuple[float, str]:
    return -abs(row.after - row.before), row.symbol


def _touched(variant: Variant) -> tuple[TouchedFunction, ...]:
    """Return the functions in the diffs of a variant's patches; a diff that cannot be read touches none."""
    switches = variant.experiment.switches.filter(name__in=variant.switches, kind=Switch.Kind.PATCH)
    by_function: dict[tuple[str, str], tuple[str, ...]] = {}
    for text in switches.order_by("position").values_list("text", flat=True):
        with suppress(PatchRejected):
            for function in touched_functions(shown_diff(text)):
                key = (function.path, function.name)
                by_function[key] = by_function.get(key, ()) + function.hunks
    return tuple(TouchedFunction(path, name, hunks) for (path, name), hunks in by_function.items())
