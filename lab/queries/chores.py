# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads about pieces of upkeep that are due seldom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lab.models import Chore


@dataclass(frozen=True, slots=True)
class ChoreLine:
    """One that was done: when last, and what it found then."""

    name: str
    done_at: datetime
    found: Any

    def kept(self) -> Iterator[tuple[str, str, float]]:
        """Of what it found, how many bytes are kept: place, kind, bytes."""
        for place, by_kind in self.found.items():
            for kind, size in by_kind.items():
                yield place, kind, size


def chore_lines() -> tuple[ChoreLine, ...]:
    """All that were ever done, by name."""
    rows = Chore.objects.filter(done_at__isnull=False).order_by("name")
    return tuple(ChoreLine(row.name, row.done_at, row.found) for row in rows if row.done_at)
