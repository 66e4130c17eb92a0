# SPDX-License-Identifier: GPL-2.0-or-later
"""Make text and JSON from machines and strangers storable in any database."""

import math
from collections.abc import Mapping
from typing import Any


def storable_text(text: str, limit: int | None = None) -> str:
    """Return a text without what PostgreSQL cannot store: NUL, and lone surrogates; cut to `limit`."""
    whole = (
        text.encode("utf-8", "replace").decode()
        if any("\ud800" <= sign <= "\udfff" for sign in text)
        else text
    )
    return whole.replace("\0", "\N{SYMBOL FOR NULL}")[:limit]


def storable(value: Any) -> Any:
    """Return a JSON value that can be stored: texts as above, and null for floats that are not finite."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {storable_text(str(key)): storable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [storable(part) for part in value]
    return value
