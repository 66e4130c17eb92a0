# SPDX-License-Identifier: GPL-2.0-or-later
"""Read notes for pages."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from lab.errors import UnknownRow
from lab.models import Note, User
from lab.people.permissions import may_change
from lab.trends.page import TrendLine


@dataclass(frozen=True, slots=True)
class NoteLine:
    """One note. yours: whether the reader may change it. Of experiment, run and revision, the one it is on is not None."""

    id: int
    text: str
    author: str
    yours: bool
    created_at: datetime
    edited_at: datetime | None
    experiment_id: int | None
    run_id: int | None
    revision_id: int | None
    trend: str


@dataclass(frozen=True, slots=True)
class TrendNote:
    """A note on a revision, by its full commit."""

    commit: str
    note: NoteLine


def experiment_notes(experiment_id: int, reader: User | AnonymousUser) -> tuple[NoteLine, ...]:
    """The notes on an experiment, the oldest first."""
    return _lines(Note.objects.filter(experiment=experiment_id), reader)


def run_notes(run_id: int, reader: User | AnonymousUser) -> tuple[NoteLine, ...]:
    """The notes on a run, the oldest first."""
    return _lines(Note.objects.filter(run=run_id), reader)


def trend_notes(line: TrendLine, reader: User | AnonymousUser) -> tuple[TrendNote, ...]:
    """The notes on revisions of a trend's tree that are about it, or about all trends; the oldest first."""
    rows = Note.objects.filter(revision__tree=line.tree_id, trend__in=("", line.key))
    commits = dict(rows.values_list("pk", "revision__commit"))
    return tuple(TrendNote(commits[one.id], one) for one in _lines(rows, reader))


def get_note(note_id: int, reader: User | AnonymousUser) -> NoteLine:
    """Return one note. Raises UnknownRow."""
    found = _lines(Note.objects.filter(pk=note_id), reader)
    if not found:
        raise UnknownRow(f"there is no note {note_id}")
    return found[0]


def _lines(rows: QuerySet[Note], reader: User | AnonymousUser) -> tuple[NoteLine, ...]:
    return tuple(
        NoteLine(
            id=row.pk,
            text=row.text,
            author=row.author.username if row.author else "somebody who is gone",
            yours=may_change(reader, row.author),
            created_at=row.created_at,
            edited_at=row.edited_at,
            experiment_id=row.experiment_id,
            run_id=row.run_id,
            revision_id=row.revision_id,
            trend=row.trend,
        )
        for row in rows.select_related("author").order_by("pk")
    )
