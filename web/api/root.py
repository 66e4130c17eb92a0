# SPDX-License-Identifier: GPL-2.0-or-later
"""The API's description: its schema, and the kinds of problems."""

from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer2
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from web.api.filters import PAGING, refuse_others
from web.api.problems import TYPES
from web.api.resource import Plain, View


class ProblemKindShape(serializers.Serializer[Any]):
    """The meaning of a problem's `type`."""

    type = serializers.CharField()
    title = serializers.CharField()


class Problems(View):
    """Kinds of problems."""

    permission_classes = ()
    pagination_class = None
    serializer_class = ProblemKindShape

    def list(self, request: Request) -> Response:
        """The kinds of problems that answers name in `type`."""
        refuse_others(request, PAGING)
        return Response(
            [{"type": f"/api/v1/problems/#{kind}", "title": title} for kind, title in TYPES.items()]
        )


@cache
def _schema() -> Any:
    return SchemaGenerator().get_schema(public=True)  # type: ignore[no-untyped-call]


class KeptSchema(SchemaGenerator):
    """The schema, made once a process: it is the same for everybody, and takes a sixth of a second."""

    def get_schema(self, request: Request | None = None, public: bool = False) -> Any:
        """Return the schema that everybody may read."""
        return _schema()


class SchemaView(SpectacularAPIView):
    """The OpenAPI schema."""

    authentication_classes = ()
    permission_classes = ()
    renderer_classes = [OpenApiJsonRenderer2]  # noqa: RUF012  as the library declares it
    content_negotiation_class = Plain
    generator_class = KeptSchema

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The schema, as JSON."""
        response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        return response
