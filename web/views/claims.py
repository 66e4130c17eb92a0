# SPDX-License-Identifier: GPL-2.0-or-later
"""Claims of patches beside what profiles measured, in words: a table for each variant."""

from typing import Any

from lab.profiles.analysis.weight_unit import Unit
from lab.profiles.claims import CHANGED, UNCHANGED, UNSEEN, ClaimedFunction, Measured, VariantClaims
from web.words import count, quantity, share

_MINUS, _THIN = "\N{MINUS SIGN}", "\N{NARROW NO-BREAK SPACE}"


def claim_table(variant_claims: VariantClaims, operation: str = "") -> dict[str, Any]:
    """Return one variant's table. operation: what the instructions of exact profiles are counted for, such as "open".

    unseen: in the diff, but in no profile. unclaimed: changed, but in no diff.
    """
    return {
        "variant": variant_claims.variant,
        "base": variant_claims.base,
        "unit": _per(variant_claims.unit, operation),
        "summary": _summary(variant_claims.claims),
        "lines": [
            _line(claim, claim.measured, variant_claims.unit)
            for claim in variant_claims.claims
            if claim.measured
        ],
        "unseen": [claim for claim in variant_claims.claims if claim.measured is None],
        "unclaimed": [measured.symbol for measured in variant_claims.unclaimed],
    }


def _per(unit: Unit, operation: str) -> str:
    named = {
        "samples": "share of busy samples",
        "ns": "time waited per boot",
        "cycles": "cycles waited per operation",
    }
    return named.get(unit, f"instructions per {operation or 'operation'}")


def _summary(claims: tuple[ClaimedFunction, ...]) -> str:
    """Count the functions by verdict: "3 functions in the diff: 1 changed, 2 not in the profiles"."""
    words = {CHANGED: "changed", UNCHANGED: "did not change", UNSEEN: "not in the profiles"}
    counts = {word: sum(claim.verdict == verdict for claim in claims) for verdict, word in words.items()}
    text = ", ".join(f"{amount} {word}" for word, amount in counts.items() if amount)
    return f"{count(len(claims), 'function')} in the diff: {text}"


def _line(claim: ClaimedFunction, measured: Measured, unit: Unit) -> dict[str, Any]:
    return {
        "function": claim.function,
        "place": measured.line or claim.path,
        "hunks": claim.hunks,
        "symbol": measured.symbol,
        "measured": _measured(claim, measured, unit),
        "changed": claim.verdict == CHANGED,
        "before": _amount(measured.before, unit),
        "after": _amount(measured.after, unit),
    }


def _measured(claim: ClaimedFunction, measured: Measured, unit: Unit) -> str:
    if claim.verdict == UNCHANGED:
        if unit != "instructions":
            return "no significant change"
        same = measured.before == measured.after
        return "the same number of instructions" if same else "differs by no more than boots of one kernel do"
    return "changed, including its callees" if measured.children else "changed"


def _amount(value: float, unit: Unit) -> str:
    if unit == "samples":
        return share(value, 1.0)
    return counted(value) if unit == "instructions" else quantity(value, "ns" if unit == "ns" else "")


def counted(value: float) -> str:
    """Return a count per operation: whole numbers as they are, others with two decimals, or two digits below 0.01."""
    if value == round(value):
        text = f"{value:,.0f}"
    elif abs(value) >= 0.01:
        text = f"{value:,.2f}"
    else:
        text = f"{value:.2g}"
    return text.replace(",", _THIN).replace("-", _MINUS)
