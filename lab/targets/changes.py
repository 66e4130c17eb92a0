# SPDX-License-Identifier: GPL-2.0-or-later
"""Add, change, enable and remove targets. by: the operator; None for commands on this machine, whose user owns the lab's files."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from lab.errors import FieldRefused, Outdated, UnknownRow, one_row
from lab.models import Bisection, Experiment, Run, Target, User
from lab.models.storable import storable, storable_text
from lab.people.permissions import check_may
from lab.targets.access_schema import read_access, read_tuning
from lab.targets.drivers import DRIVERS, MACHINES
from lab.targets.usable import leave_unusable
from lab.trends.base_points import follow_target
from lab.validation_messages import nearest

MOST_VCPUS, LEAST_MIB, MOST_MIB = 1024, 64, 16 << 20
LONGEST_REMARK = 2000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class TargetFields:
    """A target as operators describe it. remark: for themselves. vcpus, memory_mib: the size of a guest, or the known size of a real machine."""

    name: str
    driver: str = "libvirt"
    group: str = ""
    vcpus: int = 2
    memory_mib: int = 1024
    enabled: bool = True
    remark: str = ""
    access: Mapping[str, Any] = field(default_factory=dict)
    tuning: Mapping[str, Any] = field(default_factory=dict)


CHANGEABLE: Final = tuple(column.name for column in fields(TargetFields))


def add_target(*, by: User | None, wanted: TargetFields) -> Target:
    """Add a target. Raises NotAllowed, FieldRefused naming the field."""
    check_may(by, "operate", "add, change, enable and disable targets")
    columns = _checked(wanted, None)
    try:
        with transaction.atomic():
            return Target.objects.create(**columns)
    except IntegrityError:
        raise FieldRefused("name", f'name: there is a target "{wanted.name}" already') from None


def change_target(
    *, by: User | None, target_id: int, changes: Mapping[str, Any], seen: str | None = None
) -> Target:
    """Change fields of TargetFields; access and tuning are replaced whole. A running boot keeps the old values.

    seen: `fingerprint` of the target that the person saw; None changes it in any state.
    Raises NotAllowed, UnknownRow, FieldRefused, Outdated where it was changed since it was seen.
    """
    check_may(by, "operate", "add, change, enable and disable targets")
    try:
        with transaction.atomic():
            row = _changed(_locked(target_id), changes, seen)
            if {"name", "group"} & changes.keys():
                follow_target(get_target(row.pk))
            leave_unusable()
    except IntegrityError:
        raise FieldRefused("name", f'name: there is a target "{changes["name"]}" already') from None
    return get_target(row.pk)


def fingerprint(row: Target) -> str:
    """Return a digest of the values that a form shows; a different one means that the target was changed since."""
    values = {name: getattr(row, name) for name in CHANGEABLE}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]


def has_past(target_id: int) -> bool:
    """Return whether experiments were made on a target, so that it can only be disabled."""
    return any(
        rows.filter(target=target_id).exists()
        for rows in (Experiment.objects, Run.objects, Bisection.objects)
    )


def remove_target(*, by: User | None, target_id: int) -> str:
    """Delete a target that never booted anything; returns its name. Raises NotAllowed, UnknownRow, FieldRefused."""
    check_may(by, "operate", "add, change, enable and disable targets")
    row = get_target(target_id)
    try:
        row.delete()
    except ProtectedError:
        raise FieldRefused(
            "name", f"{row.name} has experiments, which are kept: disable it instead"
        ) from None
    return row.name


def set_target_enabled(*, by: User | None, target_id: int, enabled: bool) -> Target:
    """Enable or disable a target. A boot under way finishes; waiting boots go on waiting or move to others of its group.

    Raises NotAllowed, UnknownRow.
    """
    check_may(by, "operate", "add, change, enable and disable targets")
    target = get_target(target_id)
    target.enabled = enabled
    target.save(update_fields=["enabled"])
    if not enabled:
        leave_unusable()
    return target


def get_target(target_id: int) -> Target:
    """Return a target. Raises UnknownRow."""
    return one_row(Target.objects.filter(pk=target_id), f"target {target_id}")


def named_target(name: str) -> Target:
    """Return the target of that name. Raises UnknownRow with the names there are."""
    names = dict(Target.objects.order_by("name").values_list("name", "pk"))
    if name not in names:
        raise UnknownRow(f'there is no target "{name}"; {nearest(name, names)}')
    return get_target(names[name])


def _locked(target_id: int) -> Target:
    """Return the row, locked against other changes; SQLite has one writer anyway. Raises UnknownRow."""
    Target.objects.select_for_update().filter(pk=target_id).first()
    return get_target(target_id)


def _changed(row: Target, changes: Mapping[str, Any], seen: str | None) -> Target:
    unknown = next((name for name in changes if name not in CHANGEABLE), None)
    if unknown is not None:
        raise FieldRefused(unknown, f'there is no field "{unknown}"; {nearest(unknown, CHANGEABLE)}')
    if seen is not None and seen != fingerprint(row):
        raise Outdated(
            f"{row.name} was changed by somebody else in the meantime: reload it before changing it"
        )
    now = {name: getattr(row, name) for name in CHANGEABLE}
    Target.objects.filter(pk=row.pk).update(**_checked(TargetFields(**(now | dict(changes))), row.pk))
    return row


def _checked(wanted: TargetFields, own: int | None) -> dict[str, Any]:
    """Return the columns of a row. own: its key if it exists already."""
    others = Target.objects.exclude(pk=own or 0)
    if not _NAME.fullmatch(wanted.name):
        raise FieldRefused(
            "name", f'name: "{wanted.name[:70]}" is not valid; letters, digits and . _ - are, 63 of them'
        )
    if others.filter(name=wanted.name).exists():
        raise FieldRefused("name", f'name: there is a target "{wanted.name}" already')
    if wanted.group and not _NAME.fullmatch(wanted.group):
        raise FieldRefused(
            "group", f'group: "{wanted.group[:70]}" is not valid; letters, digits and . _ - are'
        )
    # A description names a target or a group by the same field.
    if others.filter(group=wanted.name).exists() or wanted.group == wanted.name:
        raise FieldRefused("name", f'name: "{wanted.name}" is the name of a group')
    if wanted.group and others.filter(name=wanted.group).exists():
        raise FieldRefused("group", f'group: "{wanted.group}" is the name of a target')
    if wanted.driver not in DRIVERS:
        raise FieldRefused(
            "driver", f'driver: "{wanted.driver}" is not valid; {nearest(wanted.driver, DRIVERS)}'
        )
    if not 1 <= wanted.vcpus <= MOST_VCPUS:
        raise FieldRefused("vcpus", f"vcpus: {wanted.vcpus} is not valid; 1 to {MOST_VCPUS} are")
    if not LEAST_MIB <= wanted.memory_mib <= MOST_MIB:
        raise FieldRefused(
            "memory_mib", f"memory_mib: {wanted.memory_mib} is not valid; {LEAST_MIB} to {MOST_MIB} are"
        )
    if len(wanted.remark) > LONGEST_REMARK or wanted.remark != storable_text(wanted.remark):
        raise FieldRefused("remark", f"remark: a text of at most {LONGEST_REMARK:,} characters, without NUL")
    read_tuning(wanted.tuning)
    columns = {name: getattr(wanted, name) for name in CHANGEABLE}
    columns |= {"tuning": dict(wanted.tuning), "access": _access(wanted, others.filter(driver__in=MACHINES))}
    return columns


def _access(wanted: TargetFields, others: Any) -> dict[str, Any]:
    """Access, as it is stored."""
    kind = DRIVERS[wanted.driver].access
    if kind == "none" and wanted.access:
        raise FieldRefused("access", "access: a guest of this host needs none; leave it out")
    if kind != "machine":
        return _plain(wanted.access)
    access = read_access(wanted.access)
    for row in others:
        if str(row.access.get("mac", "")).lower() == access.mac:
            raise FieldRefused("access.mac", f"access.mac: {access.mac} is the card of {row.name}")
    return access.model_dump(mode="json")


def _plain(access: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fake target's access in a form that any database can store; its driver checks the meaning."""
    try:
        plain = dict(json.loads(json.dumps(dict(access), allow_nan=False)))
        changed = plain != storable(plain)
    except RecursionError:
        raise FieldRefused("access", "access: is nested too deeply") from None
    except (TypeError, ValueError):
        raise FieldRefused(
            "access", "access: contains values that JSON cannot express, such as a date or nan"
        ) from None
    if changed:
        raise FieldRefused("access", "access: contains characters that are not allowed, such as NUL")
    return plain
