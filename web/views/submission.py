# SPDX-License-Identifier: GPL-2.0-or-later
"""The submission form: one page, every fault beside the field it lies in, a preview before it is queued."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from lab.errors import LabError, SpecError
from lab.preview import Preview, preview_experiment
from lab.queries.choices import Choices, SwitchChoice, WorkloadChoice, submission_choices
from lab.spec import ExperimentSpec, read_spec, spec_from_mapping
from lab.submit import find_unfinished, submit_experiment
from web.forms import SLOTS, Typed, TypedCase, TypedSwitch, describe, read_form, sort_errors
from web.words import change, duration, settings

_EMPTY_SLOTS = 3
_CLOCKS = (
    ("wall", "wall: time, on this machine as it is"),
    ("instructions", "instructions: executed ones, the same in every boot"),
)
_DESIGNS = {
    "full": "every combination of the switches",
    "one-at-a-time": "each switch alone",
    "leave-one-out": "all switches, and all but each one",
    "cumulative": "the first, the first two, and so on",
}


@dataclass(frozen=True, slots=True)
class SwitchSlot:
    """One place to paste a patch or a fragment."""

    id: str
    number: int
    typed: TypedSwitch
    open: bool
    name_error: str
    text_error: str
    requires_error: str
    excludes_error: str
    alternative_error: str


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """One switch of the catalogue."""

    choice: SwitchChoice
    chosen: bool
    error: str


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One workload with what was chosen of it."""

    choice: WorkloadChoice
    presets: tuple[tuple[str, str], ...]
    typed: TypedCase
    error: str


@require_http_methods(["GET", "HEAD", "POST"])
def submit(request: HttpRequest) -> HttpResponse:
    """The empty form; a posted one becomes an experiment or comes back with its faults."""
    choices = submission_choices()
    if request.method != "POST":
        return _form(request, choices, _fresh(choices), {})
    if "toml" in request.POST:
        return _submit_toml(request, choices)
    typed, errors = read_form(request.POST.dict(), dict(request.POST.lists()), request.FILES.getlist("files"))
    description = describe(typed)
    errors = description.errors | errors
    try:
        spec = spec_from_mapping(description.mapping)
    except SpecError as exc:
        lines = (exc.detail or str(exc)).splitlines()
        return _form(request, choices, typed, sort_errors(lines, description.fields) | errors)
    if errors:
        return _form(request, choices, typed, errors)
    try:
        if "preview" in request.POST:
            return _form(request, choices, typed, {}, preview=preview_experiment(spec=spec))
        experiment = _accept(spec)
    except LabError as exc:
        told = sort_errors([str(exc)], description.fields)
        return _form(request, choices, typed, told, detail=exc.detail)
    return redirect("experiment", experiment)


def _submit_toml(request: HttpRequest, choices: Choices) -> HttpResponse:
    text = request.POST["toml"]
    try:
        spec = read_spec(text.encode(), None)
        if "preview" in request.POST:
            found = preview_experiment(spec=spec)
            return _form(request, choices, _fresh(choices), {}, toml=text, preview=found)
        experiment = _accept(spec)
    except LabError as exc:
        return _form(request, choices, _fresh(choices), {"toml": str(exc)}, toml=text, detail=exc.detail)
    return redirect("experiment", experiment)


def _accept(spec: ExperimentSpec) -> int:
    """Submit; a second click on the button leads to the experiment the first one made.

    Raises LabError for whatever the submission is to blame for.
    """
    same = find_unfinished(spec)
    return same.pk if same else submit_experiment(spec=spec).pk


def _fresh(choices: Choices) -> Typed:
    """The form before anything was typed: the first tree, the first target, no case ticked."""
    return Typed(
        tree=choices.trees[0].name if choices.trees else "",
        target=choices.targets[0] if choices.targets else "",
        cases={workload.name: TypedCase(preset="small") for workload in choices.workloads},
    )


def _form(
    request: HttpRequest,
    choices: Choices,
    typed: Typed,
    errors: dict[str, str],
    *,
    toml: str = "",
    detail: str = "",
    preview: Preview | None = None,
) -> HttpResponse:
    ctx = {
        "preview": preview,
        "preview_time": duration(preview.seconds) if preview else "",
        "detectable": [(one, change(1 + one.change) if one.change else "") for one in preview.detectable]
        if preview
        else [],
        "here": "submit",
        "choices": choices,
        "designs": [(name, _DESIGNS.get(name, "")) for name in choices.designs],
        "typed": typed,
        "errors": errors,
        "clocks": _CLOCKS,
        "told": [(key, _label(key), message) for key, message in errors.items()],
        "detail": detail,
        "toml": toml,
        "base_hint": next((t.default_revision for t in choices.trees if t.name == typed.tree), ""),
        "patches": _slots("patch", typed.patches, errors),
        "configs": _slots("config", typed.configs, errors)[: len(typed.configs) + 1],
        "catalog": [
            CatalogRow(one, one.name in typed.catalog, errors.get(f"catalog-{one.name}", ""))
            for one in choices.switches
        ],
        "cases": [
            CaseRow(
                choice=one,
                presets=tuple((preset.name, settings(preset.params)) for preset in one.presets),
                typed=typed.cases.get(one.name, TypedCase(preset="small")),
                error=errors.get(f"case-{one.name}", ""),
            )
            for one in choices.workloads
        ],
    }
    return render(request, "web/submission.html", ctx, status=422 if errors else 200)


def _label(key: str) -> str:
    """What a person calls a field: "patch-0-name" is "Patch 1, name"."""
    kind, _, rest = key.partition("-")
    number, _, part = rest.partition("-")
    if number.isdecimal() and part:
        return f"{kind.capitalize()} {int(number) + 1}, {part}"
    return rest if kind in ("case", "catalog") and rest else key.capitalize()


def _slots(kind: str, typed: tuple[TypedSwitch, ...], errors: dict[str, str]) -> list[SwitchSlot]:
    """What was pasted, then some empty places; the first empty one is open if nothing was pasted."""
    wanted = [*typed, *[TypedSwitch()] * _EMPTY_SLOTS][:SLOTS]
    slots = []
    for number, switch in enumerate(wanted):
        key = f"{kind}-{number}"
        slot = SwitchSlot(
            id=key,
            number=number + 1,
            typed=switch,
            open=switch.filled,
            name_error=errors.get(f"{key}-name", ""),
            text_error=errors.get(f"{key}-text", ""),
            requires_error=errors.get(f"{key}-requires", ""),
            excludes_error=errors.get(f"{key}-excludes", ""),
            alternative_error=errors.get(f"{key}-alternative", ""),
        )
        slots.append(slot)
    if slots and not typed and kind == "patch":
        slots[0] = replace(slots[0], open=True)
    return slots
