# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles: what the CPUs, or the waits, of one boot did, in the forms of other tools."""

from collections.abc import Mapping
from typing import ClassVar

from django.http import HttpResponse
from rest_framework.decorators import action
from rest_framework.request import Request

from lab.errors import one_row
from lab.models import Profile
from lab.profiles.analysis.frame_tree import unpack
from lab.profiles.analysis.source_lines import merged_lines
from lab.profiles.analysis.weight_unit import unit_of
from lab.profiles.exports.formats import TREE_FORMS
from web.api.files import as_file, form_named, told_as_file
from web.api.resource import Plain, Resource
from web.api.shapes import TableRow

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
        """The whole of it, for other tools."""
        media_type, suffix = form_named(FORMS, form, "a profile")
        row = one_row(
            Profile.objects.filter(pk=id).select_related("run__variant", "run__case"), f"profile {id}"
        )
        run = row.run
        title = f"{run.case}: {run.variant}, run {run.pk}"
        context = {"title": title, "unit": unit_of(row.kind), "lines": merged_lines([row.lines])}
        written = TREE_FORMS[suffix].write(unpack(bytes(row.tree)), **context)
        return as_file(written, media_type, f"profile-{id}.{suffix}")
