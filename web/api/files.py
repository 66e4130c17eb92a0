# SPDX-License-Identifier: GPL-2.0-or-later
"""Answers that are files: text and bytes that nobody is to take for a page."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema

from lab.errors import UnknownRow
from lab.validation_messages import nearest

T = TypeVar("T")
V = TypeVar("V", bound=Callable[..., Any])
TEXT = "text/plain; charset=utf-8"


def as_file(body: str | bytes, media_type: str, name: str) -> HttpResponse:
    """A file to save, its type not to be guessed."""
    safe = re.sub(r"[^A-Za-z0-9._+-]+", "_", name)[:120]
    headers = {
        "Content-Disposition": f'attachment; filename="{safe}"',
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(body, content_type=media_type, headers=headers)


def form_named(forms: Mapping[str, T], form: str, thing: str) -> T:
    """One of the forms. Raises UnknownRow with those that there are."""
    if form not in forms:
        raise UnknownRow(f'{thing} has no format "{form[:40]}"; {nearest(form[:40], forms)}')
    return forms[form]


def told_as_file(forms: Mapping[str, str], operation: str) -> Callable[[V], V]:
    """Describe an address that ends in a format in the schema. forms: name → media type."""
    media = sorted({kind.partition(";")[0] for kind in forms.values()})
    told: Callable[[V], V] = extend_schema(
        operation_id=operation,
        parameters=[OpenApiParameter("form", {"type": "string", "enum": list(forms)}, OpenApiParameter.PATH)],
        responses={
            (200, kind): OpenApiTypes.ANY if kind == "application/json" else OpenApiTypes.BINARY
            for kind in media
        },
    )
    return told
