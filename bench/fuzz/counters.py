# SPDX-License-Identifier: GPL-2.0-or-later
"""`perf stat`'s CSV and the harness's counts: finite numbers under short names."""

import math

from workers.collect.counters import read_counters

REFUSALS = ()


def feed(data: bytes) -> None:
    """Read what stands before the first line "%" as perf's, the rest as the harness's."""
    stat, _, counts = data.partition(b"\n%\n")
    counted = read_counters(stat, counts)
    for numbers in counted.counters.values():
        assert all(math.isfinite(number) and len(name) <= 200 for name, number in numbers.items()), (
            "an odd count"
        )
    assert len(counted.missing) <= 20_000, "more reasons than counters"
