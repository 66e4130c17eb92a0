# SPDX-License-Identifier: GPL-2.0-or-later
"""Turn pydantic's validation errors into one line that says what to correct."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from lab.errors import SpecError

SHOWN = 80
_NAME_LENGTH = 60
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
# What a pattern of a model allows, in words instead of a regular expression.
PATTERNS: Mapping[str, str] = {
    _NAME: "use letters, digits, dots, dashes and underscores, and begin with a letter or digit",
    r"^[^\x00-\x1f]*$": "write one line without control characters",
    r"^[0-9a-f]*$": "write hexadecimal digits",
    r"^[^\s\x00-\x1f.-][^\s\x00-\x1f]*\.\.[^\s\x00-\x1f.-][^\s\x00-\x1f]*$": "write base..tip without blanks",
    r"^[^\s\x00-\x1f-]?[^\s\x00-\x1f]*$": "write a revision without blanks, which does not begin with a dash",
    r"^[^\x00-\x20\x7f]+$": "write it without blanks and control characters",
    r"^[^\x00-\x1f\x7f]+$": "write it without control characters",
    r"^[a-z_]+$": "use lower-case letters and underscores",
    r"^[A-Za-z0-9._/:-]*$": "use letters, digits and . _ / : -",
    r"^ttyS[0-9](,[0-9]{4,7}[noe]?[78]?)?$": "write it as ttyS0 or ttyS0,115200n8",
    r"^[a-z0-9]{1,15}$": "use 1 to 15 lower-case letters and digits",
}
_LENGTHS = {
    "string_too_short": "enter at least",
    "string_too_long": "enter at most",
    "too_short": "give at least",
    "too_long": "give at most",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_NO_NUMBER, _NO_LIST, _NO_TABLE = "is not a whole number", "is not a list", "is not a table of fields"
_KINDS = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _NO_NUMBER),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "is not a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "is neither true nor false"),
    **dict.fromkeys(("string_type", "string_unicode", "string_sub_type"), "is not text"),
    **dict.fromkeys(("tuple_type", "list_type", "set_type"), _NO_LIST),
    **dict.fromkeys(("dict_type", "mapping_type", "model_type", "model_attributes_type"), _NO_TABLE),
}
# The beginning of a line of ours: `patches[0].text: …`, `cases is missing`.
_PLACE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d+\])*)(?:: | is missing)")
# More are not read; each is compared with all valid names.
MOST_FAULTS = 50
# Comparing is quadratic in the length of a name.
LONGEST_COMPARED = 60


def fault_lines(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Return the faults of a validation error as lines that name their fields, at most MOST_FAULTS."""
    faults = error.errors(include_url=False)
    return list(dict.fromkeys(fault_line(dict(fault), model) for fault in faults[:MOST_FAULTS]))


def as_error(lines: Sequence[str]) -> SpecError:
    """Return a SpecError of some faults: the first one in its line, all of them in detail."""
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    return SpecError(lines[0] + more, detail="\n".join(lines[:MOST_FAULTS]))


def lines_of(error: SpecError) -> list[str]:
    """Return the faults of an error that `as_error` made, or the one line of any other."""
    lines = error.detail.splitlines()
    return lines if lines and str(error).startswith(lines[0]) else [str(error)]


def place_of(line: str) -> str:
    """Return the field at the beginning of a line of a SpecError, as a description writes it; "" for none."""
    match = _PLACE.match(line)
    return match[1] if match else ""


def nearest(value: str, valid: Iterable[str]) -> str:
    """Return the valid values, led by a question if one of them is near."""
    names = list(valid)
    near = get_close_matches(value[:LONGEST_COMPARED], names, n=1, cutoff=0.5)
    question = f'did you mean "{near[0]}"? ' if near else ""
    return f"{question}valid: {', '.join(names)}"


def fault_line(fault: dict[str, Any], model: type[BaseModel]) -> str:
    """One fault of pydantic's as a line that names the field."""
    loc = tuple(fault["loc"])
    kind, value, context = fault["type"], fault["input"], fault.get("ctx", {})
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
        return f"{where}: {shown_value(value)} is not valid; {nearest(str(value), valid)}"
    if kind == "string_pattern_mismatch":
        allowed = PATTERNS.get(context["pattern"], "")
        near = _proposal(str(value)) if context["pattern"] == _NAME else ""
        return (
            f"{where}: {shown_value(value)} has characters that are not allowed there"
            + (allowed and f"; {allowed}")
            + near
        )
    return f"{where}: {_in_words(kind, value, context)}" if where else _in_words(kind, value, context)


def _in_words(kind: str, value: Any, context: Mapping[str, Any]) -> str:
    """Return what is wrong with a value in plain words; pydantic's own are for programmers."""
    if kind in _LENGTHS:
        limit = context.get("min_length", context.get("max_length"))
        size = f", not {len(value):,}" if kind.endswith("_long") and hasattr(value, "__len__") else ""
        unit = ("entry", "entries") if kind in ("too_short", "too_long") else ("character", "characters")
        return f"{_LENGTHS[kind]} {limit:,} {unit[limit != 1]}{size}"
    if kind in _BOUNDS:
        sign, field = _BOUNDS[kind]
        return f"must be {sign} {context[field]}, not {shown_value(value)}"
    return f"{shown_value(value)} {_KINDS.get(kind, 'is not valid here')}"


def _proposal(name: str) -> str:
    """Return a question with the name that is nearest to an invalid one, "" where nothing is left of it."""
    near = valid_name(name)
    return f'; did you mean "{near}"?' if near else ""


def valid_name(name: str) -> str:
    """Return a name that is valid as it is, or the nearest to it that is; "" where nothing is left of it."""
    if re.fullmatch(_NAME, name) and len(name) <= _NAME_LENGTH:
        return name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:_NAME_LENGTH].strip("-._")


def shown_value(value: Any) -> str:
    """Return a value as a refusal quotes it: in one line of at most SHOWN characters."""
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
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)
