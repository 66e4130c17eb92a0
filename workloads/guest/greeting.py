# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest's first and last words, checked: what it says of its machine, and how it left.

`agent/hello.c` and send_bye() in `agent/step.c` write them. A guest may say anything: each value has its type and its
length here, and what the agent does not send is left out.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workloads.errors import OutputUnreadable, RecordCorrupt
from workloads.guest.records import Record
from workloads.guest.strictjson import read_object

# uname(2): 64 bytes and a zero.
_RELEASE = re.compile(r"[\w.+~:@-]{1,64}", re.ASCII)
_LONGEST = 8192
_MOST_NAMES = 64
_MOST = 1 << 53


@dataclass(frozen=True, slots=True)
class Farewell:
    """A guest's last message: whether its plan was carried out, and its clock source at the end ("" if unknown)."""

    completed: bool = False
    clocksource: str = ""


def read_hello(record: Record) -> dict[str, Any]:
    """Return what a guest says of its machine; `release` is always there. Raises RecordCorrupt."""
    if record.kind != "hello":
        raise RecordCorrupt(record.seq, f'the first record is not a hello, but "{record.kind}"')
    try:
        said = read_object(record.payload, "the hello")
    except OutputUnreadable as exc:
        raise RecordCorrupt(record.seq, str(exc)) from exc
    for name in said.keys() & _FIELDS.keys():
        if not _FIELDS[name](said[name]):
            raise RecordCorrupt(record.seq, f"its {name} makes no sense")
    if "release" not in said:
        raise RecordCorrupt(record.seq, "it names no release")
    return {name: _shown(said[name]) for name in _FIELDS if name in said}


def read_bye(record: Record) -> Farewell:
    """Return how a guest left; one that makes no sense has completed nothing."""
    try:
        said = read_object(record.payload, "the bye")
    except OutputUnreadable:
        return Farewell()
    clock = said.get("clocksource")
    return Farewell(said.get("completed") is True, _shown(clock) if _is_text(clock) else "")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST


def _is_release(value: Any) -> bool:
    return isinstance(value, str) and _RELEASE.fullmatch(value) is not None


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -_MOST < value < _MOST


def _is_table(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and len(value) <= _MOST_NAMES
        and all(_is_text(part) for part in (*value, *value.values()))
    )


_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "release": _is_release,
    "machine": _is_text,
    "cmdline": _is_text,
    "clocksource": _is_text,
    "cpu_model": _is_text,
    "mitigations": _is_table,
    "tuning": _is_table,
    "cpus": _is_count,
    "memory_kib": _is_count,
    "uptime_s": _is_count,
}


def _shown(value: Any) -> Any:
    """A value without signs that a terminal would obey."""
    if isinstance(value, str):
        return "".join(sign if sign.isprintable() else "?" for sign in value)
    if isinstance(value, Mapping):
        return {_shown(name): _shown(part) for name, part in value.items()}
    return value
