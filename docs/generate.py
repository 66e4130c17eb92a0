# SPDX-License-Identifier: GPL-2.0-or-later
"""Reference pages that are read off the code, so that they cannot be out of date: `docs/reference/*.md`.

A Sphinx extension that writes them before each build; nothing of them is committed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PLACE = Path(__file__).resolve().parent / "reference"
_METHODS = ("get", "post", "put", "patch", "delete")


def setup(app: Any) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("builder-inited", lambda _: write_pages())
    return {"parallel_read_safe": True}


def write_pages() -> None:
    """Write all four pages; those that did not change keep their date."""
    PLACE.mkdir(parents=True, exist_ok=True)
    pages = {
        "description": description_page,
        "metrics": metrics_page,
        "labctl": labctl_page,
        "api": api_page,
    }
    for name, page in pages.items():
        file, text = PLACE / f"{name}.md", page()
        if not file.exists() or file.read_text() != text:
            file.write_text(text)


def description_page() -> str:
    """Every field of an experiment's description, by table."""
    from lab.experiments.spec import ExperimentSpec

    schema = ExperimentSpec.model_json_schema()
    parts = [
        "# The experiment description",
        "One description for file, form and API: TOML in a file, JSON over REST. Unknown fields are errors.",
        'In a file, `file = "0001-my.patch"` of a patch stands for its `text`; paths are relative to the file.',
        *_table("The experiment", schema),
    ]
    for name, title in (
        ("PatchSpec", "`[[patches]]`"),
        ("ConfigSpec", "`[[configs]]`"),
        ("CaseSpec", "`[[cases]]`"),
        ("MeasureSpec", "`[measure]`"),
    ):
        parts += _table(title, schema["$defs"][name])
    return "\n\n".join(parts) + "\n"


def _table(title: str, part: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {title}"
    yield _escaped(str(part.get("description", "")))
    required = part.get("required", [])
    rows = ["| field | type | default | what |", "|---|---|---|---|"]
    for field, about in part["properties"].items():
        default = "required" if field in required else f"`{_default(about)}`" if "default" in about else ""
        rows.append(f"| `{field}` | {_type(about)} | {default} | {_escaped(about.get('description', ''))} |")
    yield "\n".join(rows)


def _default(about: Mapping[str, Any]) -> str:
    """As it is written in TOML; what has no value there is "none"."""
    value = about["default"]
    if value is None:
        return "none"
    if isinstance(value, dict):
        return "as below"
    return str(value).lower() if isinstance(value, bool) else str(value) or '""'


def _type(about: Mapping[str, Any]) -> str:
    """A JSON schema's type in words."""
    if "enum" in about:
        return ", ".join(f"`{value}`" for value in about["enum"])
    if "const" in about:
        return f"`{about['const']}`"
    if "anyOf" in about:
        return " or ".join(
            dict.fromkeys(
                _type(alternative) for alternative in about["anyOf"] if alternative.get("type") != "null"
            )
        )
    if "$ref" in about:
        return "table"
    word = {"array": "list", "object": "table", "boolean": "true or false"}.get(
        about.get("type", ""), about.get("type", "any")
    )
    bounds = [f"{sign} {about[key]}" for key, sign in (("minimum", "≥"), ("maximum", "≤")) if key in about]
    return f"{word} {' and '.join(bounds)}".strip()


def metrics_page() -> str:
    """Every workload with its presets, parameters and metrics."""
    from workloads.catalog import load_catalog

    parts = ["# Workloads and metrics", "A metric's margin is the change below which it counts as unchanged."]
    for name, workload in sorted(load_catalog().items()):
        parts += [f"## {name}", _escaped(workload.summary) + "."]
        parts.append("Presets: " + ", ".join(f"`{preset}`" for preset in workload.presets) + ".")
        rows = ["| parameter | default | what |", "|---|---|---|"]
        rows += [
            f"| `{param.name}` | `{param.default}` | {_escaped(param.help)} |"
            for param in workload.params.values()
        ]
        parts.append("\n".join(rows))
        rows = ["| metric | unit | better | margin | primary |", "|---|---|---|---|---|"]
        rows += [
            f"| `{metric.name}` | {metric.unit} | {metric.better} | {metric.margin:.1%} | {'yes' if metric.primary else ''} |"
            for metric in workload.metrics.values()
        ]
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"


def labctl_page() -> str:
    """Return the page with the help of every command of labctl."""
    from typer.main import get_group

    from workers.labctl import cli

    group = get_group(cli)
    parts = ["# labctl", *filter(None, (group.help, group.epilog))]
    for name, command in _commands(group, "labctl"):
        parts += [f"## {name}", _escaped(command.help or "")]
        rows = ["| argument or option | what |", "|---|---|"]
        rows += [
            f"| {_escaped(_spelled(param))} | {_escaped(getattr(param, 'help', None) or '')} |"
            for param in command.params
            if param.name != "help"
        ]
        parts += ["\n".join(rows)] if len(rows) > 2 else []
    return "\n\n".join(parts) + "\n"


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command below a group, those that are loaded late too."""
    from workers.ctl.lazy_commands import load

    places = getattr(group, "places", {})
    for name in group.list_commands(None):
        place = places.get(name)
        command = load(place, name) if isinstance(place, str) else group.commands[name]
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _spelled(param: Any) -> str:
    """Return the notation of a parameter: `--boots N|auto`, `FILE`."""
    if param.param_type_name == "argument":
        return f"`{param.metavar or param.name.upper()}`"
    names = "`, `".join([*param.opts, *param.secondary_opts])
    value = "" if param.is_flag else f" {param.metavar or param.name.upper()}"
    return f"`{names}{value}`"


def api_page() -> str:
    """Every address of the REST API, from its OpenAPI schema."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lab.settings")
    import django

    django.setup()
    from drf_spectacular.generators import SchemaGenerator

    # The library has no types.
    generator: Any = SchemaGenerator
    schema = generator().get_schema(request=None, public=True)
    parts = [
        "# REST API",
        "`/api/v1/schema/` is the same as OpenAPI. Errors are problem documents (RFC 9457) that name the field.",
        "| method | address | what |\n|---|---|---|\n" + "\n".join(_operations(schema["paths"])),
    ]
    return "\n\n".join(parts) + "\n"


def _operations(paths: Mapping[str, Any]) -> Iterator[str]:
    for address, item in paths.items():
        for method in _METHODS:
            if method in item:
                said = item[method].get("summary") or item[method].get("description", "")
                first = _escaped(said.strip().split("\n")[0])
                yield f"| {method.upper()} | `{address}` | {first} |"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
