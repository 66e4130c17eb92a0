# SPDX-License-Identifier: GPL-2.0-or-later
"""The section of a perf.data that describes tracepoints, with the kernel's format files in it."""

from workers.collect.perfdata_tracing import read_tracepoints
from workers.errors import ProfileUnreadable

REFUSALS = (ProfileUnreadable,)


def feed(data: bytes) -> None:
    """Read the section."""
    for name, point in read_tracepoints(data).items():
        assert name == point.name, "a tracepoint under another's name"
        assert all(offset >= 0 and size >= 0 for offset, size in point.fields.values()), (
            "a field before its record"
        )
