# SPDX-License-Identifier: GPL-2.0-or-later
"""Submitting and previewing: the same description as in TOML on disk, but as JSON."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from lab.errors import FieldRefused, NeedsWorker
from lab.experiments.spec import SWITCH_MODELS, ExperimentSpec, spec_from_mapping
from lab.from_attributes import attributes
from lab.models import Experiment, Fetch
from lab.models.states import Role
from lab.submission.duplicates import submit_under_key
from lab.submission.fetches.problem import error_of
from lab.submission.fetches.requests import FetchRequest, fetches_before, find_fetch, request_fetch
from lab.submission.fetches.series import WantedSeries
from lab.submission.preview import Detectable, PatchPreview, Preview, SwitchPreview, VariantPreview
from lab.submission.received_series import Upload, each_patch, receive_files
from lab.submission.web_process import every_fault_here, preview_here, submit_noted
from web.api.auth import SubmitLimit, caller
from web.api.fields import NO_NUL
from web.api.problems import ParameterRefused, problem_of
from web.api.resource import Resource
from web.api.schema import ProblemShape
from web.api.shapes import DataShape, Names, TableRow, finite

_SWITCHES = frozenset(model.__name__ for model in SWITCH_MODELS.values())
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
KEY_HEADER = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": r"^[\x21-\x7e]{1,200}$"},
    OpenApiParameter.HEADER,
    description="Your own name for this submission: a repeated request with the same key and body creates no second experiment. "
    "Kept for 30 days.",
)
REPLAYED = OpenApiParameter(
    "Idempotent-Replayed",
    {"type": "string", "enum": ["true"]},
    OpenApiParameter.HEADER,
    required=True,
    response=[200],
    description="The experiment existed already.",
)


EXAMPLE = {
    "name": "what does list debugging cost?",
    "tree": "debian-6.1",
    "configs": [{"name": "debug-list", "lines": ["CONFIG_DEBUG_LIST=y"]}],
    "cases": [{"workload": "showgids", "preset": "smoke"}],
    "measure": {"boots": 3},
}


class DescriptionShape(serializers.Serializer[Any]):
    """The requested experiment; lab/experiments/spec.py has the schema, and checks it."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Return the body. Raises ValidationError unless it is an object."""
        if not isinstance(data, dict):
            raise ValidationError("a description is a JSON object")
        return data


def close(schema: Any) -> None:
    """Forbid NUL in each string and key of a JSON schema, in place; web/api/bodies.py refuses it."""
    if isinstance(schema, list):
        for part in schema:
            close(part)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "string" and not {"pattern", "enum", "const"} & set(schema):
        schema["pattern"] = NO_NUL
    if isinstance(schema.get("additionalProperties"), dict):
        schema["propertyNames"] = {"pattern": NO_NUL}
    for name, part in schema.items():
        if name not in {"default", "enum", "examples", "required"}:
            close(part)


class DescriptionSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Puts pydantic's schema of descriptions into the OpenAPI schema."""

    target_class = DescriptionShape

    def get_name(self, auto_schema: Any, direction: Any) -> str:
        """Return the component's name."""
        return "Description"

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        """Return the schema of a description, with its parts as components of their own."""
        whole = ExperimentSpec.model_json_schema(ref_template="#/components/schemas/{model}")
        # Names that are left out are taken from subjects and symbols.
        whole["required"].remove("name")
        for name, part in whole.pop("$defs", {}).items():
            if name in _SWITCHES:
                part["required"].remove("name")
            if name == "PatchSpec":
                # Only labctl knows where the text was read from.
                part["properties"].pop("origin")
            close(part)
            component = ResolvedComponent(  # type: ignore[no-untyped-call]
                name=name, type=ResolvedComponent.SCHEMA, object=name, schema=part
            )
            auto_schema.registry.register_on_missing(component)
        whole["properties"]["series"] = {
            "type": "string",
            "minLength": 1,
            "description": "In place of patches: an mbox, which becomes one switch.",
        }
        whole["properties"]["each"] = {
            "type": "boolean",
            "default": False,
            "description": "Make each patch of the series a switch.",
        }
        whole["properties"]["partial"] = {
            "type": "boolean",
            "default": False,
            "description": "Accept the series although patches are missing or versions are mixed.",
        }
        whole["examples"] = [EXAMPLE]
        close(whole)
        return whole


