# SPDX-License-Identifier: GPL-2.0-or-later
"""Answers that are files, and logs byte for byte from an offset on: no browser may take them for a page."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from lab.errors import FileGone, UnknownRow
from lab.storage.files import KeptFile
from lab.validation_messages import nearest
from web.api.filters import refuse_others
from web.api.problems import ParameterRefused, Problem, Refusal

# The most bytes in one answer; Log-Next says where the next answer begins.
MOST_BYTES = 1 << 20
MOST_OFFSET = 2**53
TEXT = "text/plain; charset=utf-8"
_NUMBER = re.compile(r"[0-9]{1,16}")

_OFFSET = OpenApiParameter(
    "offset",
    {"type": "integer", "minimum": 0, "maximum": MOST_OFFSET, "default": 0},
    OpenApiParameter.QUERY,
    description=f"Bytes to skip; a response has {MOST_BYTES >> 20} MiB at most.",
)


def _header(name: str, schema: dict[str, Any], description: str) -> OpenApiParameter:
    return OpenApiParameter(
        name, schema, OpenApiParameter.HEADER, required=True, response=[200], description=description
    )


told_as_log = extend_schema(
    parameters=[
        _OFFSET,
        _header("Log-Complete", {"type": "string", "enum": ["true", "false"]}, "Nothing follows."),
        _header("Log-Next", {"type": "integer", "minimum": 0}, "The offset of what follows."),
    ],
    responses={(200, "text/plain"): OpenApiTypes.STR},
)


def log_from(request: Request, file: KeptFile, *, over: bool) -> HttpResponse:
    """Return the bytes of a log from `?offset=` on. over: whether the log is complete.

    Raises Http404 if it is complete and its file is gone, Refusal (410) if the retention policy removed it, ParameterRefused.
    """
    offset = _offset(request)
    data, start, size = b"", offset, 0
    try:
        if file.name:
            piece = file.piece(offset, MOST_BYTES)
            # If another machine writes the log, only its end is known here.
            data, size, start = piece.data, piece.size, max(offset, piece.start)
    except FileGone as exc:
        if exc.removed:
            raise Refusal(Problem(410, f"this log was {exc}")) from exc
        if over:
            raise Http404("this log is no longer on this machine") from exc
    following = start + len(data)
    headers = {
        "Log-Complete": "true" if over and following >= size else "false",
        "Log-Next": str(following),
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(data, content_type=TEXT, headers=headers)


def _offset(request: Request) -> int:
    refuse_others(request, ("offset",))
    offset = request.query_params.get("offset", "0")
    if not _NUMBER.fullmatch(offset) or int(offset) > MOST_OFFSET:
        raise ParameterRefused("offset", f'"{offset[:40]}" is not a number of bytes')
    return int(offset)


T = TypeVar("T")
V = TypeVar("V", bound=Callable[..., Any])


def as_file(body: str | bytes, media_type: str, name: str) -> HttpResponse:
    """Return a file to save; browsers must not guess its type."""
    safe = re.sub(r"[^A-Za-z0-9._+-]+", "_", name)[:120]
    headers = {
        "Content-Disposition": f'attachment; filename="{safe}"',
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(body, content_type=media_type, headers=headers)


def form_named(forms: Mapping[str, T], form: str, thing: str) -> T:
    """Return the named form. Raises UnknownRow with the names of all."""
    if form not in forms:
        raise UnknownRow(f'{thing} has no format "{form[:40]}"; {nearest(form[:40], forms)}')
    return forms[form]


def told_as_file(forms: Mapping[str, str], operation: str) -> Callable[[V], V]:
    """Describe an address that ends in a format in the schema. forms: name → media type."""
    media = sorted({kind.partition(";")[0] for kind in forms.values()})
    decorator: Callable[[V], V] = extend_schema(
        operation_id=operation,
        parameters=[OpenApiParameter("form", {"type": "string", "enum": list(forms)}, OpenApiParameter.PATH)],
        responses={
            (200, kind): OpenApiTypes.ANY if kind == "application/json" else OpenApiTypes.BINARY
            for kind in media
        },
    )
    return decorator
