# SPDX-License-Identifier: GPL-2.0-or-later
"""Discussion: notes on experiments, runs and revisions, and decisions about regressions."""

from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from lab.comparisons.triage import LONGEST as LONGEST_REASON
from lab.comparisons.triage import Decision, Regression, decide
from lab.errors import FieldRefused
from lab.models import BasePoint, Experiment, Note, Revision, Run, Triage
from lab.notes.changes import LONGEST, delete_note, edit_note, write_note
from web.api.auth import caller, scopes_of
from web.api.fields import Body, Text, Whole, Word, taken
from web.api.filters import MOST_ID
from web.api.resource import Resource
from web.api.shapes import TableRow


class NoteRow(TableRow):
    """A note on an experiment, a run or a revision. Plain text, never markup."""

    table = Note
    paths: ClassVar = {"tree": "revision__tree", "commit": "revision__commit"}
    columns = (
        *("id", "author", "experiment", "run", "tree", "commit", "trend", "text", "created_at", "edited_at"),
    )


class WantedNote(Body):
    """The requested note: on an experiment, a run, or the revision that a tree and a commit name."""

    experiment = Whole(min_value=1, max_value=MOST_ID, required=False)
    run = Whole(min_value=1, max_value=MOST_ID, required=False)
    tree = Text(max_length=100, required=False)
    commit = Text(max_length=64, required=False)
    trend = Text(max_length=200, required=False)
    text = Text(min_length=1, max_length=LONGEST)


class NoteText(Body):
    """The new text of a note."""

    text = Text(min_length=1, max_length=LONGEST)


class Notes(Resource):
    """Notes."""

    queryset = Note.objects.all()
    rows = NoteRow
    filters = ("experiment", "run", "commit", "trend", "author")
    search_fields = ("text", "author__username")
    ordering_fields = ("id", "created_at")
    ordering = ("-pk",)
    needed: ClassVar = {"create": "submit", "partial_update": "submit", "destroy": "submit"}

    @extend_schema(request=WantedNote, responses={201: NoteRow})
    def create(self, request: Request) -> Response:
        """Write a note."""
        wanted = taken(WantedNote, request)
        revision = _revision(wanted)
        note = write_note(
            author=caller(request),
            text=wanted["text"],
            trend=_trend(wanted, revision),
            experiment=_named(Experiment, "experiment", wanted),
            run=_named(Run, "run", wanted),
            revision=revision,
        )
        return Response(self.full_row(note.pk), status=201)

    @extend_schema(request=NoteText, responses=NoteRow)
    def partial_update(self, request: Request, id: int) -> Response:  # noqa: A002  the address says so
        """Replace its text; for its author and operators."""
        body = taken(NoteText, request, partial=True)
        if "text" in body:
            edit_note(note_id=id, by=caller(request), scopes=scopes_of(request), **body)
        return Response(self.full_row(id))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, id: int) -> HttpResponse:  # noqa: A002
        """Remove it for good; for its author and operators."""
        delete_note(note_id=id, by=caller(request), scopes=scopes_of(request))
        return HttpResponse(status=204)


def _named(model: Any, field: str, wanted: dict[str, Any]) -> Any:
    if field not in wanted:
        return None
    row = model.objects.filter(pk=wanted[field]).first()
    if row is None:
        raise FieldRefused(field, f"there is no {field} {wanted[field]}")
    return row


def _revision(wanted: dict[str, Any]) -> Revision | None:
    if "tree" not in wanted and "commit" not in wanted:
        return None
    tree, commit = wanted.get("tree", ""), wanted.get("commit", "")
    row = Revision.objects.filter(tree__name=tree, commit=commit).first()
    if row is None:
        raise FieldRefused(
            "commit", f'the lab knows no commit "{commit}" of a tree "{tree}"; give its full id'
        )
    return row


def _trend(wanted: dict[str, Any], revision: Revision | None) -> str:
    key: str = wanted.get("trend", "")
    if key and revision is not None:
        of_the_tree = BasePoint.objects.filter(trend=key, case__experiment__tree=revision.tree_id)
        if not of_the_tree.exists():
            raise FieldRefused("trend", f'there is no trend "{key[:40]}" of the tree "{revision.tree}"')
    return key


class TriageRow(TableRow):
    """A decision about a regression; of those on the same case, variant and metric the newest counts."""

    table = Triage
    paths: ClassVar = {"experiment": "case__experiment"}
    columns = (
        *("id", "experiment", "case", "variant", "metric", "state", "reason", "fixed_by", "author"),
        "created_at",
    )


class WantedTriage(Body):
    """A decision. seen: the newest decision you know of, null for none: if there is a newer one, yours is refused."""

    case = Whole(min_value=1, max_value=MOST_ID)
    variant = Whole(min_value=1, max_value=MOST_ID)
    metric = Text(min_length=1, max_length=60)
    state = Word(Triage.State.choices)
    reason = Text(max_length=LONGEST_REASON, default="")
    fixed_by = Text(max_length=500, default="")
    seen = Whole(min_value=1, max_value=MOST_ID, allow_null=True, default=None)


class Triages(Resource):
    """Decisions about regressions."""

    queryset = Triage.objects.all()
    rows = TriageRow
    filters = ("experiment", "case", "variant", "metric", "state", "author")
    ordering_fields = ("id", "created_at")
    ordering = ("-pk",)
    needed: ClassVar = {"create": "submit"}
    also_answers: ClassVar = {"create": (404, 409)}

    @extend_schema(request=WantedTriage, responses={201: TriageRow})
    def create(self, request: Request) -> Response:
        """Decide on a regression; this decision counts instead of earlier ones."""
        wanted = taken(WantedTriage, request)
        row = decide(
            by=caller(request),
            on=Regression(wanted["case"], wanted["variant"], wanted["metric"]),
            decision=Decision(wanted["state"], wanted["reason"], wanted["fixed_by"]),
            seen=wanted["seen"],
        )
        return Response(self.full_row(row.pk), status=201)
