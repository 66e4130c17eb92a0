# SPDX-License-Identifier: GPL-2.0-or-later
"""Standing experiments and their alerts: listed for everybody, made and changed by submitters.

A forge's pushes have an address here; they are signed, and only make a standing experiment look at its branch.
"""

import re
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.text import capfirst
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from lab.errors import FieldRefused, LabError, UnknownRow
from lab.experiments.shown_description import shown_description, without_password
from lab.experiments.spec import toml_mapping
from lab.experiments.stored_spec import description_as_toml
from lab.models import Standing
from lab.people.permissions import may_change
from lab.standing.alerts import see_alert
from lab.standing.changes import (
    StandingFields,
    change_standing,
    enable_standing,
    make_standing,
    own_standing,
    remove_standing,
    run_standing,
    take_push,
)
from lab.standing.pages import alert_page, standing_lines, standing_page, unseen_alerts
from lab.trends.repeatability import repeatability
from web.access import needs, person
from web.api.auth import LoginLimit
from web.buttons import pressed
from web.listing import back_to_list, page_number, row_number
from web.words import duration

_NUMBERS = {"quiet_from": "an hour", "quiet_until": "an hour", "poll_minutes": "a number of minutes"}
_FRESH = {"poll_minutes": "5", "quiet_from": "0", "quiet_until": "0", "enabled": "yes"}
_EXAMPLE = """\
name = "nightly"
tree = "debian-6.1"

[[cases]]
workload = "showgids"
preset = "small"

[measure]
boots = 5
"""


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """All standing experiments, by name."""
    ctx = {"rows": standing_lines(), "unseen": unseen_alerts()}
    return render(request, "web/standings.html", ctx)


@never_cache
@require_safe
def show(request: HttpRequest, name: str) -> HttpResponse:
    """One standing experiment: its settings, its findings, and, for those who may change it, its address for a forge."""
    page = standing_page(name)
    row = page.line.row
    ctx = {
        "page": page,
        "line": page.line,
        "row": row,
        "every": duration(row.poll_every_s),
        "mine": may_change(request.user, row.owner),
        "push_url": settings.PUBLIC_URL + reverse("forge_push", args=[name]),
        "toml": description_as_toml(without_password(row.spec)),
    }
    return render(request, "web/standing.html", ctx)


@never_cache
@needs("submit")
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The form; ?from= takes over an experiment's description."""
    if request.method == "POST":
        return _saved(request, None)
    typed = _FRESH | {"toml": _EXAMPLE}
    if (origin := row_number(request.GET.get("from", ""))) is not None:
        typed["toml"] = description_as_toml(shown_description(origin))
    return _form(request, typed, {}, None)


@never_cache
@needs("submit")
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """The same form for an existing standing experiment."""
    row = own_standing(name=name, by=person(request))
    if request.method == "POST":
        return _saved(request, row)
    typed = {
        "name": row.name,
        "toml": description_as_toml(row.spec),
        "branch": row.branch,
        "poll_minutes": f"{row.poll_every_s / 60:.3f}".rstrip("0").rstrip("."),
        "quiet_from": str(row.quiet_from),
        "quiet_until": str(row.quiet_until),
        "mail_to": ", ".join(row.mail_to),
    }
    typed |= {"enabled": "yes"} if row.enabled else {}
    typed |= {"backfill": "yes"} if row.backfill else {}
    return _form(request, typed, {}, row)


@needs("submit")
@require_POST
def act(request: HttpRequest, name: str) -> HttpResponse:
    """Run now, enable, disable, remove."""
    by, what = person(request), pressed(request, "act", ("run", "enable", "disable", "remove"))
    try:
        if what == "run":
            run_standing(name=name, by=by)
            messages.success(request, "Its branch is checked next, and measured even if it has not changed.")
        elif what in ("enable", "disable"):
            enable_standing(name=name, by=by, enabled=what == "enable")
            messages.success(request, f"{name} is {what}d.")
        else:
            remove_standing(name=name, by=by)
            messages.success(request, f"{name} is removed; its experiments stay.")
            return redirect("standings")
    except FieldRefused as exc:
        messages.error(request, f"{capfirst(str(exc))}.")
    return redirect("standing", name)


