# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's addresses, and lists of the same rows as a plain Django REST framework service writes them.

A ModelSerializer with all fields, a ModelViewSet over all rows and pages by number, as SQUAD's API has them.
"""

from typing import Any

from django.urls import include, path
from rest_framework import pagination, routers, serializers, viewsets

from lab.models import Comparison, Experiment, Run, Sample
from web.urls import urlpatterns as ours

PAGE_SIZE = 50


class Page(pagination.PageNumberPagination):
    """As large as ours."""

    page_size = PAGE_SIZE


def plain(of: type[Any]) -> type[viewsets.ReadOnlyModelViewSet[Any]]:
    """All rows of a table, all their columns."""

    class Plain(serializers.ModelSerializer[Any]):
        class Meta:
            model = of
            fields = "__all__"

    class Rows(viewsets.ReadOnlyModelViewSet[Any]):
        queryset = of._default_manager.order_by("-pk")
        serializer_class = Plain
        pagination_class = Page

    return Rows


router = routers.SimpleRouter()
for name, model in (
    ("experiments", Experiment),
    ("comparisons", Comparison),
    ("runs", Run),
    ("samples", Sample),
):
    router.register(name, plain(model), basename=f"plain-{name}")

urlpatterns = [*ours, path("plain/", include(router.urls))]
