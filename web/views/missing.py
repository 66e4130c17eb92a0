# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages in place of missing or forbidden ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404

from lab.errors import UnknownRow

P = ParamSpec("P")
T = TypeVar("T")


def found(query: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the query returns; a row that does not exist becomes a page that does not."""
    try:
        return query(*args, **kwargs)
    except UnknownRow as exc:
        raise Http404(str(exc)) from exc


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The friendly 404: what is missing, if it is known, and where to go."""
    known = isinstance(exception, Http404) and not isinstance(exception, Resolver404)
    text = str(exception) if known else ""
    missing = f"{text[:1].upper()}{text[1:]}." if text else ""
    return render(request, "404.html", {"missing": missing}, status=404)


def not_allowed(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """The friendly 403: who one is, and who could do it."""
    return render(request, "403.html", {"said": str(exception or "")}, status=403)


def form_refused(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form without its secret: it is older than the sign-in, or another site sent it."""
    said = (
        "This form was sent from elsewhere, or you have signed in since. Go back, reload it, send it again."
    )
    return render(request, "403.html", {"said": said}, status=403)
