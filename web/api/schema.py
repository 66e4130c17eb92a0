# SPDX-License-Identifier: GPL-2.0-or-later
"""Extensions of the OpenAPI schema: the problems that every operation may answer with are written here, once."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from lab.people.permissions import Action
from web.api.auth import Allowed, PasswordAuth, TokenAuth, needed_for
from web.api.problems import MEDIA_TYPE

_TOLD = {
    400: "The request does not match the schema.",
    401: "Not signed in, or the token is not valid.",
    403: "You, or this token, may not do this.",
    404: "Not found.",
    406: "The requested format is not available.",
    409: "Its state does not allow this.",
    410: "Its contents were deleted by the retention policy.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "Well formed, but refused.",
    429: "Too many requests; Retry-After says when to try again.",
    503: "The lab cannot do this now, for a reason of its own.",
}
_BODIED = frozenset({"POST", "PUT", "PATCH"})


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The schema's description of tokens."""

    target_class = TokenAuth
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the security scheme."""
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token` and a space before the token itself.",
        }


class PasswordScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The schema's description of names and passwords."""

    target_class = PasswordAuth
    name = "password"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the security scheme."""
        return {"type": "http", "scheme": "basic"}


class FaultShape(serializers.Serializer[Any]):
    """One thing that is wrong."""

    detail = serializers.CharField()
    pointer = serializers.CharField(required=False, help_text="JSON pointer into the request's body.")
    parameter = serializers.CharField(required=False, help_text="Name of a query parameter or header.")


class ProblemShape(serializers.Serializer[Any]):
    """RFC 9457 problem details."""

    type = serializers.CharField(help_text="A URI reference; `about:blank` if the status says it all.")
    title = serializers.CharField()
    status = serializers.IntegerField(min_value=400, max_value=599)
    detail = serializers.CharField(allow_blank=True)
    errors = FaultShape(many=True, required=False)  # type: ignore[assignment]


class Schema(AutoSchema):
    """drf-spectacular's schema, with our problems and the addresses open to anonymous clients."""

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        """One operation, complete."""
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is not None:
            problem = self.resolve_serializer(ProblemShape, "response")
            for status in sorted(self._problems()):
                operation["responses"].setdefault(str(status), _response(status, problem.ref))
        return operation

    def get_auth(self) -> list[dict[str, Any]]:
        """Return the ways to authenticate; reading needs none unless the lab is private."""
        auths: list[dict[str, Any]] = super().get_auth()
        readable = self._needed() == "read" and settings.ANONYMOUS_MAY_READ
        open_to_all = readable or not self.view.get_permissions()
        return [*auths, {}] if open_to_all and {} not in auths else auths

    def _needed(self) -> Action | None:
        if not any(isinstance(permission, Allowed) for permission in self.view.get_permissions()):
            return None
        return needed_for(self.view)

    def _problems(self) -> set[int]:
        statuses = {400, 401, 403, 406, 429}
        if "{" in self.path or self._is_list_view():
            statuses.add(404)
        if self._is_list_view():
            statuses.add(422)
        if self.method in _BODIED:
            statuses |= {413, 415, 422}
        return statuses | set(
            getattr(self.view, "also_answers", {}).get(getattr(self.view, "action", ""), ())
        )


def _response(status: int, problem: dict[str, Any]) -> dict[str, Any]:
    response: dict[str, Any] = {"description": _TOLD[status], "content": {MEDIA_TYPE: {"schema": problem}}}
    if status in {429, 503}:
        whole = {"type": "integer", "minimum": 1}
        response["headers"] = {"Retry-After": {"schema": whole, "required": True, "description": "Seconds."}}
    return response


@extend_schema_field({"type": "object", "additionalProperties": True})
class Mapped(serializers.JSONField):
    """A JSON object whose keys are data."""


@extend_schema_field({"type": "array", "items": {"type": "string"}})
class Texts(serializers.JSONField):
    """A list of texts."""


@extend_schema_field({"type": "array", "items": {}})
class Listed(serializers.JSONField):
    """A list of any values."""


class Number(serializers.FloatField):
    """A finite number, or null."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**({"allow_null": True} | arguments))
