# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages in place of missing or forbidden ones."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404
from django.utils.deprecation import MiddlewareMixin
from django.utils.text import capfirst

from lab.errors import NotAllowed, UnknownRow


class ErrorPages(MiddlewareMixin):
    """Middleware: a row that does not exist becomes a 404, and a forbidden action a 403."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the page that stands for an error of the lab; None leaves it to Django."""
        if isinstance(exception, UnknownRow):
            return not_found(request, Http404(str(exception)))
        return not_allowed(request, exception) if isinstance(exception, NotAllowed) else None


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The friendly 404: what is missing, if it is known, and where to go."""
    known = isinstance(exception, Http404) and not isinstance(exception, Resolver404)
    text = str(exception) if known else ""
    missing = f"{capfirst(text)}." if text else ""
    return render(request, "404.html", {"missing": missing}, status=404)


def not_allowed(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """The friendly 403: the user's account, and who can allow it."""
    return render(request, "403.html", {"said": str(exception or "")}, status=403)


def form_refused(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form without a valid CSRF token: it is older than the sign-in, or another site sent it."""
    said = "This form came from another site, or you have signed in since. Go back, reload the page and send it again."
    return render(request, "403.html", {"said": said}, status=403)
