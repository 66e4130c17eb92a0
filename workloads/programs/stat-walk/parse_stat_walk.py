# SPDX-License-Identifier: GPL-2.0-or-later
"""The counts of a verified stat-walk: calls of find_inode_fast by returned NULL or not, with stacks."""

import re
from collections.abc import Mapping
from typing import Any

from workloads.errors import OutputUnreadable
from workloads.hist import parse_hist, read_stack

_HIST, _PROFILE = "/tmp/returns.hist", "/sys/kernel/tracing/kprobe_profile"  # noqa: S108 the guest's
# Of all calls, so many may go the wrong way: something else may touch the tree's root.
_TOLERATED = 0.001


def parse(
    objects: list[dict[str, Any]], files: Mapping[str, bytes]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The objects as they are; of a verified run the counts, their text and what they prove."""
    if _HIST not in files:
        return objects, {}
    counts = _counts(files[_HIST].decode())
    timed = next((item for item in objects if not item["warmup"]), None)
    if timed is None:
        raise OutputUnreadable("stat-walk printed no iteration that counts")
    holds, statement = _judge(counts, timed["cache"], int(timed["stats"]))
    if missed := _missed(files.get(_PROFILE, b"").decode()):
        statement += f" ({missed:,} calls were missed by the probe)"
    return objects, {
        "find_inode_fast": counts,
        "bpftrace": "\n".join(map(_as_bpftrace, counts)),
        "verified": statement,
        "verified_holds": holds,
    }


def _counts(text: str) -> list[dict[str, Any]]:
    counts = [
        {"null": histogram.filter.endswith("== 0"), "count": count, "stack": read_stack(keys)}
        for histogram in parse_hist(text)
        for keys, count in histogram.rows
    ]
    return sorted(counts, key=lambda item: (not item["null"], item["count"]))


def _judge(counts: list[dict[str, Any]], cache: str, stats: int) -> tuple[bool, str]:
    null = sum(item["count"] for item in counts if item["null"])
    hits = sum(item["count"] for item in counts if not item["null"])
    # Each inode that is read in is sought twice: before and after it is allocated.
    read_in = null / 2 / stats
    match cache:
        case "cold":
            holds = read_in >= 1 and hits <= _TOLERATED * null
        case "warm":
            holds = null + hits <= _TOLERATED * stats
        case _:
            holds = read_in >= 0.1 and hits <= _TOLERATED * null
    said = f"{null:,} calls of find_inode_fast returned NULL, {hits:,} did not: "
    said += f"{null // 2:,} inodes read in for {stats:,} files, cache {cache} {'✓' if holds else '✗'}"
    return holds, said


def _missed(profile: str) -> int:
    return sum(
        int(number) for number in re.findall(r"^\s*returns\d+\s+\d+\s+(\d+)\s*$", profile, re.MULTILINE)
    )


def _as_bpftrace(item: dict[str, Any]) -> str:
    """As the mail shows it: the stack, whether something was returned, the count."""
    frames = "".join(f"    {frame}\n" for frame in item["stack"])
    return f"@[\n{frames}, {0 if item['null'] else 1}]: {item['count']}"
