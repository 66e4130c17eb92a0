# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits on the size of a description, checked before it is parsed, in linear time.

tomllib takes quadratic time for a key of many dotted parts, and pydantic seconds for thousands of unknown fields: so the text
of a TOML file is scanned for its shape first, and the values of JSON or TOML are counted before they are validated.
"""

import re
from collections.abc import Mapping
from typing import Any

from lab.errors import SpecError

TOML_BYTES = 16 << 20
# Of a TOML file without its strings and comments.
TOML_BARE_BYTES = 512 << 10
KEY_PARTS = 8
DEPTH = 8
FIELDS = 200
ITEMS = 1000
VALUES = 30_000
KEY_LENGTH = 200
DIGITS = 40

# Strings and comments as wholes, else the characters that give a file its shape. Possessive, so that nothing is tried twice.
_TOKEN = re.compile(
    r"""
    (?P<string>
        \"\"\"(?:[^"\\]|\\.|"(?!""))*+(?:\"\"\"|\Z)
      | '''(?:[^']|'(?!''))*+(?:'''|\Z)
      | "(?:[^"\\\n]|\\.)*+(?:"|\n|\Z)
      | '[^'\n]*+(?:'|\n|\Z)
    )
  | (?P<comment>\#[^\n]*+)
  | (?P<open>[\[{])
  | (?P<close>[\]}])
  | (?P<dot>\.)
  | (?P<end>[\n=,])
  | (?P<digits>[0-9_]++)
  | [^"'\#\[\]{}.\n=,0-9_]++
  | _
    """,
    re.VERBOSE | re.DOTALL,
)


def check_toml(text: str) -> None:
    """Refuse a TOML file whose shape would be expensive to parse, without parsing it. Raises SpecError with the line."""
    if len(text) > TOML_BYTES:
        raise _wrong(f"it is larger than {TOML_BYTES >> 20} MiB")
    depth = dots = bare = 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind in ("string", "comment"):
            continue
        bare += token.end() - token.start()
        depth += (kind == "open") - (kind == "close")
        dots = 0 if kind in ("end", "open", "close") else dots + (kind == "dot")
        if kind == "digits" and token.end() - token.start() > DIGITS:
            raise _wrong(f"a number has more than {DIGITS} digits", text, token.start())
        if depth > DEPTH:
            raise _wrong(f"brackets are nested more than {DEPTH} deep", text, token.start())
        if dots >= KEY_PARTS:
            raise _wrong(f"a key has more than {KEY_PARTS} parts", text, token.start())
        if bare > TOML_BARE_BYTES:
            raise _wrong(
                f"without its texts it is larger than {TOML_BARE_BYTES >> 10} KiB", text, token.start()
            )


def check_values(description: Any) -> None:
    """Refuse a description of too many values, too deep, or with too long a key, before it is validated. Raises SpecError."""
    left = VALUES
    waiting: list[tuple[Any, int]] = [(description, 0)]
    while waiting:
        value, depth = waiting.pop()
        left -= 1
        if left < 0:
            raise SpecError(f"the description has more than {VALUES:,} values; send the experiment alone")
        if depth > DEPTH:
            raise SpecError(f"the description is nested more than {DEPTH} deep; see its schema")
        if isinstance(value, Mapping):
            _check_fields(value)
            waiting += [(part, depth + 1) for part in value.values()]
        elif isinstance(value, list | tuple):
            if len(value) > ITEMS:
                raise SpecError(
                    f"a list of the description has {len(value):,} items, at most {ITEMS:,} are allowed"
                )
            waiting += [(part, depth + 1) for part in value]
        elif isinstance(value, int) and abs(value) >= 1 << 63:
            raise SpecError("a number of the description does not fit into 64 bits")
        elif isinstance(value, float) and abs(value) == float("inf"):
            raise SpecError("a number of the description is larger than a double can be")


def _check_fields(fields: Mapping[Any, Any]) -> None:
    if len(fields) > FIELDS:
        raise SpecError(f"a part of the description has {len(fields):,} fields, at most {FIELDS} are allowed")
    for name in fields:
        if len(str(name)) > KEY_LENGTH:
            raise SpecError(f'the field "{str(name)[:40]}…" has a name of more than {KEY_LENGTH} characters')


def _wrong(why: str, text: str = "", place: int = 0) -> SpecError:
    where = f" (line {text.count(chr(10), 0, place) + 1})" if text else ""
    return SpecError(f"the description cannot be read as TOML: {why}{where}")
