# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON that a guest sent: one object, in bounds that every place it goes to can keep.

Python's reader takes more than JSON has (NaN, keys twice, numbers of any length, any depth that fits its stack), and
databases take less. All of it is refused by name here.
"""

import json
import math
from typing import Any

from workloads.errors import OutputUnreadable

MOST_BYTES = 16 << 20
MOST_DEPTH = 16
MOST_VALUES = 1 << 18
"""Values and keys of one object, at any depth: a histogram of 100 ms has some 100,000."""
_DIGITS = 18
_MOST_DETAIL = 2000


def read_object(text: bytes, what: str) -> dict[str, Any]:
    """Return the JSON object in a text. what: names the text in messages. Raises OutputUnreadable."""
    if len(text) > MOST_BYTES:
        raise OutputUnreadable(f"{what} has {len(text)} bytes of JSON, at most {MOST_BYTES} are read")
    try:
        value = json.loads(
            text.decode(), parse_constant=_no_constant, parse_int=_integer, parse_float=_finite,
            object_pairs_hook=_unique,
        )  # fmt: skip
        _check_bounds(value)
    except RecursionError:
        raise OutputUnreadable(f"{what} is nested deeper than {MOST_DEPTH} levels", _detail(text)) from None
    except ValueError as exc:
        raise OutputUnreadable(f"{what} is not JSON: {_line(exc)}", _detail(text)) from exc
    if not isinstance(value, dict):
        raise OutputUnreadable(f"{what} is not a JSON object", _detail(text))
    return value


def _check_bounds(value: Any) -> None:
    level, seen, depth = [value], 0, 0
    while level:
        seen += len(level)
        depth += 1
        if depth > MOST_DEPTH:
            raise ValueError(f"it is nested deeper than {MOST_DEPTH} levels")
        inner: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                inner += part.values()
            elif isinstance(part, list):
                inner += part
            elif isinstance(part, str) and not part.isascii():
                # Half of a character, which no database and no terminal takes.
                part.encode()
        if seen + len(inner) > MOST_VALUES:
            raise ValueError(f"it has more than {MOST_VALUES} values")
        level = inner


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"it has a whole number of {len(digits)} digits")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("it has a number too large for a float")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("it has a key twice")
    for name in mapping:
        if not name.isprintable() or len(name) > 200:
            raise ValueError("it has a key that is too long or cannot be printed")
    return mapping


def _line(exc: ValueError) -> str:
    """The reason without what a terminal would obey."""
    if isinstance(exc, UnicodeError):
        return "it is not UTF-8"
    return "".join(sign if sign.isprintable() else "?" for sign in str(exc))[:200]


def _detail(text: bytes) -> str:
    return text[:_MOST_DETAIL].decode(errors="replace")
