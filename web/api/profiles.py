# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of one boot or of an experiment's variants, of running CPUs or of waits, in the formats of other tools."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from lab.errors import one_row
from lab.models import Experiment, Profile
from lab.profiles.analysis.frame_tree import unpack
from lab.profiles.analysis.source_lines import merged_lines
from lab.profiles.analysis.weight_unit import unit_of
from lab.profiles.difference import SeenFrom
from lab.profiles.exports.data import callers_text, profile_data, profile_file
from lab.profiles.exports.formats import DIFFERENCE_FORMS, TREE_FORMS
from web.api.filters import refuse_others
from web.api.logs import TEXT, as_file, form_named, told_as_file
from web.api.problems import ParameterRefused
from web.api.resource import Plain, Resource, View
from web.api.shapes import TableRow, finite

# By the name in the address: the media type, and the suffix of the file.
FORMS: Mapping[str, tuple[str, str]] = {
    form.name: (form.media_type, suffix) for suffix, form in TREE_FORMS.items()
}


class ProfileRow(TableRow):
    """A profile. samples: the sum of its weights; overhead: of elapsed time, as a fraction."""

    table = Profile
    paths: ClassVar = {"experiment": "run__experiment", "variant": "run__variant", "case": "run__case"}
    columns = (
        *("id", "run", "experiment", "variant", "case", "kind", "samples", "waits", "lost", "throttled"),
        *("overhead", "truncated", "kernel_build_id", "perf_data_sha256"),
    )


class Profiles(Resource):
    """Profiles."""

    queryset = Profile.objects.all()
    rows = ProfileRow
    filters = ("run", "experiment", "variant", "case", "kind")
    ordering_fields = ("id", "run", "samples")
    ordering = ("-pk",)
    also_answers = {"form": (422,)}  # noqa: RUF012  as the base class declares it

    @told_as_file({name: media for name, (media, _) in FORMS.items()}, "profiles_form")
    @action(detail=True, url_path="<str:form>", content_negotiation_class=Plain)
    def form(self, request: Request, id: int, form: str) -> HttpResponse:  # noqa: A002  the address says so
        """The whole profile, in a format of other tools."""
        media_type, suffix = form_named(FORMS, form, "a profile")
        row = one_row(
            Profile.objects.filter(pk=id).select_related("run__variant", "run__case"), f"profile {id}"
        )
        run = row.run
        title = f"{run.case}: {run.variant}, run {run.pk}"
        context = {"title": title, "unit": unit_of(row.kind), "lines": merged_lines([row.lines])}
        written = TREE_FORMS[suffix].write(unpack(bytes(row.tree)), **context)
        return as_file(written, media_type, f"profile-{id}.{suffix}")


_TOLD = {
    "symbols": "Symbols to split by caller, separated by commas; by default those that the workload watches.",
    "kind": "cpu, lock, off-cpu, exact or waiting; by default the first that is available.",
    "case": "Number of the case, from 1; by default the first that is profiled.",
    "variant": "The variant whose boots are summed; by default the base.",
    "base": "Write the difference to this variant.",
    "callers": "Write the callers of this symbol instead of the whole tree; * for every symbol.",
    "callees": "Write the callees of this symbol, merged over all its callers, instead of the whole tree; not together with callers.",
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
        cases = profile_data(id, symbols=_symbols(asked), kind=asked.get("kind", ""))
        return Response({"cases": finite(cases)})


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
        """The profile of a variant; with `base`, its difference to that variant."""
        asked = _asked(request, "case", "variant", "base", "kind", "callers", "callees")
        number = asked.pop("case", "0")
        if not (number.isascii() and number.isdecimal() and int(number[:9]) <= _MOST_CASES):
            raise ParameterRefused("case", f'"{number[:40]}" is not the number of a case')
        seen = SeenFrom(asked.pop("callers", ""), asked.pop("callees", ""))
        if seen.callers and seen.callees:
            two_trees = "leave it out, or callers: they are two trees, drawn one at a time"
            raise ParameterRefused("callees", two_trees, status=422)
        body = profile_file(id, form, case=int(number), seen=seen, **asked)
        return as_file(body, "application/octet-stream", f"profile-{id}.{form}")


def _asked(request: Request, *known: str) -> dict[str, Any]:
    refuse_others(request, known)
    return dict(request.query_params.items())


def _symbols(asked: dict[str, Any]) -> tuple[str, ...]:
    symbols = tuple(asked.get("symbols", "").replace(",", " ").split())
    if len(symbols) > _MOST_SYMBOLS:
        raise ParameterRefused("symbols", f"give at most {_MOST_SYMBOLS}, not {len(symbols)}")
    return symbols
