# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment's profiles: all variants side by side, as the mails' text trees, and as files."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from lab.models import Experiment
from lab.profiles.difference import SeenFrom
from lab.profiles.exports.data import profile_data
from lab.profiles.exports.files import callers_text, profile_file
from lab.profiles.exports.formats import DIFFERENCE_FORMS, TREE_FORMS
from web.api.files import TEXT, as_file
from web.api.problems import ParameterRefused
from web.api.resource import Plain, View
from web.api.rows import finite

_TOLD = {
    "symbols": "Symbols to split by caller, separated by commas; by default those that the workload watches.",
    "kind": "cpu, lock, off-cpu, exact or waiting; by default the first that is available.",
    "case": "Number of the case, from 1; by default the first that is profiled.",
    "variant": "The variant whose boots are summed; by default the base.",
    "base": "Write the difference to this variant.",
    "callers": "Write the callers of this symbol instead of the whole tree; * for every symbol.",
    "callees": "Write the callees of this symbol, merged over all its callers. With callers, the two halves of a sandwich.",
}
_MOST_SYMBOLS = 8
_MOST_CASES = 999
_TEXT = {"type": "string"}
_FORM = {"case": {"type": "integer", "minimum": 0, "maximum": _MOST_CASES}}


def _parameters(*names: str) -> list[OpenApiParameter]:
    return [OpenApiParameter(name, _FORM.get(name, _TEXT), description=_TOLD[name]) for name in names]


class Profiled(View):
    """The profiles of one experiment."""

    queryset = Experiment.objects.all()
    pagination_class = None
    filter_backends = ()

    @extend_schema(
        operation_id="experiments_profile",
        parameters=_parameters("symbols", "kind"),
        responses={(200, "application/json"): OpenApiTypes.OBJECT},
    )
    def show(self, request: Request, id: int) -> Response:  # noqa: A002  the address says so
        """For each profiled case: symbols by caller, symbols that changed, counters, what profiling cost."""
        asked = _asked(request, "symbols", "kind")
        found = profile_data(id, symbols=_symbols(asked), kind=asked.get("kind", ""))
        return Response({"cases": finite(found)})


class ProfiledCallers(View):
    """The callers of some symbols, as text."""

    queryset = Experiment.objects.all()
    content_negotiation_class = Plain

    @extend_schema(
        operation_id="experiments_profile_callers",
        parameters=_parameters("symbols", "kind"),
        responses={(200, "text/plain"): OpenApiTypes.STR},
    )
    def show(self, request: Request, id: int) -> HttpResponse:  # noqa: A002
        """The text trees that the kernel's lists quote from perf report."""
        asked = _asked(request, "symbols", "kind")
        text = callers_text(id, symbols=_symbols(asked), kind=asked.get("kind", ""))
        return as_file(text, TEXT, f"callers-{id}.txt")


class ProfiledFiles(View):
    """Profiles of variants, and their differences, in the forms of other tools."""

    queryset = Experiment.objects.all()
    content_negotiation_class = Plain
    also_answers = {"show": (422,)}  # noqa: RUF012  as the base class declares it

    @extend_schema(
        operation_id="experiments_profile_file",
        parameters=[
            OpenApiParameter(
                "form",
                {"type": "string", "enum": list(dict.fromkeys([*TREE_FORMS, *DIFFERENCE_FORMS]))},
                OpenApiParameter.PATH,
            ),
            *_parameters("case", "variant", "base", "kind", "callers", "callees"),
        ],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    def show(self, request: Request, id: int, form: str) -> HttpResponse:  # noqa: A002
        """One of them; with `base` how the variant differs from it."""
        asked = _asked(request, "case", "variant", "base", "kind", "callers", "callees")
        number = asked.pop("case", "0")
        if not (number.isascii() and number.isdecimal() and int(number[:9]) <= _MOST_CASES):
            raise ParameterRefused("case", f'"{number[:40]}" is not the number of a case')
        seen = SeenFrom(asked.pop("callers", ""), asked.pop("callees", ""))
        if seen.callers and seen.callees:
            raise ParameterRefused(
                "callees", "leave it out, or callers: they are two trees, drawn one at a time"
            )
        body = profile_file(id, form, case=int(number), seen=seen, **asked)
        return as_file(body, "application/octet-stream", f"profile-{id}.{form}")


def _asked(request: Request, *known: str) -> dict[str, Any]:
    for name in request.query_params:
        if name not in known:
            raise ParameterRefused(name[:40], f"there is no such parameter; valid: {', '.join(known)}")
    return dict(request.query_params.items())


def _symbols(asked: dict[str, Any]) -> tuple[str, ...]:
    return tuple(asked.get("symbols", "").replace(",", " ").split()[:_MOST_SYMBOLS])
