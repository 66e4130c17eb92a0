# SPDX-License-Identifier: GPL-2.0-or-later
"""Name what a description leaves without a name: a patch after its subject, a config after its symbol, the experiment after both."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from kernels.errors import KernelsError
from kernels.patches.series import Series, read_series
from lab.harmful_characters import harmful

# The variants that the lab adds by itself: the base, the base a second time, the base with another code layout.
BASE, BASE_AGAIN, PLACEBO = OWN_VARIANTS = ("base", "base-again", "layout-placebo")
# The names of a variant's switches are joined, so a derived name is shorter than the limit.
DERIVED_LENGTH = 40
_NAME_LENGTH, _TITLE_LENGTH = 60, 200
# The fields of a description that hold switches, in the order they are applied.
SWITCH_FIELDS = ("patches", "configs")


def switch_name(text: str, length: int = _NAME_LENGTH) -> str:
    """Return a switch's name made of a title or a file's name: its plain characters."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:length].strip("-._") or "patch"
    return f"{name}-patch" if name in OWN_VARIANTS else name


def stem(origin: str) -> str:
    """Return a file's name without its ending and without what git format-patch and b4 put before it."""
    return re.sub(r"^(?:v\d+[-_])?\d{4}-", "", PurePosixPath(origin).name.partition(".")[0])


def free_name(name: str, taken: set[str], length: int = _NAME_LENGTH) -> str:
    """Return the name, or the first of name-2, name-3 … that is not taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name[: length - 4]}-{number}"
    return free


def with_names(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return a description in which every switch and the experiment itself has a name; existing names stay.

    What is not a list of tables is left for validation to refuse.
    """
    series = {place: _series(patch) for place, patch in enumerate(_tables(mapping, "patches"))}
    taken = {
        str(switch["name"]) for kind in SWITCH_FIELDS for switch in _tables(mapping, kind) if "name" in switch
    }
    named = dict(mapping)
    for kind in SWITCH_FIELDS:
        if not isinstance(mapping.get(kind), list):
            continue
        switches = []
        for place, switch in enumerate(_tables(mapping, kind)):
            if switch and "name" not in switch:
                own = (
                    _patch_name(switch, series[place])
                    if kind == "patches"
                    else _lines_name(switch, kind.removesuffix("s"))
                )
                name = own if "catalog" in switch else free_name(own, taken)
                taken.add(name)
                switch = {"name": name, **switch}
            switches.append(switch or mapping[kind][place])
        named[kind] = switches
    if "name" not in named:
        named["name"] = _experiment_name(
            named, [patch_series for patch_series in series.values() if patch_series]
        )
    return named


def name_of_patch(text: str) -> str:
    """Return the name of a switch for a pasted patch or series, from its subject."""
    patch = {"text": text}
    return _patch_name(patch, _series(patch))


def _tables(mapping: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the switches of a kind; an empty table stands for anything else."""
    switches = mapping.get(kind)
    if not isinstance(switches, list):
        return []
    return [dict(switch) if isinstance(switch, Mapping) else {} for switch in switches]


def _series(patch: Mapping[str, Any]) -> Series | None:
    text = patch.get("text")
    if not isinstance(text, str):
        return None
    try:
        return read_series(text.encode("utf-8", "replace"), partial=True)
    except KernelsError:
        # Damaged diffs are repaired against the base later; then the file's name or "patch" has to do.
        return None


def _patch_name(patch: Mapping[str, Any], series: Series | None) -> str:
    if isinstance(patch.get("catalog"), str):
        return str(patch["catalog"])
    if series is not None:
        return switch_name(series.title, DERIVED_LENGTH)
    if isinstance(patch.get("range"), str):
        return switch_name(patch["range"].rpartition("..")[2], DERIVED_LENGTH)
    return switch_name(stem(str(patch.get("origin", ""))), DERIVED_LENGTH)


def _lines_name(switch: Mapping[str, Any], kind: str) -> str:
    """Return a name such as "debug-list" for CONFIG_DEBUG_LIST=y, "no-debug-list" where the symbol is turned off."""
    lines = switch.get("lines")
    first = str(lines[0]) if isinstance(lines, Sequence) and lines else ""
    match = re.search(r"(?:CONFIG_)?([A-Z0-9_]+)", first)
    off = "no-" if re.search(r"=n$| is not set$", first.strip()) else ""
    return switch_name(off + (match[1].lower().replace("_", "-") if match else kind), DERIVED_LENGTH)


def _experiment_name(named: Mapping[str, Any], series: Sequence[Series]) -> str:
    """Return the title of the only series, else the switches' names, else what is measured."""
    switches = [
        str(switch["name"]) for kind in SWITCH_FIELDS for switch in _tables(named, kind) if "name" in switch
    ]
    if len(switches) == 1 and series and not harmful(series[0].title):
        return series[0].title[:_TITLE_LENGTH].strip() or switches[0]
    cases = [str(case.get("workload", "")) for case in _tables(named, "cases")]
    base = str(named.get("base") or named.get("tree") or named.get("git") or "the base")
    said = " + ".join(switches) or f"{', '.join(filter(None, cases)) or 'nothing'} on {base}"
    return "".join(char for char in said if not harmful(char))[:_TITLE_LENGTH].strip() or "experiment"