@require_safe
def alerts(request: HttpRequest) -> HttpResponse:
    """All alerts, the newest first; ?unseen=1 only those nobody has seen."""
    unseen = request.GET.get("unseen") == "1"
    page = alert_page(page_number(request), unseen=unseen)
    ctx = {"page": page, "unseen": unseen, "repeats": repeatability(), "query": request.GET.urlencode()}
    return render(request, "web/alerts.html", ctx)


@needs("submit")
@require_POST
def see(request: HttpRequest, alert_id: int) -> HttpResponse:
    """Note that somebody has seen an alert."""
    see_alert(alert_id=alert_id, by=person(request))
    return redirect(back_to_list(request, "alerts"))


def _saved(request: HttpRequest, row: Standing | None) -> HttpResponse:
    typed, by = request.POST.dict(), person(request)
    try:
        fields = _fields(typed)
        saved = (
            make_standing(by=by, fields=fields)
            if row is None
            else change_standing(name=row.name, by=by, changes=asdict(fields))
        )
    except FieldRefused as exc:
        field = "poll_minutes" if exc.field == "poll_every_s" else exc.field
        return _form(request, typed, {field: str(exc)}, row)
    except UnknownRow:
        raise
    except LabError as exc:
        return _form(request, typed, {"toml": str(exc)}, row, detail=exc.detail)
    messages.success(request, f"{saved.name} is saved.")
    return redirect("standing", saved.name)


def _fields(typed: dict[str, str]) -> StandingFields:
    """Return the typed fields. Raises FieldRefused, SpecError."""
    numbers: dict[str, float] = {}
    for field, what in _NUMBERS.items():
        text = typed.get(field, "").strip()
        if not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,3})?", text):
            raise FieldRefused(field, f"“{text[:20]}” is not {what}")
        numbers[field] = float(text)
    return StandingFields(
        name=typed.get("name", "").strip(),
        spec=toml_mapping(typed.get("toml", "").encode()),
        branch=typed.get("branch", ""),
        enabled="enabled" in typed,
        quiet_from=int(numbers["quiet_from"]),
        quiet_until=int(numbers["quiet_until"]),
        poll_every_s=round(60 * numbers["poll_minutes"]),
        backfill="backfill" in typed,
        secret=typed.get("secret", ""),
        mail_to=re.split(r"[\s,;]+", typed.get("mail_to", "")),
    )


def _form(
    request: HttpRequest,
    typed: dict[str, Any],
    errors: dict[str, str],
    row: Standing | None,
    *,
    detail: str = "",
) -> HttpResponse:
    ctx = {
        "typed": typed,
        "errors": errors,
        "detail": detail,
        "row": row,
        "hours": [str(hour) for hour in range(24)],
    }
    return render(request, "web/standing_form.html", ctx, status=422 if errors else 200)


_PLAIN = "text/plain; charset=utf-8"


class PushLimit(LoginLimit):
    """Limit the pushes from one address, genuine or not."""

    scope = "push"


@csrf_exempt  # a forge has no cookie of ours; its signature is checked instead
@login_not_required
@require_POST
def push(request: HttpRequest, name: str) -> HttpResponse:
    """Receive a webhook for a push from GitHub, GitLab, Gitea or Forgejo."""
    limit = PushLimit()
    if not limit.allow_request(request, None):  # type: ignore[arg-type]
        wait = str(round(limit.wait() or 60))
        return HttpResponse(
            "too many at once\n", status=429, content_type=_PLAIN, headers={"Retry-After": wait}
        )
    if not take_push(name=name, headers=request.headers, body=request.body):
        said = f"there is no standing experiment {name} with that secret\n"
        return HttpResponse(said, status=403, content_type=_PLAIN)
    return HttpResponse("its branch is checked next\n", status=202, content_type=_PLAIN)
