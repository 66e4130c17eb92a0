# SPDX-License-Identifier: GPL-2.0-or-later
"""Cycles of a case under the contention clock on a machine with other latencies, as its first boots were replayed."""

from collections.abc import Mapping

from lab.models import Run


def cycles_by_latency(case_id: int) -> dict[str, Mapping[str, float]]:
    """Return by variant the cycles per operation on the most CPUs, by what every latency is multiplied with ("0.5", "1", "2")."""
    rows = Run.objects.filter(
        case=case_id, purpose="measured", extras__contention__has_key="latencies", invalid=[]
    )
    found = rows.order_by("variant__position", "-pk").values_list(
        "variant__name", "extras__contention__latencies"
    )
    return {name: latencies for name, latencies in found if isinstance(latencies, Mapping)}
