# SPDX-License-Identifier: GPL-2.0-or-later
"""Fill plain data from the attributes of an object that have the same names."""

from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def attributes(source: object, names: Iterable[str]) -> dict[str, Any]:
    """Return attributes of an object by name."""
    return {name: getattr(source, name) for name in names}


def from_attributes(shape: type[T], source: object, **others: Any) -> T:
    """Return a dataclass or a TypedDict filled from an object's attributes, except for the fields in others; in the order of its fields."""
    names = shape.__annotations__
    values = {name: others.pop(name) if name in others else getattr(source, name) for name in names}
    make: Any = shape
    return make(**values, **others)  # type: ignore[no-any-return]
