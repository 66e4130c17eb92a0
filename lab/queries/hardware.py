# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads about targets."""

from lab.models import Target


def target_lines() -> tuple[str, ...]:
    """Return a line for each target: name, driver and size, and whether it is enabled."""
    return tuple(
        f"{target.name}: {target.driver}, {target.vcpus} vCPUs, {target.memory_mib} MiB"
        + ("" if target.enabled else ", disabled")
        for target in Target.objects.order_by("name")
    )
