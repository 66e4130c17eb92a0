# SPDX-License-Identifier: GPL-2.0-or-later
"""The form filled from an experiment's description, to be changed and submitted as another one. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from lab.experiments.measure import BY_NAME, QUESTIONS
from lab.experiments.spec import LINE_SWITCHES
from web.forms import TypedCase, TypedForm, TypedSwitch

_CANNOT = "The form cannot say {}. The description at the end of this page does."


def typed_from(
    description: Mapping[str, Any], texts: Mapping[str, str], *, origin: int
) -> tuple[TypedForm, tuple[str, ...]]:
    """Return the filled form, and a sentence for each part of the description that it does not keep as it is.

    texts: of switches by name, as they were submitted: a range of commits is filled in as its text.
    """
    patches = description.get("patches", ())
    cases, sentences = _cases(description)
    sentences += _changed(description, texts)
    measure = description.get("measure", {})
    ticked = [patch for patch in patches if _is_ticked(patch)]
    typed = TypedForm(
        name=description.get("name", ""),
        tree=description.get("tree", ""),
        git=description.get("git", ""),
        base=description.get("base", ""),
        design=description.get("design", "full"),
        target=description.get("target", ""),
        catalog=tuple(patch["catalog"] for patch in ticked),
        patches=tuple(_switches((patch for patch in patches if not _is_ticked(patch)), texts)),
        lines={field: tuple(_switches(description.get(field, ()), texts)) for field in LINE_SWITCHES},
        cases=cases,
        measure={
            question.name: question.typed(measure.get(question.name, question.default))
            for question in QUESTIONS
        },
        origin=str(origin),
    )
    return typed, tuple(sentences)


def _cases(description: Mapping[str, Any]) -> tuple[dict[str, TypedCase], list[str]]:
    """Return the rows of the workloads, and a sentence for each case that has no row."""
    cases: dict[str, TypedCase] = {}
    sentences = []
    for case in description.get("cases", ()):
        name = case["workload"]
        if name in cases:
            again = f"{name} a second time ({case.get('preset', '')}): the form has each workload once"
            sentences.append(_CANNOT.format(again))
            continue
        params = "\n".join(_line(key, value) for key, value in case.get("params", {}).items())
        own = case.get("profile")
        profile = "" if own is None else BY_NAME["profile"].typed(own)
        cases[name] = TypedCase(True, case.get("preset", "small"), params, profile)
    return cases, sentences


def _changed(description: Mapping[str, Any], texts: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each part that the form says in another way, or not at all."""
    if "reproduces" in description:
        number = description["reproduces"].get("experiment", "")
        yield _CANNOT.format(f"that it repeats experiment {number} of the lab it was measured in")
    for patch in description.get("patches", ()):
        if patch.get("range") and texts.get(patch["name"]):
            yield f"{patch['name']} is the range {patch['range']}; its commits are filled in as they were then."


def _is_ticked(patch: Mapping[str, Any]) -> bool:
    """Return whether a tick in the form's catalogue describes a patch completely; others are filled into a slot."""
    name = patch.get("catalog")
    rest = {key for key, value in patch.items() if value and key not in ("catalog", "name")}
    return bool(name) and patch.get("name") in (None, name) and not rest


def _switches(switches: Any, texts: Mapping[str, str]) -> Iterator[TypedSwitch]:
    for switch in switches:
        text = switch.get("text") or "\n".join(switch.get("lines", ()))
        if not text and not switch.get("catalog"):
            text = texts.get(switch["name"], "")
        yield TypedSwitch(
            name=switch["name"],
            text=text,
            requires=", ".join(switch.get("requires", ())),
            excludes=", ".join(switch.get("excludes", ())),
            alternative=str(switch.get("alternative", "")),
            partial=bool(switch.get("partial")),
            range="" if text else switch.get("range") or "",
            catalog=switch.get("catalog") or "",
        )


def _line(key: str, value: Any) -> str:
    """Return a parameter as TOML, which `read_params` reads back."""
    if isinstance(value, bool):
        return f"{key} = {str(value).lower()}"
    if isinstance(value, list | tuple):
        return f"{key} = [{', '.join(_value(member) for member in value)}]"
    if isinstance(value, Mapping):
        return f"{key} = {{ {', '.join(_line(name, member) for name, member in value.items())} }}"
    return f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    return (
        '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else str(value)
    )
