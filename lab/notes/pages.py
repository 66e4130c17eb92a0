# SPDX-License-Identifier: GPL-2.0-or-later
"""Read notes for pages."""

from typing import Any

from django.db.models import QuerySet

from lab.errors import one_row
from lab.models import Note
from lab.trends.page import TrendLine


def notes_on(**subject: Any) -> QuerySet[Note]:
    """Return the notes on a subject, such as `experiment=7`, the oldest first."""
    return Note.objects.filter(**subject).select_related("author", "revision").order_by("pk")


def trend_notes(line: TrendLine) -> QuerySet[Note]:
    """Return the notes on revisions of a trend's tree that are about it, or about all trends; the oldest first."""
    return notes_on(revision__tree=line.tree_id, trend__in=("", line.key))


def get_note(note_id: int) -> Note:
    """Return one note. Raises UnknownRow."""
    return one_row(notes_on(pk=note_id), f"note {note_id}")


def author_name(note: Note) -> str:
    """Return the name of a note's author for people."""
    return note.author.username if note.author else "a deleted account"
