# SPDX-License-Identifier: GPL-2.0-or-later
"""Every field of a description, from its own schema, with a description that sets it.

Tests ask the form, labctl, the REST API, exports and clones for each of these fields. A field that is added to
lab/experiments/spec.py needs one line in SETS, and its tests then say where it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, get_args

from pydantic import BaseModel

from lab.experiments.spec import ExperimentSpec, spec_from_mapping

DIFF = "diff --git a/fs/inode.c b/fs/inode.c\n--- a/fs/inode.c\n+++ b/fs/inode.c\n@@ -1 +1 @@\n-old line\n+new line\n"
_P, _Q = {"name": "p", "text": DIFF}, {"name": "q", "text": DIFF}
_C = {"name": "c", "lines": ["CONFIG_A=y"]}
_CASE = {"workload": "showgids", "preset": "smoke"}

PLAIN: dict[str, Any] = {"name": "plain", "tree": "debian-6.1", "cases": [_CASE]}


def _patch(**fields: Any) -> dict[str, Any]:
    return {"patches": [{**_P, **fields}, _Q]}


def _sourced(**fields: Any) -> dict[str, Any]:
    return {"patches": [{"name": "p", **fields}, _Q]}


def _case(**fields: Any) -> dict[str, Any]:
    return {"cases": [{**_CASE, **fields}]}


# The parts of a description that set a field to what it is not by default; PLAIN has the rest.
SETS: dict[str, dict[str, Any]] = {
    "name": {"name": "another name"},
    "tree": {"tree": "debian-6.12"},
    "git": {"tree": None, "git": "https://git.example/linux.git"},
    "base": {"base": "v6.1.192"},
    "design": {"design": "cumulative"},
    "target": {"target": "guest-2"},
    "priority": {"priority": "low"},
    "patches[].name": _patch(name="renamed"),
    "patches[].requires": _patch(requires=["q"]),
    "patches[].excludes": _patch(excludes=["q"]),
    "patches[].text": _patch(text=DIFF.replace("new", "newer")),
    "patches[].origin": _patch(origin="0001-a.patch"),
    "patches[].catalog": _sourced(catalog="vfs-iget-rcu", requires=["q"]),
    "patches[].range": _sourced(range="v6.1..v6.1.1"),
    "patches[].alternative": _patch(alternative=2),
    "patches[].partial": _patch(partial=True),
    "configs[].name": {"configs": [{**_C, "name": "d"}]},
    "configs[].requires": {"patches": [_Q], "configs": [{**_C, "requires": ["q"]}]},
    "configs[].excludes": {"patches": [_Q], "configs": [{**_C, "excludes": ["q"]}]},
    "configs[].lines": {"configs": [{**_C, "lines": ["CONFIG_A=y", "# CONFIG_B is not set"]}]},
    "cases[].workload": _case(workload="stat-walk"),
    "cases[].preset": _case(preset="large"),
    "cases[].params": _case(params={"threads": 2}),
    "cases[].profile": _case(profile="exact") | {"measure": {"clock": "instructions"}},
    "measure.clock": {"measure": {"clock": "instructions"}},
    "measure.boots": {"measure": {"boots": "auto"}},
    "measure.iterations": {"measure": {"iterations": 7}},
    "measure.warmup": {"measure": {"warmup": 3}},
    "measure.placebo": {"measure": {"placebo": True}},
    "measure.profile": {"measure": {"profile": "exact", "clock": "instructions"}},
    "measure.profile_boots": {"measure": {"profile": True, "profile_boots": 4}},
    "measure.off_cpu": {"measure": {"profile": True, "off_cpu": True}},
    "measure.verify": {"measure": {"verify": True}},
    "measure.seed": {"measure": {"seed": 9}},
    "reproduces": {"reproduces": {"experiment": 7}},
}
# Not asked for by people: intake notes the file beside its text.
NOTED = frozenset({"patches[].origin"})
# A reproducer's alone: nobody types it, and a changed description repeats nothing.
REPRODUCED = frozenset({"reproduces"})
# How urgent an experiment is: no part of what is stored of it, repeated or cloned (lab/submission/submit.py).
URGENCY = frozenset({"priority"})


def schema_fields(part: type[BaseModel] = ExperimentSpec, before: str = "") -> Iterator[str]:
    """Yield the field of each place of a description, such as "cases[].preset"; what a reproducer says is one."""
    for name, field in part.model_fields.items():
        inner = next((kind for kind in _types(field.annotation) if issubclass(kind, BaseModel)), None)
        many = "[]" if "tuple" in str(field.annotation) else ""
        if inner is None or before + name in REPRODUCED:
            yield before + name
        else:
            yield from schema_fields(inner, f"{before}{name}{many}.")


def _types(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for argument in get_args(annotation):
        yield from _types(argument)


def setting(field: str) -> dict[str, Any]:
    """Return a description that sets this field."""
    return {key: value for key, value in deepcopy(PLAIN | SETS[field]).items() if value is not None}


def specified(field: str) -> ExperimentSpec:
    """Return the validated description that sets this field."""
    return spec_from_mapping(setting(field))


def value_at(description: Any, field: str) -> Any:
    """Return the value of a field in a description or a part of one; of a list, in its first part."""
    for name in field.replace("[]", ".0").split("."):
        description = description[int(name) if name.isdecimal() else name]
    return description
