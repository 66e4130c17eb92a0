# SPDX-License-Identifier: GPL-2.0-or-later
"""The form filled from an experiment's description, to be changed and submitted as another one. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from web.forms import Typed, TypedCase, TypedSwitch


def typed_from(
    description: Mapping[str, Any], texts: Mapping[str, str], *, origin: int
) -> tuple[Typed, tuple[str, ...]]:
    """The form, and lines about what it cannot say. texts: of switches by name, for those without one of their own."""
    patches = description.get("patches", ())
    cases: dict[str, TypedCase] = {}
    left_out: list[str] = []
    for case in description.get("cases", ()):
        name = case["workload"]
        if name in cases:
            left_out.append(
                f"{name} a second time ({case.get('preset', '')}): the form has each workload once"
            )
            continue
        if "profile" in case:
            left_out.append(f"whether {name} is profiled: the form says it of all cases together")
        params = "\n".join(_line(key, value) for key, value in case.get("params", {}).items())
        cases[name] = TypedCase(True, case.get("preset", "small"), params)
    measure = description.get("measure", {})
    named = [one for one in patches if one.get("catalog")]
    left_out += [
        f"the name {one['name']} of {one['catalog']}, and what it requires or excludes"
        for one in named
        if one.get("name") not in (None, one["catalog"]) or one.get("requires") or one.get("excludes")
    ]
    typed = Typed(
        name=description.get("name", ""),
        tree=description.get("tree", ""),
        git=description.get("git", ""),
        base=description.get("base", ""),
        design=description.get("design", "full"),
        target=description.get("target", ""),
        catalog=tuple(one["catalog"] for one in named),
        patches=tuple(_switches((one for one in patches if not one.get("catalog")), texts)),
        configs=tuple(_switches(description.get("configs", ()), texts)),
        cases=cases,
        clock=measure.get("clock", "wall"),
        boots=str(measure.get("boots", 10)),
        iterations=str(measure.get("iterations", 5)),
        warmup=str(measure.get("warmup", 1)),
        seed=str(measure.get("seed", 1)),
        profile_boots=str(measure.get("profile_boots", 3)),
        placebo=bool(measure.get("placebo")),
        profile=bool(measure.get("profile")),
        verify=bool(measure.get("verify")),
        origin=str(origin),
    )
    return typed, tuple(left_out)


def _switches(given: Any, texts: Mapping[str, str]) -> Iterator[TypedSwitch]:
    for one in given:
        text = one.get("text") or "\n".join(one.get("lines", ())) or texts.get(one["name"], "")
        yield TypedSwitch(
            name=one["name"],
            text=text,
            requires=", ".join(one.get("requires", ())),
            excludes=", ".join(one.get("excludes", ())),
            alternative=str(one.get("alternative", "")),
            partial=bool(one.get("partial")),
        )


def _line(key: str, value: Any) -> str:
    """A parameter as `read_params` reads it back: as TOML has it."""
    if isinstance(value, bool):
        return f"{key} = {str(value).lower()}"
    if isinstance(value, list | tuple):
        return f"{key} = [{', '.join(_value(one) for one in value)}]"
    return f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    return (
        '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else str(value)
    )
