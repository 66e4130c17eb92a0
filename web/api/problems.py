# SPDX-License-Identifier: GPL-2.0-or-later
"""Every error under /api/ as RFC 9457 problem details: one shape, no matter which layer refused."""

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation, TooManyFilesSent
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from django.views.defaults import bad_request, server_error
from rest_framework import exceptions
from rest_framework.response import Response

from lab.errors import (
    FieldRefused,
    KeyBusy,
    KeyReused,
    LabError,
    LabUnable,
    NotAllowed,
    Outdated,
    SpecError,
    SubmissionRejected,
    TooManyFetches,
    UnknownRow,
)
from lab.profiles.analysis.frame_tree import TreeDamaged
from lab.profiles.exports.stacks import ExportTooLarge, NoSuchForm
from lab.validation_messages import lines_of, place_of

MEDIA_TYPE = "application/problem+json"
# The text of each type; all others are `about:blank`, described by the HTTP status.
TYPES: Mapping[str, str] = {
    "validation": "The request does not have the form that the schema asks for.",
    "refused": "The request is well formed, but cannot be carried out as it is.",
    "lab-unable": "The lab cannot do this now, for a reason of its own; nothing was written.",
    "idempotency-key-reused": "This Idempotency-Key was used for another request body.",
    "idempotency-key-busy": "The first request with this Idempotency-Key is still in progress.",
}
_RETRY_S, _RETRY_FETCH_S = 60, 10


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: a JSON pointer into the body, or the name of a query parameter or header."""

    detail: str
    pointer: str | None = None
    parameter: str | None = None

    def shown(self) -> dict[str, str]:
        """Return it as JSON has it."""
        place = {"pointer": self.pointer, "parameter": self.parameter}
        return {"detail": self.detail} | {key: text for key, text in place.items() if text is not None}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in an answer. kind: one of TYPES, empty where the HTTP status says enough."""

    status: int
    detail: str
    kind: str = ""
    faults: tuple[Fault, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def shown(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        body: dict[str, Any] = {
            "type": f"/api/v1/problems/#{self.kind}" if self.kind else "about:blank",
            "title": TYPES[self.kind] if self.kind else HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        return body | ({"errors": [fault.shown() for fault in self.faults]} if self.faults else {})


class Refusal(exceptions.APIException):
    """A problem that a view itself finds."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.status_code = problem.status
        self.problem = problem


class ParameterRefused(Refusal):
    """A query parameter or header that violates the schema; status 422: one that is valid, but does not go with the others."""

    def __init__(self, name: str, detail: str, status: int = 400) -> None:
        kind = "validation" if status == 400 else "refused"
        super().__init__(Problem(status, f"{name}: {detail}", kind, (Fault(detail, parameter=name),)))


def answer(exc: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's exception handler: return the problem for an exception, None for a fault of ours, which becomes a 500."""
    problem = problem_of(exc)
    if problem is None:
        return None
    response = Response(problem.shown(), status=problem.status, content_type=MEDIA_TYPE)
    for name, value in problem.headers.items():
        response.headers[name] = value
    return response


def problem_of(exc: Exception) -> Problem | None:
    """Return the problem for an exception; None for a fault of ours."""
    if isinstance(exc, Refusal):
        return exc.problem
    if isinstance(exc, exceptions.ValidationError):
        faults = tuple(_faults(exc.detail, ""))
        return Problem(400, _first(faults), "validation", faults)
    if isinstance(exc, exceptions.APIException):
        return Problem(exc.status_code, str(exc.detail), headers=_headers(exc))
    if isinstance(exc, LabError | ExportTooLarge | NoSuchForm | TreeDamaged):
        return _of_the_lab(exc)
    if isinstance(exc, RequestDataTooBig):
        return Problem(413, "the request's body is larger than the lab accepts")
    if isinstance(exc, Http404):
        return Problem(404, str(exc) or "there is nothing at this address")
    if isinstance(exc, PermissionDenied):
        return Problem(403, str(exc) or "you may not do this")
    return (
        Problem(400, "this lab does not accept this request")
        if isinstance(exc, SuspiciousOperation)
        else None
    )


def _of_the_lab(exc: LabError | ExportTooLarge | NoSuchForm | TreeDamaged) -> Problem | None:
    if isinstance(exc, UnknownRow):
        return Problem(404, str(exc))
    if isinstance(exc, NotAllowed):
        return Problem(403, str(exc))
    if isinstance(exc, Outdated):
        return Problem(409, str(exc))
    if isinstance(exc, LabUnable):
        return Problem(503, str(exc), "lab-unable", headers={"Retry-After": str(_RETRY_S)})
    if isinstance(exc, TooManyFetches):
        return Problem(429, str(exc), headers={"Retry-After": str(_RETRY_FETCH_S)})
    if isinstance(exc, FieldRefused):
        place = "".join(f"/{_escaped(part)}" for part in exc.path)
        return Problem(422, str(exc), "refused", (Fault(str(exc), pointer=place),))
    if isinstance(exc, SpecError):
        return _of_a_description(exc)
    if isinstance(exc, KeyReused):
        return Problem(422, str(exc), "idempotency-key-reused")
    if isinstance(exc, KeyBusy):
        return Problem(409, str(exc), "idempotency-key-busy", headers={"Retry-After": "2"})
    if isinstance(exc, SubmissionRejected):
        return _refused(exc)
    if exc.blame == "submission" or isinstance(exc, TreeDamaged):
        return Problem(422, str(exc), "refused")
    return None


def _of_a_description(exc: SpecError) -> Problem:
    faults = tuple(Fault(line, pointer=pointer(line)) for line in lines_of(exc))
    return Problem(422, str(exc), "refused", faults)


def _refused(exc: SubmissionRejected) -> Problem:
    faults = tuple(Fault(str(refusal), pointer=_at(refusal.place)) for refusal in (exc, *exc.others))
    more = f" (and {len(exc.others)} more)" if exc.others else ""
    return Problem(422, f"{exc}{more}", "refused", faults)


@contextmanager
def within(place: str) -> Iterator[None]:
    """Report the faults of a description at its place in the body, a JSON pointer."""
    try:
        yield
    except SpecError as exc:
        problem = _of_a_description(exc)
        faults = tuple(replace(fault, pointer=f"{place}{fault.pointer}") for fault in problem.faults)
        raise Refusal(replace(problem, faults=faults)) from exc


def pointer(line: str) -> str:
    """The JSON pointer of the field that a line of lab/validation_messages.py begins with; empty (the whole body) without one."""
    return _at(place_of(line))


def _at(place: str) -> str:
    """The JSON pointer of a field as a description writes it: `patches[0].text` is /patches/0/text."""
    return "".join(f"/{part}" for part in re.split(r"[.\[\]]+", place) if part)


def _faults(detail: Any, at: str) -> Iterator[Fault]:
    """The leaves of a ValidationError, each with its pointer."""
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            yield from _faults(value, at if key == "non_field_errors" else f"{at}/{_escaped(str(key))}")
    elif isinstance(detail, list):
        for index, value in enumerate(detail):
            whole = isinstance(value, str)
            yield from _faults(value, at if whole else f"{at}/{index}")
    else:
        yield Fault(str(detail), pointer=at)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _first(faults: tuple[Fault, ...]) -> str:
    if not faults:
        return "the request is not valid"
    first, more = faults[0], len(faults) - 1
    where = f"{first.pointer}: " if first.pointer else ""
    return f"{where}{first.detail}" + (f" (and {more} more)" if more else "")


def _headers(exc: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if getattr(exc, "auth_header", ""):
        headers["WWW-Authenticate"] = str(exc.auth_header)  # type: ignore[attr-defined]
    wait = getattr(exc, "wait", None)
    if wait is not None:
        headers["Retry-After"] = str(max(1, math.ceil(wait)))
    return headers


def _plain(problem: Problem) -> JsonResponse:
    return JsonResponse(
        problem.shown(), status=problem.status, content_type=MEDIA_TYPE, headers=dict(problem.headers)
    )


@csrf_exempt
def unknown(request: HttpRequest) -> HttpResponse:
    """Answer at every address under /api/ that does not exist."""
    slash = "" if request.path.endswith("/") else "; addresses end in a slash"
    return _plain(Problem(404, f"there is nothing at this address{slash}: see /api/v1/schema/"))


def broken(request: HttpRequest) -> HttpResponseBase:
    """Django's handler500: a problem under /api/, a page elsewhere."""
    if request.path.startswith("/api/"):
        return _plain(Problem(500, "the lab failed; the server's log has the traceback"))
    return server_error(request)


def malformed(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Django's handler400: a problem under /api/, a page elsewhere."""
    if request.path.startswith("/api/"):
        return _plain(Problem(400, "this lab does not accept this request"))
    if isinstance(exception, TooManyFilesSent):
        most = settings.DATA_UPLOAD_MAX_NUMBER_FILES
        said = f"A request may contain at most {most} files: go back and pack them into one .tar.gz.\n"
        return HttpResponse(said, status=400, content_type="text/plain; charset=utf-8")
    return bad_request(request, exception)