class VariantPreviewShape(DataShape):
    """One variant: built already, to build, or pruned with the reason."""

    of = VariantPreview
    role = serializers.ChoiceField(Role.choices)
    state = serializers.ChoiceField(("built", "to build", "pruned"))


class DetectableShape(DataShape):
    """The smallest change of a metric that would be found four times in five; null if it is not known, and why.

    estimate: words where it comes from shipped figures; empty where it comes from this lab's own experiments.
    """

    of = Detectable


class PatchPreviewShape(DataShape):
    """One patch as it was read. number, total: its place in that version of its series, as its subject says; 0 if it does not."""

    of = PatchPreview


class SwitchPreviewShape(DataShape):
    """One switch as it was read. report: what was repaired; notes: which mails were chosen and left out."""

    of = SwitchPreview
    kind = serializers.ChoiceField(("patch", "config"))


class PreviewShape(DataShape):
    """The cost of an experiment. boots: at most; fewest: where boots may stop early; seconds: null where not known.

    estimate: words where seconds comes from shipped figures, empty where it comes from this lab; at_least: it may take longer.
    """

    of = Preview


class FetchRow(TableRow):
    """A preview or submission that a worker carries out, since its tree is fetched by git or not imported yet.

    before: the number of earlier requests that are unfinished; received_bytes: bytes that the other host has sent.
    """

    table = Fetch
    columns: Names = (
        *("id", "url", "page", "kind", "state", "progress", "received_bytes", "before", "created_at"),
        *("started_at", "finished_at", "experiment"),
    )
    url = serializers.CharField(source="*")
    page = serializers.CharField(source="*", help_text="The address of its page, for people.")
    progress = serializers.CharField(allow_blank=True)
    before = serializers.IntegerField(source="*")


class FetchDetail(FetchRow):
    """A fetch with its result: a preview or an experiment, or the problem it ended with."""

    columns: Names = (*FetchRow.columns, "preview", "problem")
    preview = PreviewShape(allow_null=True)
    problem = ProblemShape(allow_null=True)


RETRY_AFTER = OpenApiParameter(
    "Retry-After",
    {"type": "integer", "minimum": 1},
    OpenApiParameter.HEADER,
    required=True,
    response=[202],
    description="Seconds until the next poll of the fetch.",
)


