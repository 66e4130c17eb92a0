# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers, and the conclusion of an experiment, as people read them. Pure: values in, text out."""

import math
import re
from collections.abc import Mapping, Sequence

from lab import figures
from lab.comparisons.shape import ConclusionData

NONE = "–"
_MINUS = "\N{MINUS SIGN}"
_THIN = "\N{NARROW NO-BREAK SPACE}"
SPACE = "\N{NO-BREAK SPACE}"
_TIMES = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def number(value: float | None) -> str:
    """Return four significant digits, thousands set apart: 0.03771, 46.12, 890.9, 12 345."""
    return _typographic(figures.number(value))


def mark_labels(values: Sequence[float]) -> list[str]:
    """Return the labels of an axis's evenly spaced marks, with the digits in which neighbours differ: 114.02, 114.03."""
    labels = [number(value) for value in values]
    if len(set(labels)) == len(labels):
        return labels
    places = max(0, -math.floor(math.log10(values[1] - values[0]) + 1e-9))
    return [_typographic(f"{value:,.{places}f}") for value in values]


def _typographic(text: str) -> str:
    """Replace the signs of lab/figures.py by those of print."""
    return NONE if text == figures.NONE else text.replace(",", _THIN).replace("-", _MINUS)


def quantity(value: float | None, unit: str) -> str:
    """A value in its unit; times move to the unit in which they are short: 1234567 ns is 1.235 ms."""
    if value is None or not math.isfinite(value):
        return NONE
    unit = "µs" if unit == "us" else unit
    size = abs(value)
    if unit in _TIMES and (size >= 10_000 or 0 < size < 0.1) and not (unit == "s" and size >= 1):
        seconds = value * _TIMES[unit]
        unit = next((name for name in ("s", "ms", "µs") if abs(seconds) >= _TIMES[name]), "ns")
        value = seconds / _TIMES[unit]
    return f"{number(value)}{SPACE}{unit}" if unit else number(value)


def between(low: float, high: float, unit: str) -> str:
    """Both ends of an interval, their unit said once if it is the same: 1.2 to 3.4 ms, 980 µs to 1.02 ms."""
    low_text, high_text = quantity(low, unit), quantity(high, unit)
    (low_number, _, low_unit), high_unit = low_text.rpartition(SPACE), high_text.rpartition(SPACE)[2]
    return f"{low_number if unit and low_unit == high_unit else low_text} to {high_text}"


def times_between(low: float | None, high: float | None) -> str:
    """An interval of nanoseconds, both ends in the unit of the upper one: "1.2 to 3.4 ms"; nothing without ends."""
    if low is None or high is None:
        return ""
    text = quantity(high, "ns")
    unit = text.rpartition(SPACE)[2]
    # Digits that the upper end does not have would say nothing.
    step = 10.0 ** (math.floor(math.log10(high)) - 3) if high > 0 else 1.0
    low = round(low / step) * step
    return f"{number(low * _TIMES['ns'] / _TIMES[unit])} to {text}"


def change(ratio: float | None, *, fine: bool = False) -> str:
    """Return a ratio against the base as a signed change: 0.47 is −53.0 %, 1.0004 is +0.04 %."""
    return _typographic(figures.change(ratio, fine=fine)).replace("%", f"{SPACE}%")


def interval(low: float | None, high: float | None, *, fine: bool = False) -> str:
    """Return the ends of an interval of ratios as changes: +1.0 % to +3.2 %; "" where one is missing."""
    return "" if low is None or high is None else f"{change(low, fine=fine)} to {change(high, fine=fine)}"


def prose(text: str) -> str:
    """Return a sentence with its numbers in the signs of print: −45.1 %, 1 825."""
    text = re.sub(r"(?<![\w.])-(?=\d)", _MINUS, text)
    return re.sub(r"(?<=\d)%", f"{SPACE}%", re.sub(r"(?<=\d),(?=\d{3})", _THIN, text))


def share(part: float, whole: float) -> str:
    """A share of samples in percent."""
    return f"{100 * part / whole:.2f}{SPACE}%" if whole else NONE


def duration(seconds: float | None) -> str:
    """A span of time as one would say it: 0.72 s, 46 s, 12 min 5 s, 2 h 3 min."""
    return _typographic(figures.duration(seconds)).replace(" ", SPACE)


def count(amount: int, noun: str, many: str = "") -> str:
    """An amount with its noun: 1 boot, 5 boots."""
    return f"{number(amount)} {noun if amount == 1 else many or noun + 's'}"


def last_lines(text: str, lines: int) -> str:
    """The last lines of a log, without the blank ones at its end."""
    return "\n".join(text.rstrip().splitlines()[-lines:])


def settings(params: Mapping[str, object]) -> str:
    """Parameters as one would type them: threads=2, reading=false, blocks=1,4294967296."""
    return "  ".join(f"{name}={_typed(value)}" for name, value in params.items())


def _typed(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(_typed(member) for member in value)
    return str(value)


# The colour of the block by the outcome that counts most; none where nothing changed.
_TONES = (
    ("bad", {"regression", "mixed"}),
    ("warn", {"in-doubt", "inconclusive", "no-base", "not-booted", "not-built"}),
    ("good", {"improvement"}),
)


def conclusion_block(data: ConclusionData) -> dict[str, str]:
    """Return the block at the top of a page. tone: a notice's CSS class. body: how sure it is and why; next: what to do."""
    text, headline, step = data["text"], data["headline"], data["next"]["text"]
    body = text.removeprefix(headline).removesuffix(step).strip()
    words = {outcome["outcome"] for outcome in data["outcomes"]}
    tone = next((tone for tone, some in _TONES if words & some), "")
    return {"tone": tone, "headline": prose(headline), "body": prose(body), "next": prose(step)}
