# SPDX-License-Identifier: GPL-2.0-or-later
"""Validity gates: decide whether a finished boot's surroundings make its numbers valid.

A boot outside a gate is kept, says why, does not count, and is taken again within a budget. Gates are
about the surroundings, never about the numbers: leaving out what looks odd would be choosing results.
"""

from collections.abc import Iterable, Mapping
from typing import Any

# Of the host's CPU time, taken by its own host while the guest ran. Source: proc(5), "steal".
MOST_STEAL = 0.05
# Runnable tasks per CPU beyond which the guest's threads wait for the host's.
MOST_LOAD = 2.0
# Of a profile's samples: beyond it shares may be off by as much.
MOST_LOST = 0.01
# Kinds of console findings that show a kernel in trouble while it was timed.
TROUBLE = {
    *("panic", "oops", "gpf", "bug", "memory", "lockup", "hung-task", "rcu-stall", "warning"),
    *("fs", "hardware", "reboot"),
}


def gates(
    environment: Mapping[str, Any],
    findings: Iterable[Mapping[str, Any]] = (),
    *,
    clock: str = "wall",
    lost_share: float = 0.0,
    state_proven: bool = True,
) -> list[str]:
    """Return a line for each gate a boot was outside of; an empty list is a valid boot.

    environment: of the run: `host` (load_before, load_after, steal_share, host_cpus, throttled; of metal
    way, way_of_block) and `guest` (clocksource, clocksource_after), `tuning` (untuned: declared settings that do not hold).
    Facts that are absent are not judged. clock:
    "instructions" count the same on a busy host, so only "wall" asks for a quiet one.
    lost_share: of a profile's samples, 0 to 1. state_proven: False where a verified boot found its
    caches in another state than requested.
    """
    host, guest = environment.get("host", {}), environment.get("guest", {})
    lines = _quiet(host) if clock == "wall" else []
    lines += _other_way(host)
    lines += [
        f"the machine was not tuned: {line}" for line in environment.get("tuning", {}).get("untuned", [])
    ]
    before, after = (_counter(guest.get(key)) for key in ("clocksource", "clocksource_after"))
    if before and after and before != after:
        lines.append(f"the clock source changed from {before} to {after}")
    troubles = [finding for finding in findings if finding.get("kind") in TROUBLE]
    if troubles:
        more = f" (and {len(troubles) - 1} more)" if len(troubles) > 1 else ""
        lines.append(f"the kernel complained: {troubles[0].get('title', '')}{more}")
    if lost_share > MOST_LOST:
        lines.append(f"{lost_share:.1%} of the samples were lost, {MOST_LOST:.0%} are allowed")
    if not state_proven:
        lines.append("the caches were not in the requested state")
    return lines


def _counter(clocksource: Any) -> str:
    """The counter behind a clock source: tsc-early is the tsc before its rate is refined, a second into the boot."""
    return str(clocksource or "").removesuffix("-early")


def _other_way(host: Mapping[str, Any]) -> list[str]:
    """Compare the ways of booting: firmware and kexec leave a machine in different states."""
    way, others = host.get("way"), host.get("way_of_block")
    if not others or way == others:
        return []
    return [f"it was booted by {way}, the other boots of its block by {others}"]


def _quiet(host: Mapping[str, Any]) -> list[str]:
    lines = []
    steal = float(host.get("steal_share", 0.0))
    if steal > MOST_STEAL:
        lines.append(f"{steal:.1%} of the host's CPU time was stolen, {MOST_STEAL:.0%} are allowed")
    cpus = int(host.get("host_cpus") or 0)
    load = max(float(host.get("load_before", 0.0)), float(host.get("load_after", 0.0)))
    if cpus and load > MOST_LOAD * cpus:
        lines.append(
            f"the host's load was {load:.1f}, at most {MOST_LOAD * cpus:.0f} is allowed on its {cpus} CPUs"
        )
    throttled = int(host.get("throttled", 0))
    if throttled:
        lines.append(f"the host's CPUs were throttled {throttled} times")
    return lines
