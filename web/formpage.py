# SPDX-License-Identifier: GPL-2.0-or-later
"""The contents of the submission form's page: choices, what was typed, faults, and the preview. Pure."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings as conf

from lab.experiments.measure import BY_NAME, QUESTIONS
from lab.experiments.spec import DESIGNS, LINE_SWITCHES, ExperimentSpec
from lab.experiments.switch_names import name_of_patch
from lab.submission.choices import SubmissionChoices, UsualChoices
from lab.submission.preview import Preview, SwitchPreview
from lab.submission.received_series import FILE_SUFFIXES, MOST_FILES, UNPACKED_MIB, UPLOAD_MIB
from web.forms import PARTS, SLOTS, TypedCase, TypedForm, TypedSwitch
from web.words import NONE, change, count, duration, settings

# Ticked if nothing was measured yet: the quickest to boot of the workloads that most file system patches can affect.
_FIRST = "showgids"
_DESIGNS = {
    "full": "every combination of the switches",
    "one-at-a-time": "each switch alone",
    "leave-one-out": "all switches, and all but each one",
    "cumulative": "the first, the first two, and so on",
}
_LABELS = {
    "branch_git": "Repository",
    "branch": "Branch",
    "since": "After",
    "lore": "Message-id",
    "each": "A series of several patches",
    "files": "Upload",
    "git": "Git address",
    "form": "",
}
# The fields from the top of the page down.
_GROUPS = (
    *("form", "name", "tree", "base", "git", "switches", "patch"),
    *("files", "lore", "branch_git", "branch", "since", "each", "catalog"),
    *(field.removesuffix("s") for field in LINE_SWITCHES),
    *("design", "cases", "case"),
    *(question.name for question in QUESTIONS),
)


@dataclass(frozen=True, slots=True)
class FormPage:
    """The form as it is shown next. notes: what was received or left out, lines; toml: the description beside it.

    previewing: a preview was requested; errors then say why there is none.
    """

    typed: TypedForm
    errors: Mapping[str, str] = field(default_factory=dict)
    detail: str = ""
    notes: Sequence[str] = ()
    toml: str = ""
    preview: Preview | None = None
    previewing: bool = False


def fresh(choices: SubmissionChoices, usual: UsualChoices | None = None) -> TypedForm:
    """Return the form before anything was typed, with a workload ticked: a pasted patch can be submitted as it is.

    usual: what its reader measured last; without it the first tree, target and workload.
    """
    last = usual or UsualChoices()
    presets = {name: preset for name, preset in last.cases if name in choices.workloads}
    if not presets:
        names = list(choices.workloads)
        presets = {_FIRST if _FIRST in names else names[0]: "small"} if names else {}
    return TypedForm(
        tree=last.tree if last.tree in choices.trees else next(iter(choices.trees), ""),
        target=last.target if last.target in choices.targets else next(iter(choices.targets), ""),
        cases={
            name: TypedCase(chosen=name in presets, preset=presets.get(name, "small"))
            for name in choices.workloads
        },
    )


def form_context(page: FormPage, choices: SubmissionChoices, priorities: Sequence[str]) -> dict[str, Any]:
    """Return the template's context. A form without a key gets one. priorities: those that its reader may choose."""
    typed, errors = page.typed, page.errors
    return {
        **preview_context(page.preview),
        "choices": choices,
        "designs": [(name, _DESIGNS.get(name, "")) for name in DESIGNS],
        "typed": typed,
        "key": typed.key or uuid.uuid4().hex,
        "errors": errors,
        "previewing": page.previewing,
        "received": page.notes,
        "answered": [
            {
                "question": question,
                "typed": typed.measure.get(question.name, ""),
                "error": errors.get(question.name, ""),
            }
            for question in QUESTIONS
        ],
        "profiled": [("", "as for all"), *BY_NAME["profile"].options],
        # A priority that was typed but is not allowed stays, to be refused with a message.
        "priorities": list(dict.fromkeys((*priorities, typed.priority))),
        "told": [(key, _label(key), errors[key]) for key in sorted(errors, key=_order)],
        "detail": page.detail,
        "toml": page.toml,
        "limits": {
            "files": MOST_FILES,
            "mib": UPLOAD_MIB,
            "unpacked": UNPACKED_MIB,
            "bytes": UPLOAD_MIB << 20,
        },
        "accept": ",".join((*FILE_SUFFIXES, "text/plain")),
        "lore": bool(conf.LORE),
        "base_hint": choices.trees.get(typed.tree, ""),
        "patches": _slots("patch", typed.patches, errors),
        "line_switches": [_line_slots(field, typed.lines.get(field, ()), errors) for field in LINE_SWITCHES],
        **_offered(choices, typed, errors),
    }