class Submission(Resource):
    """The part of `Experiments` that takes descriptions in."""

    def get_throttles(self) -> list[Any]:
        """Return the limits; descriptions have their own, since each is applied to a tree."""
        tried = getattr(self, "action", None) in {"create", "preview"}
        return [SubmitLimit()] if tried else super().get_throttles()

    def create(self, request: Request) -> Response:
        """Queue an experiment."""
        user = caller(request)
        key = request.headers.get("Idempotency-Key")
        if key is not None and not _KEY.fullmatch(key):
            raise ParameterRefused(
                "Idempotency-Key", "give 1 to 200 printable ASCII characters without spaces"
            )
        body = _mapping(request)
        sha256 = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        row = find_fetch(by=user, key=key or "", body_sha256=sha256)
        if row is not None:
            return (
                self._handed_over(row) if row.experiment_id is None else self._made(row.experiment_id, True)
            )

        def submit(note: Callable[[Experiment], None]) -> Experiment:
            return submit_noted(spec=spec_from_mapping(body), by=user, note=note)

        try:
            with every_fault_here(body, user):
                if key is None:
                    return self._made(submit(lambda _: None).pk, False)
                experiment, replayed = submit_under_key(user=user, key=key, body_sha256=sha256, submit=submit)
        except NeedsWorker:
            asked = FetchRequest(Fetch.Kind.SUBMIT, WantedSeries(body), key=key or "", body_sha256=sha256)
            return self._handed_over(request_fetch(by=user, asked=asked))
        return self._made(experiment.pk, replayed)

    def _made(self, experiment_id: int, replayed: bool) -> Response:
        shown = self.full_row(experiment_id)
        headers = {"Location": shown["url"]} | ({"Idempotent-Replayed": "true"} if replayed else {})
        return Response(shown, status=200 if replayed else 201, headers=headers)

    def _handed_over(self, row: Fetch) -> Response:
        shown = fetch_shown(row, self.request)
        return Response(shown, status=202, headers={"Location": shown["url"], "Retry-After": "1"})

    @extend_schema(
        request=DescriptionShape, parameters=[RETRY_AFTER], responses={200: PreviewShape, 202: FetchDetail}
    )
    @action(detail=False, methods=["post"])
    def preview(self, request: Request) -> Response:
        """Predict the builds, boots, duration and detectable changes of a description; queue nothing.

        Answers 202 with a fetch to poll if a worker has to get the tree first.
        """
        body, user = _mapping(request), caller(request)
        try:
            with every_fault_here(body, user):
                preview = preview_here(spec=spec_from_mapping(body), by=user)
            return Response(finite(asdict(preview)))
        except NeedsWorker:
            asked = FetchRequest(Fetch.Kind.PREVIEW, WantedSeries(body))
            return self._handed_over(request_fetch(by=user, asked=asked))


def fetch_shown(row: Fetch, request: Request) -> dict[str, Any]:
    """A fetch in full, as JSON has it."""
    problem = problem_of(error_of(row.problem)) if row.problem else None
    return {
        **fetch_line(row, request),
        "preview": finite(row.preview),
        "problem": problem.shown() if problem else None,
    }


def fetch_line(row: Fetch, request: Request) -> dict[str, Any]:
    """A fetch as lists have it."""
    root = request.build_absolute_uri("/")
    return {
        "id": row.pk,
        "url": f"{root}api/v1/fetches/{row.pk}/",
        "page": f"{root}fetches/{row.pk}/",
        **attributes(row, ("kind", "state", "progress", "received_bytes")),
        "before": fetches_before(row),
        **attributes(row, ("created_at", "started_at", "finished_at")),
        "experiment": row.experiment_id,
    }


def _mapping(request: Request) -> dict[str, Any]:
    if not isinstance(request.data, dict):
        raise ValidationError("a description is a JSON object")
    body = dict(request.data)
    series, each, partial = body.pop("series", None), body.pop("each", False), body.pop("partial", False)
    if series is None:
        for field, value in (("each", each), ("partial", partial)):
            if value is not False:
                raise FieldRefused(field, "it is of a series: give one, or leave it out")
        return body
    if not isinstance(series, str) or not isinstance(each, bool) or not isinstance(partial, bool):
        raise ValidationError(
            {"series": ["series must be an mbox as text, each and partial must be true or false"]}
        )
    if body.get("patches"):
        raise FieldRefused("series", "give patches or a series, not both")
    return body | {"patches": _patches_of(series, each=each, partial=partial)}


def _patches_of(series: str, *, each: bool, partial: bool) -> list[dict[str, Any]]:
    """Return a series as patches of a description. Raises FieldRefused."""
    try:
        received = receive_files([Upload("series.mbox", series.encode())])
        parts = each_patch(received[0], partial=partial) if each else received
    except FieldRefused as exc:
        raise FieldRefused("each" if exc.field == "each" else "series", str(exc)) from exc
    allowed = {"partial": True} if partial and not each else {}
    return [{"name": part.name, "text": part.text, **allowed} for part in parts]
