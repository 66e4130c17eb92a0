# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn pydantic's validation errors into one line that says what to correct."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from lab.errors import SpecError

SHOWN = 80
# Nobody reads more; each is compared with all valid names.
MOST_FAULTS = 50
# Comparing is quadratic in the length of a name.
LONGEST_COMPARED = 60


def explain(error: ValidationError, model: type[BaseModel]) -> SpecError:
    """Turn a validation error into a SpecError: the first fault in a line, all of them in detail."""
    faults = error.errors(include_url=False)
    lines = list(dict.fromkeys(fault_line(dict(fault), model) for fault in faults[:MOST_FAULTS]))
    others = len(lines) - 1 + max(0, len(faults) - MOST_FAULTS)
    more = f" (and {others} more)" if others else ""
    return SpecError(lines[0] + more, detail="\n".join(lines))


def nearest(value: str, valid: Iterable[str]) -> str:
    """Return the valid values, led by a question if one of them is near."""
    names = list(valid)
    near = get_close_matches(value[:LONGEST_COMPARED], names, n=1, cutoff=0.5)
    question = f'did you mean "{near[0]}"? ' if near else ""
    return f"{question}valid: {', '.join(names)}"


def fault_line(fault: dict[str, Any], model: type[BaseModel]) -> str:
    """One fault of pydantic's as a line that names the field."""
    loc = tuple(fault["loc"])
    kind, given, context = fault["type"], fault["input"], fault.get("ctx", {})
    if kind == "extra_forbidden":
        fields = _fields(model, loc[:-1])
        return f'{_path(loc[:-1]) or "the description"}: unknown field "{loc[-1]}"; {nearest(str(loc[-1]), fields)}'
    where = _path(loc)
    if kind == "missing":
        return f"{where} is missing"
    if kind == "value_error":
        return f"{where}: {context['error']}" if where else str(context["error"])
    if kind == "literal_error":
        valid = [part.strip().strip("'") for part in context["expected"].replace(" or ", ", ").split(",")]
        return f"{where}: {_shown(given)} is not valid; {nearest(str(given), valid)}"
    if kind == "string_pattern_mismatch":
        return f"{where}: {_shown(given)} has characters that are not allowed there ({context['pattern']})"
    message = fault["msg"][:1].lower() + fault["msg"][1:]
    return f"{where}: {_shown(given)}: {message}"


def _shown(value: Any) -> str:
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _path(loc: tuple[int | str, ...]) -> str:
    """("patches", 0, "name") → patches[0].name; pydantic's own names of union members are left out."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.isidentifier() and part not in {"bool", "int", "float", "str"}:
            path += f".{part}" if path else part
    return path


def _fields(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The fields of the part of the model that `loc` leads to."""
    for part in loc:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    # Written as a file name, stored as a text: a person gives `file`.
    return ["file" if name == "origin" else name for name in model.model_fields]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
