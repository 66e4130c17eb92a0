# SPDX-License-Identifier: GPL-2.0-or-later
"""Names for descriptions: trees, workloads, switches of the catalogue and those that were submitted."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, overload

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lab.from_attributes import attributes
from lab.models import Switch
from lab.models.bounded import MOST_COUNTED, bounded_count
from lab.submission.choices import submission_choices
from lab.validation_messages import nearest
from web.api.filters import Filters, Known, Search, Where, WordFilter
from web.api.resource import Resource, View
from web.api.schema import Listed, Mapped, Texts
from web.api.shapes import Names, Row, Shape, TableRow, finite, read_rows


class TreeShape(serializers.Serializer[Any]):
    """A tree; its default revision is empty until the tree has one."""

    name = serializers.CharField()
    default_revision = serializers.CharField(allow_blank=True)


class PresetShape(serializers.Serializer[Any]):
    """A named set of parameters."""

    name = serializers.CharField()
    params = Mapped()


class ParamShape(serializers.Serializer[Any]):
    """A parameter: its valid values, and its meaning."""

    name = serializers.CharField()
    valid = serializers.CharField(allow_blank=True)
    help = serializers.CharField(allow_blank=True)


class WorkloadShape(serializers.Serializer[Any]):
    """A workload with its presets and parameters."""

    name = serializers.CharField()
    summary = serializers.CharField(allow_blank=True)
    presets = PresetShape(many=True)
    params = ParamShape(many=True)


class Choices(View, ABC):
    """A list out of the lab's own catalogues, by name."""

    filter_backends = (Known,)
    lookup_url_kwarg = "name"
    lookup_value_converter = "str"
    shape: ClassVar[Shape]

    def get_serializer_class(self) -> Shape:
        """Return the serializer of an item."""
        return self.shape

    @abstractmethod
    def items(self) -> Mapping[str, Row]:
        """All of them, by name."""

    def list(self, request: Request) -> Response:
        """A page of them."""
        Known().filter_queryset(request, Switch.objects.none(), self)
        page = self.paginate_queryset(list(self.items().values()))  # type: ignore[arg-type]
        return self.get_paginated_response(page)

    @extend_schema(parameters=[OpenApiParameter("name", str, OpenApiParameter.PATH)])
    def retrieve(self, request: Request, name: str) -> Response:
        """One of them."""
        items = self.items()
        if name not in items:
            raise Http404(f'there is no "{name[:100]}"; {nearest(name[:100], items)}')
        return Response(items[name])


class Trees(Choices):
    """Trees that a description can name."""

    shape = TreeShape

    def items(self) -> Mapping[str, Row]:
        """Registered and default ones."""
        return {
            name: {"name": name, "default_revision": said}
            for name, said in submission_choices().trees.items()
        }


class Workloads(Choices):
    """Workloads."""

    shape = WorkloadShape

    def items(self) -> Mapping[str, Row]:
        """All of the catalogue."""
        return {
            name: {
                "name": name,
                "summary": workload.summary,
                "presets": [
                    {"name": preset, "params": finite(dict(params))}
                    for preset, params in workload.presets.items()
                ],
                "params": [
                    {"name": param.name, "valid": param.valid, "help": param.help}
                    for param in workload.params.values()
                ],
            }
            for name, workload in submission_choices().workloads.items()
        }


class PatchRow(TableRow):
    """A switch. A switch of the catalogue has trees, and no id; a submitted switch has an experiment."""

    table = Switch
    columns: Names = (
        *("id", "experiment", "name", "kind", "title", "author", "link", "requires", "excludes", "trees"),
    )
    id = serializers.IntegerField(allow_null=True)
    experiment = serializers.IntegerField(source="experiment_id", allow_null=True)
    kind = serializers.ChoiceField(Switch.Kind.choices)
    trees = Texts(source="*")


class PatchDetail(PatchRow):
    """A submitted switch with its text, the claims about it, the repairs to it, and notes on how its series was read."""

    columns: Names = (*PatchRow.columns, "text", "claims", "report", "notes")
    claims = Listed()


class PatchFilters(Filters):
    """Filters by experiment, name and kind; any of them leaves the catalogue out."""

    rows = PatchRow
    names = ("experiment", "name", "kind")
    kind = WordFilter(Switch.Kind)


class Both(Sequence[Any]):
    """The catalogue's switches, then the keys of the submitted ones, as one sequence that is read a page at a time.

    query: of the submitted ones, in whose order the list ends.
    """

    def __init__(self, catalogue: Sequence[Row], keys: QuerySet[Any]) -> None:
        self.catalogue, self.keys, self.query = catalogue, keys, keys.query
        self.submitted = bounded_count(keys, MOST_COUNTED)

    def __len__(self) -> int:
        return len(self.catalogue) + self.submitted

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, int):
            return self[place : place + 1][0]
        own = len(self.catalogue)
        start, stop = place.start or 0, len(self) if place.stop is None else place.stop
        return [*self.catalogue[start:stop], *self.keys[max(0, start - own) : max(0, stop - own)]]


class Patches(Resource):
    """Switches: of the catalogue, and submitted ones, the newest first."""

    queryset = Switch.objects.all()
    rows, whole = PatchRow, PatchDetail
    filterset_class = PatchFilters
    filter_backends: Any = (Known, Where, Search)
    search_fields = ("name", "title", "author")

    def list(self, request: Request) -> Response:
        """A page of them; a filter, a search and `after` look through submitted ones only."""
        keys = self.filter_queryset(self.get_queryset()).order_by("-pk").values_list("pk", flat=True)
        narrowed = any(name not in {"page", "page_size"} for name in request.query_params)
        page: Any = self.paginate_queryset(keys if narrowed else Both(_catalogue(), keys))  # type: ignore[arg-type]
        own = [key for key in page if isinstance(key, dict)]
        rows = read_rows(self.get_queryset(), self.rows, [key for key in page if not isinstance(key, dict)])
        return self.get_paginated_response([*own, *self.completed(rows)])

    def completed(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Leave trees empty: a submitted switch is for the tree that its experiment names."""
        for row in rows:
            row["trees"] = []
        return rows


def _catalogue() -> list[Row]:
    return [
        {
            "id": None,
            "experiment": None,
            "kind": Switch.Kind.PATCH,
            **attributes(switch, ("name", "title", "author", "link")),
            "trees": list(switch.trees),
            "requires": list(switch.requires),
            "excludes": list(switch.excludes),
        }
        for switch in submission_choices().switches.values()
    ]
