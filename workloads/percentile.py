# SPDX-License-Identifier: GPL-2.0-or-later
"""Percentiles of a latency histogram."""

from collections.abc import Mapping


def percentile(
    counts: Mapping[int, int], share: float, overflow: int = 0, top: float = float("inf")
) -> float:
    """The latency that `share` of all samples do not exceed, interpolated within its bucket.

    counts: samples by latency; a bucket of 40 holds latencies from 40 to below 41.
    overflow: samples above all buckets; a percentile among them is `top`, the maximum.
    share: 0.999 is the 99.9th percentile. There must be samples.
    """
    rank = share * (sum(counts.values()) + overflow)
    below = 0
    for latency in sorted(counts):
        count = counts[latency]
        if count and below + count >= rank:
            return min(latency + (rank - below) / count, top)
        below += count
    return top