def preview_context(preview: Preview | None) -> dict[str, Any]:
    """The preview's figures as people read them, and its switches with what they touch."""
    if preview is None:
        return {"preview": None}
    boot_seconds = None
    if preview.seconds is not None and preview.build_seconds is not None:
        boot_seconds = preview.seconds - preview.build_seconds
    changes = [
        (detectable.change, detectable.estimate)
        for detectable in preview.detectable
        if detectable.change is not None
    ]
    return {
        "preview": preview,
        "preview_time": duration(_whole(preview.seconds)),
        "preview_builds": duration(_whole(preview.build_seconds)) if preview.build_seconds else "",
        "preview_boots": duration(_whole(boot_seconds)) if boot_seconds else "",
        "preview_switches": [(switch, _summary(switch)) for switch in preview.switches],
        "preview_live": sum(variant.state != "pruned" for variant in preview.variants),
        "preview_pruned": sum(variant.state == "pruned" for variant in preview.variants),
        "preview_many": any(len(switch.patches) > 1 for switch in preview.switches),
        "detectable": [
            (detectable, change(1 + detectable.change) if detectable.change else "")
            for detectable in preview.detectable
        ],
        "smallest": change(1 + min(changes)[0]).lstrip("+") if changes else NONE,
        "smallest_estimate": min(changes)[1] if changes else "",
        "smallest_why": next((detectable.why for detectable in preview.detectable), ""),
    }


def _whole(seconds: float | None) -> float | None:
    """Round an estimate of a minute or more to whole minutes."""
    return seconds if seconds is None or seconds < 60 else float(round(seconds / 60) * 60)


def _summary(switch: SwitchPreview) -> str:
    """Such as "v4, 5 patches, 7 files, +120 −33"."""
    if switch.kind != "patch":
        return count(len(switch.text.splitlines()), "line")
    files = {path for patch in switch.patches for path in patch.files}
    added, removed = (sum(getattr(patch, side) for patch in switch.patches) for side in ("added", "removed"))
    parts = [f"v{switch.version}"] if switch.version > 1 else []
    parts += [count(len(switch.patches), "patch", "patches")] if len(switch.patches) > 1 else []
    return ", ".join([*parts, count(len(files), "file"), f"+{added} \N{MINUS SIGN}{removed}"])


def _offered(choices: SubmissionChoices, typed: TypedForm, errors: Mapping[str, str]) -> dict[str, Any]:
    """Return the catalogue's switches and the workloads, with what was chosen of them."""
    return {
        "catalog": [
            {
                "choice": switch,
                "chosen": switch.name in typed.catalog,
                "error": errors.get(f"catalog-{switch.name}", ""),
            }
            for switch in choices.switches.values()
        ],
        "cases": [
            {
                "choice": workload,
                "params": workload.params.values(),
                "presets": [(preset, settings(params)) for preset, params in workload.presets.items()],
                "typed": typed.cases.get(name, TypedCase(preset="small")),
                "error": errors.get(f"case-{name}", ""),
            }
            for name, workload in choices.workloads.items()
        ],
    }


def _order(key: str) -> tuple[int, int]:
    """Return where on the page a field stands: its group, and the number of its slot."""
    kind, _, rest = key.partition("-")
    number = rest.partition("-")[0]
    return _GROUPS.index(kind) if kind in _GROUPS else len(_GROUPS), int(number) if number.isdecimal() else 0


def _label(key: str) -> str:
    """Return the label of a field: "patch-0-name" is "Patch 1, name"."""
    if key in _LABELS:
        return _LABELS[key]
    kind, _, rest = key.partition("-")
    number, _, part = rest.partition("-")
    if number.isdecimal() and part:
        return f"{kind.capitalize()} {int(number) + 1}, {part}"
    if key in BY_NAME:
        return BY_NAME[key].label
    return rest if kind in ("case", "catalog") and rest else key.replace("_", " ").capitalize()


def _line_slots(field: str, typed: tuple[TypedSwitch, ...], errors: Mapping[str, str]) -> dict[str, Any]:
    """Return the places for one kind of switch that is given as lines. noun: for the label of each."""
    kind, declared = field.removesuffix("s"), ExperimentSpec.model_fields[field]
    return {
        "title": declared.title or field,
        "help": declared.description or "",
        "noun": kind.capitalize(),
        "slots": _slots(kind, typed, errors)[: len(typed) + 1],
    }


def _slots(kind: str, typed: tuple[TypedSwitch, ...], errors: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the pasted patches, then one empty slot, or two where nothing was pasted; slots with errors are open.

    name: as typed, or taken from the patch's subject.
    """
    empty = 1 if typed else 2
    wanted = [*typed, *[TypedSwitch()] * empty][: max(SLOTS, len(typed))]
    slots = []
    for number, switch in enumerate(wanted):
        key = f"{kind}-{number}"
        faults = {part: errors.get(f"{key}-{part}", "") for part in (*PARTS, "text")}
        slot = {
            "id": key,
            "number": number + 1,
            "typed": switch,
            "name": switch.name or (name_of_patch(switch.text) if kind == "patch" and switch.text else ""),
            "open": any(faults.values()) or (switch.filled and len(typed) == 1),
            "errors": faults,
        }
        slots.append(slot)
    if slots and not typed and kind == "patch":
        slots[0]["open"] = True
    return slots
