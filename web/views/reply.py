# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment's comparison for use elsewhere: as a reply to the mailing list, to be copied, and as a file in each format."""

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from lab.comparisons.exports.formats import REPORT_FORMS
from lab.comparisons.page import comparison_data
from lab.comparisons.reply.reply import ReplyOptions, write_reply
from lab.errors import SpecError
from lab.experiments.page import get_experiment
from lab.models import User


@require_safe
def show(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """Show the reply for one patch or all, signed by the reader on request, and the files below it."""
    page = get_experiment(experiment_id)
    data = comparison_data(experiment_id, link=own_address(request))
    signer = signature(request)
    asked = ReplyOptions(
        patch=request.GET.get("for", ""), signer=signer if request.GET.get("sign") == "1" else ""
    )
    problem = ""
    try:
        reply = write_reply(data, asked)
    except SpecError as exc:
        problem, asked = str(exc), ReplyOptions()
        reply = write_reply(data, asked)
    ctx = {
        "page": page,
        "key": experiment_id,
        "tab": "comparison",
        "reply": reply,
        "problem": problem,
        "asked": asked,
        "signer": signer,
        "switches": [switch["name"] for switch in data["switches"]],
        "plain": _address(experiment_id, asked),
        "rows": reply.text.count("\n") + 1,
        "files": [(name, form.description) for name, form in REPORT_FORMS.items() if form.description],
    }
    return render(request, "web/reply.html", ctx)


@require_safe
def text(request: HttpRequest, experiment_id: int) -> HttpResponse:
    """Return the reply as plain text."""
    data = comparison_data(experiment_id, link=own_address(request))
    signer = signature(request) if request.GET.get("sign") == "1" else ""
    try:
        body = write_reply(data, ReplyOptions(patch=request.GET.get("for", ""), signer=signer)).text
    except SpecError as exc:
        return HttpResponse(f"{exc}\n", status=422, content_type="text/plain; charset=utf-8")
    return HttpResponse(body, content_type="text/plain; charset=utf-8")


@require_safe
def export(request: HttpRequest, experiment_id: int, form: str) -> HttpResponse:
    """Return the comparison as a file in one of REPORT_FORMS."""
    if form not in REPORT_FORMS:
        raise Http404(f'there is no format "{form}"; there are {", ".join(REPORT_FORMS)}')
    made = REPORT_FORMS[form]
    body = made.write(experiment_id, link=own_address(request))
    response = HttpResponse(body, content_type=made.media_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{made.file_name(experiment_id)}"'
    return response


def own_address(request: HttpRequest) -> str:
    """Return the lab's address as the reader entered it; its host is one of ALLOWED_HOSTS."""
    return request.build_absolute_uri("/").rstrip("/")


def signature(request: HttpRequest) -> str:
    """Return the signed-in user's "Name <address>", or "" without a mail address."""
    user = request.user
    if not isinstance(user, User) or not user.email:
        return ""
    return f"{user.get_full_name() or user.username} <{user.email}>"


def _address(experiment_id: int, asked: ReplyOptions) -> str:
    query = {"for": asked.patch, "sign": "1" if asked.signer else ""}
    kept = urlencode({key: value for key, value in query.items() if value})
    return reverse("reply_text", args=[experiment_id]) + (f"?{kept}" if kept else "")
