# SPDX-License-Identifier: GPL-2.0-or-later
"""Find all faults of a description that the catalogues and its other switches reveal, at once.

Works on the description as it was received, so that these faults are reported beside those of its form.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kernels.patches.catalog import load_catalog as load_switches
from lab.experiments.switch_names import SWITCH_FIELDS
from lab.validation_messages import nearest, shown_value, valid_name
from workloads.catalog import Workload
from workloads.catalog import load_catalog as load_workloads
from workloads.errors import WorkloadsError
from workloads.instruction_clock import CLOCKS


def description_faults(mapping: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each unknown name, which begins with its field. Parts of the wrong type are skipped."""
    yield from _case_faults(mapping)
    known = load_switches()
    for place, patch in _tables(mapping, "patches"):
        name = patch.get("catalog")
        if isinstance(name, str) and name not in known:
            yield f"{place}.catalog: there is no switch {shown_value(name)}; {nearest(name, known)}"
    yield from _partner_faults(mapping)


def _tables(mapping: Mapping[str, Any], field: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    parts = mapping.get(field)
    for number, part in enumerate(parts if isinstance(parts, list | tuple) else ()):
        if isinstance(part, Mapping):
            yield f"{field}[{number}]", part


def _case_faults(mapping: Mapping[str, Any]) -> Iterator[str]:
    known = load_workloads()
    measure = mapping.get("measure")
    clock = measure.get("clock", "wall") if isinstance(measure, Mapping) else "wall"
    for place, case in _tables(mapping, "cases"):
        name = case.get("workload")
        if not isinstance(name, str):
            continue
        if name not in known:
            yield f"{place}.workload: there is no workload {shown_value(name)}; {nearest(name, known)}"
        elif fault := _unresolved(known[name], case, clock):
            yield f"{place}: {fault}"


def _unresolved(workload: Workload, case: Mapping[str, Any], clock: Any) -> str:
    """Return why a case has no parameters; "" where it has some, or where faults of form come first."""
    preset, params = case.get("preset", "small"), case.get("params", {})
    if not isinstance(preset, str) or not isinstance(params, Mapping) or clock not in CLOCKS:
        return ""
    try:
        workload.resolve(preset, params, clock)
    except WorkloadsError as exc:
        return str(exc)
    return ""


def _partner_faults(mapping: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each name that two switches have, and for each unknown one that a switch requires or excludes."""
    switches = [pair for field in SWITCH_FIELDS for pair in _tables(mapping, field)]
    names = [str(switch.get("name", "")) for _, switch in switches]
    for (place, switch), name in zip(switches, names, strict=True):
        if names.count(name) > 1 and name:
            yield f"{place}.name: two switches are named {shown_value(name)}; each needs its own name"
        for field in ("requires", "excludes"):
            others = switch.get(field)
            for other in others if isinstance(others, list | tuple) else ():
                if isinstance(other, str) and (fault := _wrong_partner(name, other, names)):
                    yield f"{place}.{field}: {fault}"


def _wrong_partner(name: str, other: str, names: Iterable[str]) -> str:
    if other == name:
        return f"switch {shown_value(name)} names itself"
    others = [known for known in dict.fromkeys(names) if known and known != name]
    # An invalid name is not proposed; the valid name that its own refusal proposes is.
    valid = list(dict.fromkeys(near for known in others if (near := valid_name(known))))
    if other in others or other in valid:
        return ""
    return f"there is no switch {shown_value(other)}; {nearest(other, valid) if valid else 'there are no others'}"
