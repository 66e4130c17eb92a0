# SPDX-License-Identifier: GPL-2.0-or-later
"""Read the list of targets."""

from collections.abc import Mapping

from lab.models import Target


def target_list() -> tuple[Mapping[str, object], ...]:
    """Return all targets as lists show them, by name; one that is not enabled gets nothing to boot."""
    return tuple(Target.objects.order_by("name").values("name", "driver", "vcpus", "memory_mib", "enabled"))
