# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads about targets, and about what hosts were found to be able to do."""

from dataclasses import dataclass
from datetime import datetime

from lab.models import Host, Target


@dataclass(frozen=True, slots=True)
class HostView:
    """The accelerator found to work on a host, and why that one."""

    name: str
    accelerator: str
    reason: str
    fingerprint: str
    probed_at: datetime


def known_host(name: str) -> HostView | None:
    """Return what was found out about a host, None if it was never probed."""
    host = Host.objects.filter(name=name).first()
    if host is None:
        return None
    return HostView(host.name, host.accelerator, host.accelerator_reason, host.fingerprint, host.probed_at)


def target_lines() -> tuple[str, ...]:
    """Return a line for each target: name, driver and size, and whether it is enabled."""
    return tuple(
        f"{target.name}: {target.driver}, {target.vcpus} vCPUs, {target.memory_mib} MiB"
        + ("" if target.enabled else ", disabled")
        for target in Target.objects.order_by("name")
    )
