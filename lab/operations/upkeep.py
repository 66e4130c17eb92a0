# SPDX-License-Identifier: GPL-2.0-or-later
"""Upkeep that is due seldom: when each chore was last done is a row that all processes share.

Times are the database's. One in the future, as of a clock that was set back, counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from lab.leases.clock import after
from lab.models import Chore

# A worker that has run one for this long was killed, or another one may start it too.
GIVEN_UP_S = 3600.0
# The database's clock may be set by so much, unnoticed.
_SET_BACK_S = 60.0


def is_done(name: str, within_s: float) -> bool:
    """Return whether a chore was done in the last so many seconds; a look, which writes nothing."""
    return Chore.objects.filter(~_not_within("done_at", within_s), name=name, done_at__isnull=False).exists()


def begin_chore(name: str, every_s: float) -> bool:
    """Take a chore that is due; False where it is not, or somebody is at it."""
    due = Q(done_at=None) | _not_within("done_at", every_s)
    free = Q(begun_at=None) | _not_within("begun_at", min(GIVEN_UP_S, every_s))
    if Chore.objects.filter(due, free, name=name).update(begun_at=after(0.0)) == 1:
        return True
    _, made = Chore.objects.get_or_create(name=name, defaults={"begun_at": after(0.0)})
    return made


def end_chore(name: str, found: Mapping[str, Any]) -> None:
    """It is done; found: what there is to tell, as JSON."""
    Chore.objects.filter(name=name).update(begun_at=None, done_at=after(0.0), found=dict(found))


def _not_within(column: str, seconds: float) -> Q:
    """Of a time in the column, that it is not in the last so many seconds."""
    return Q(**{f"{column}__lte": after(-seconds)}) | Q(**{f"{column}__gt": after(_SET_BACK_S)})


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
