# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the list of targets."""

from dataclasses import dataclass

from lab.models import Target


@dataclass(frozen=True, slots=True)
class TargetLine:
    """One target as lists show it; one that is not enabled gets nothing to boot."""

    name: str
    driver: str
    vcpus: int
    memory_mib: int
    enabled: bool


def target_list() -> tuple[TargetLine, ...]:
    """Return all targets by name."""
    return tuple(
        TargetLine(target.name, target.driver, target.vcpus, target.memory_mib, target.enabled)
        for target in Target.objects.order_by("name")
    )
