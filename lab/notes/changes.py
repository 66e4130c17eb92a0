# SPDX-License-Identifier: GPL-2.0-or-later
"""Write, edit and delete notes: plain text on experiments, runs and revisions, changed by their author alone."""

from collections.abc import Sequence

from django.utils import timezone

from lab.errors import FieldRefused, NotAllowed
from lab.harmful_characters import check_field
from lab.models import Experiment, Note, Revision, Run, User
from lab.notes.pages import get_note
from lab.people.permissions import check_may, may_change

LONGEST = 10_000


def write_note(
    *,
    author: User,
    text: str,
    experiment: Experiment | None = None,
    run: Run | None = None,
    revision: Revision | None = None,
    trend: str = "",
) -> Note:
    """Write a note on one of an experiment, a run or a revision; trend: the key of the one it is about, "" for all.

    Raises NotAllowed, FieldRefused for "text" and for "trend" without a revision.
    """
    check_may(author, "submit", "write notes")
    if sum(subject is not None for subject in (experiment, run, revision)) != 1:
        raise FieldRefused("experiment", "a note belongs to exactly one experiment, run or revision")
    if trend and revision is None:
        raise FieldRefused("trend", "only a note on a revision is about a trend")
    return Note.objects.create(
        author=author, experiment=experiment, run=run, revision=revision, trend=trend, text=_plain(text)
    )


def edit_note(*, note_id: int, by: User, text: str, scopes: Sequence[str] | None = None) -> Note:
    """Replace a note's text. Raises UnknownRow, NotAllowed, FieldRefused for "text"."""
    note = _own(note_id, by, scopes)
    note.text, note.edited_at = _plain(text), timezone.now()
    note.save(update_fields=["text", "edited_at"])
    return note


def delete_note(*, note_id: int, by: User, scopes: Sequence[str] | None = None) -> None:
    """Delete a note permanently. Raises UnknownRow, NotAllowed."""
    _own(note_id, by, scopes).delete()


def _own(note_id: int, by: User, scopes: Sequence[str] | None) -> Note:
    note = get_note(note_id)
    if not may_change(by, note.author, scopes=scopes):
        whose = f"is {note.author.username}'s" if note.author else "has lost its author"
        raise NotAllowed(f"note {note_id} {whose}: only its author and operators can change it")
    return note


def _plain(text: str) -> str:
    """Return a text as it is stored: browsers send \\r\\n, and PostgreSQL refuses NUL."""
    kept = text.replace("\r\n", "\n").replace("\0", "").strip()
    if not kept:
        raise FieldRefused("text", "write something: the note is empty")
    if len(kept) > LONGEST:
        raise FieldRefused("text", f"a note has at most {LONGEST:,} characters, this one {len(kept):,}")
    return check_field(kept, "text", lines=True)
