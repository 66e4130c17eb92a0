# SPDX-License-Identifier: GPL-2.0-or-later
"""The REST API for reading: the OpenAPI schema as groups of calls, each with its parameters, body and answer."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator

_METHODS = ("get", "post", "put", "patch", "delete")
# A shape within a shape within a shape is named, not opened; its own entry shows it.
_DEPTH = 3
Schema = Mapping[str, Any]


@cache
def api_page() -> dict[str, Any]:
    """Return all calls by group, and the named shapes that their outlines mention.

    The schema is the program's own, so each process makes it once.
    """
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in schema["paths"].items():
        for method in _METHODS:
            if method in methods:
                call = _call(path, method, methods[method])
                groups.setdefault(methods[method].get("tags", ["other"])[0], []).append(call)
    shapes = schema["components"]["schemas"].items()
    return {
        "version": schema["openapi"],
        "groups": sorted(groups.items()),
        "shapes": [(name, outline(shape)) for name, shape in shapes if not name.startswith("Paginated")],
    }


def _call(path: str, method: str, described: Schema) -> dict[str, Any]:
    """Return one method of one address. body, answer: outlines of the JSON, "" for none."""
    answers = described.get("responses", {})
    good: Schema = next((answer for status, answer in answers.items() if status.startswith("2")), {})
    return {
        "key": described["operationId"],
        "method": method.upper(),
        "path": path,
        "text": " ".join(described.get("description", "").split()),
        "parameters": [_parameter(parameter) for parameter in described.get("parameters", ())],
        "body": _content(described.get("requestBody", {})),
        "answer": _content(good),
        "statuses": ", ".join(sorted(answers)),
        "writes": method != "get",
    }


def _parameter(described: Schema) -> dict[str, Any]:
    return {
        "name": described["name"],
        "place": described["in"],
        "type": outline(described.get("schema", {})),
        "text": described.get("description", ""),
        "required": described.get("required", False),
    }


def _content(described: Schema) -> str:
    for media, content in described.get("content", {}).items():
        return outline(content.get("schema", {})) if "json" in media else media
    return ""


def outline(schema: Schema, depth: int = 0) -> str:
    """Return a JSON schema as an indented outline: the shape of the JSON, with types for values."""
    if "$ref" in schema:
        return _named(schema["$ref"])
    for several in ("oneOf", "anyOf", "allOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(outline(alternative, depth) for alternative in schema[several]))
    if "enum" in schema:
        return " | ".join("null" if value is None else f'"{value}"' for value in schema["enum"])
    if schema.get("properties"):
        return _object(schema, depth)
    if "items" in schema:
        return f"[{outline(schema['items'], depth)}]"
    return _plain(schema)


def _named(reference: str) -> str:
    """Return a shape's name; a page of a list is written as what it holds."""
    name = reference.rpartition("/")[2]
    if name.startswith("Paginated") and name.endswith("List"):
        row = name.removeprefix("Paginated").removesuffix("List")
        return f"{{count, next, previous, results: [{row}]}}"
    return name


def _object(schema: Schema, depth: int) -> str:
    if depth == _DEPTH:
        return "{…}"
    inner = "  " * (depth + 1)
    lines = [f"{inner}{name}: {outline(field, depth + 1)}" for name, field in schema["properties"].items()]
    return "\n".join(["{", *lines, "  " * depth + "}"])


def _plain(schema: Schema) -> str:
    kind = schema.get("type", "any")
    name = " | ".join(kind) if isinstance(kind, list) else str(kind)
    return f"{name} ({schema['format']})" if "format" in schema else name
