# SPDX-License-Identifier: GPL-2.0-or-later
"""The form of a target: its fields, and the field that each fault belongs to.

The checks of lab/targets are not repeated here: the form only writes the fields in the terms of `labctl target add`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from lab.errors import FieldRefused
from lab.models import Target
from lab.targets.changes import CHANGEABLE, TargetFields
from lab.targets.drivers import DRIVERS
from web.targetfields import GROUPS, Group

# Longer than any valid field, and short enough to be shown again.
LONGEST = 20_000
_FIELDS: Final = {field.key: field for group in GROUPS for field in group.fields}
_PLACES: Final = {*_FIELDS, *(group.place for group in GROUPS if group.place), "enabled"}
_VERIFY: Final = {"true": True, "false": False}


def typed_in(received: Mapping[str, Any]) -> dict[str, str]:
    """Return the form's fields as typed."""
    # Browsers send \r\n.
    texts = {key: str(received.get(key, "")).replace("\r\n", "\n") for key in (*_FIELDS, "enabled", "seen")}
    return {key: text.strip()[:LONGEST] for key, text in texts.items()}


def as_typed(row: Target | None) -> dict[str, str]:
    """Return the form's fields for a target; without one, the defaults."""
    of = TargetFields("") if row is None else row
    values: dict[str, Any] = {name: getattr(of, name) for name in CHANGEABLE}
    kind = str(_at(values, "access.console.kind") or "none")
    typed = {key: _text(_at(values, key.replace(f".console.{kind}.", ".console."))) for key in _FIELDS}
    typed["access.power.kind"] = typed["access.power.kind"] or "redfish"
    typed["access.console.kind"] = kind
    typed["access.power.verify"] = {"on": "true", "": "true", "off": "false"}.get(
        typed["access.power.verify"], typed["access.power.verify"]
    )
    typed["access.kexec"] = typed["access.kexec"].replace("off", "")
    if not _at(values, "access.mac"):
        typed["access.fragments"] = "metal"
    typed["access"] = json.dumps(values["access"] if DRIVERS[of.driver].access == "object" else {}, indent=2)
    return typed | {"enabled": "on" if of.enabled else ""}


def read_typed(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the typed values as fields of TargetFields. Raises FieldRefused for errors that only a form can have."""
    return {
        "name": typed["name"],
        "driver": typed["driver"],
        "group": typed["group"],
        "vcpus": _whole("vcpus", typed["vcpus"]),
        "memory_mib": _whole("memory_mib", typed["memory_mib"]),
        "enabled": bool(typed["enabled"]),
        "remark": typed["remark"],
        "access": _access(typed),
        "tuning": {
            name: {"on": True, "off": False}.get(text, text) if name in {"turbo", "smt"} else text
            for name, text in _part(typed, "tuning.").items()
        },
    }


def place_of(refused: FieldRefused, typed: Mapping[str, str]) -> str:
    """The key of the field that a fault belongs to, or of the group that it is in; "" for neither."""
    path = list(refused.path)
    if path[:2] == ["access", "console"] and path[2:] not in ([], ["kind"]):
        path.insert(2, typed["access.console.kind"])
    if path[0] == "access" and _kind(typed) == "object":
        return "access"
    while path and ".".join(path) not in _PLACES:
        path.pop()
    return ".".join(path)


def filled(group: Group, typed: Mapping[str, str], faults: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the inputs of a group, each with its value and its fault."""
    return [
        {"field": field, "value": typed[field.key], "error": faults.get(field.key, "")}
        for field in group.fields
    ]


def _access(typed: Mapping[str, str]) -> dict[str, Any]:
    if _kind(typed) == "object":
        return _object(typed["access"])
    if _kind(typed) != "machine":
        return {}
    access: dict[str, Any] = {
        "fragments": re.findall(r"[^\s,]+", typed["access.fragments"]),
        "kexec": bool(typed["access.kexec"]),
        "power": _part(typed, "access.power."),
    }
    access |= {name: typed[f"access.{name}"] for name in ("mac", "address") if typed[f"access.{name}"]}
    power, kind = access["power"], typed["access.console.kind"]
    if power.get("kind") != "redfish":
        power.pop("verify", None)
        power.pop("system", None)
    elif power.get("verify") in _VERIFY:
        power["verify"] = _VERIFY[power["verify"]]
    console = _part(typed, f"access.console.{kind}.")
    if (port := console.get("port", "")).isdecimal() and len(port) < 10:
        console["port"] = int(port)
    return access | {"console": {"kind": kind} | console}


def _part(typed: Mapping[str, str], place: str) -> dict[str, Any]:
    """Return the typed values directly below a path; empty fields are omitted."""
    texts = {key.removeprefix(place): typed[key] for key in _FIELDS if key.startswith(place) and typed[key]}
    return {name: text for name, text in texts.items() if "." not in name}


def _kind(typed: Mapping[str, str]) -> str:
    """Return how a target of the typed driver is reached; "none" for a driver that does not exist, which is refused later."""
    driver = DRIVERS.get(typed["driver"])
    return driver.access if driver else "none"


def _object(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text or "{}")
    except ValueError as exc:
        raise FieldRefused("access", f"this is not JSON: {exc}") from None
    except RecursionError:
        raise FieldRefused("access", "this is nested too deeply") from None
    if not isinstance(parsed, dict):
        raise FieldRefused("access", "this is not a JSON object: write { … }")
    return parsed


def _whole(key: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 12):
        raise FieldRefused(key, f"“{text[:40]}” is not a whole number" if text else "give a whole number")
    return int(text)


def _at(value: object, key: str) -> Any:
    """Return the value at a path of a target; None if there is none."""
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return "" if value is None or isinstance(value, Mapping) else str(value)
