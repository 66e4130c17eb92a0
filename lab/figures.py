# SPDX-License-Identifier: GPL-2.0-or-later
"""Round numbers for people: the page, the terminal and every export write the digits that these functions return.

The text is ASCII; web/words.py and workers/ctl/table_style.py replace signs and blanks by typographic ones.
"""

import math

NONE = "-"
_UNITS = (("d", 86_400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1))


def number(value: float | None) -> str:
    """Return four significant digits: 0.01235, 3.771, 890.9, 41,250; a dash where there is no number."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def percent(value: float | None, *, fine: bool = False) -> str:
    """Return a change in per cent with its sign: -53.0, +0.51, +1,234. fine: two digits, as exact counts deserve."""
    if value is None or not math.isfinite(value):
        return NONE
    if round(value, 2) == 0:
        return "0.00"
    size = abs(value)
    if size >= 1e9:
        return f"{value:+.1e}"
    digits = 2 if fine or size < 1 else 0 if size >= 1000 else 1
    return f"{value:+,.{digits}f}"


def change(ratio: float | None, *, fine: bool = False) -> str:
    """Return a ratio against the base as a signed change: 0.47 is -53.0%."""
    if ratio is None or not math.isfinite(ratio):
        return NONE
    return f"{percent(100 * (ratio - 1), fine=fine)}%"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: 1 boot, 1,825 boots."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float | None) -> str:
    """Return a span of time in at most two units: 0.72 s, 46 s, 12 min 5 s, 2 h 3 min, 3 d 4 h; a dash where there is none."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 59.5:
        return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.0f} s"
    unit, size, below, part = next(row for row in _UNITS if round(seconds) >= row[1])
    whole, rest = divmod(round(seconds / part), size // part)
    return f"{whole} {unit} {rest} {below}" if rest else f"{whole} {unit}"


def medians_ratio(base_median: float | None, median: float | None) -> float | None:
    """Return the ratio of two medians as a calculator gives it; None if there is none."""
    if base_median is None or median is None or not base_median:
        return None
    ratio = median / base_median
    return ratio if math.isfinite(ratio) else None


def medians_note(
    base_median: float | None,
    median: float | None,
    ratio: float | None,
    *,
    low: float | None = None,
    high: float | None = None,
    shown_base: float | None = None,
    fine: bool = False,
) -> str:
    """Return a note on why two medians and the change beside them differ, for the same line; empty where no reader would object.

    A change is estimated within blocks of boots, a median is taken over all blocks. A reader with a calculator objects
    where the medians make a change outside the interval, or one with the other sign, a hundredth or more apart (a
    thousandth of exact counts). shown_base: the base's median as the reader sees it; the A/A control has
    another one, since its base is the first boots of the base alone.
    """
    own = medians_ratio(base_median, median)
    if own is None or ratio is None:
        return ""
    alone = shown_base is not None and number(shown_base) != number(base_median)
    differ = change(own, fine=fine) != change(ratio, fine=fine) and _contradicts(
        own, ratio, low, high, fine=fine
    )
    against = f"against {number(base_median)}" if alone else "within blocks" if differ else ""
    return f"{against}; medians {change(own, fine=fine)}" if differ else against


def _contradicts(own: float, ratio: float, low: float | None, high: float | None, *, fine: bool) -> bool:
    """Return whether the medians' ratio contradicts an estimate; without an interval, a hundredth apart does."""
    apart = abs(own - ratio) >= (0.001 if fine else 0.01)
    if low is None or high is None:
        return apart
    return (apart and (own < 1) != (ratio < 1)) or not low <= own <= high
