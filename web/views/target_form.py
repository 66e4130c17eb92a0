# SPDX-License-Identifier: GPL-2.0-or-later
"""The forms with which operators add and change a target; lab/targets checks and writes, as for REST and labctl."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from lab.errors import FieldRefused, Outdated
from lab.models import Target
from lab.runs.queues import target_queue
from lab.targets.changes import TargetFields, add_target, change_target, fingerprint, named_target
from web.access import needs, person
from web.targetfields import GROUPS
from web.targetform import as_typed, filled, place_of, read_typed, typed_in


@never_cache
@needs("operate")
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The form for a new machine."""
    if request.method != "POST":
        return _form(request, as_typed(None), {}, None)
    typed = typed_in(request.POST)
    try:
        row = add_target(by=person(request), wanted=TargetFields(**read_typed(typed)))
    except FieldRefused as exc:
        return _form(request, typed, {place_of(exc, typed): str(exc)}, None)
    messages.success(
        request, f"{row.name} was added; a worker of the queue {target_queue(row.name)} boots it."
    )
    return redirect("target", row.name)


@never_cache
@needs("operate")
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """The same form for an existing machine; a form older than the machine's last change writes nothing."""
    row = named_target(name)
    if request.method != "POST":
        return _form(request, as_typed(row) | {"seen": fingerprint(row)}, {}, row)
    typed = typed_in(request.POST)
    try:
        changed = change_target(
            by=person(request),
            target_id=row.pk,
            changes=read_typed(typed),
            seen=typed["seen"],
        )
    except FieldRefused as exc:
        return _form(request, typed, {place_of(exc, typed): str(exc)}, row)
    except Outdated as exc:
        messages.error(request, f"{exc}. Nothing was changed.")
        return redirect("edit_target", row.name)
    messages.success(request, f"{changed.name} was changed; the next boot uses the new settings.")
    return redirect("target", changed.name)


def _form(
    request: HttpRequest, typed: dict[str, str], faults: dict[str, str], row: Target | None
) -> HttpResponse:
    ctx = {
        "row": row,
        "typed": typed,
        "groups": [
            (group, filled(group, typed, faults), group.place and faults.get(group.place, ""))
            for group in GROUPS
        ],
        "faults": faults,
        "whole": faults.get("", ""),
    }
    return render(request, "web/target_form.html", ctx, status=422 if faults else 200)
