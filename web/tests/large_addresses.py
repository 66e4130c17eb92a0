# SPDX-License-Identifier: GPL-2.0-or-later
"""Every address of a large lab that can be read: an example of each route, and lists as people narrow them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lab.models import (
    Alert,
    BasePoint,
    Bisection,
    Comparison,
    Delivery,
    Experiment,
    Fetch,
    Hook,
    LateAnswer,
    Note,
    Profile,
    Run,
    Sample,
    Standing,
    Target,
    Triage,
    User,
    Worker,
)
from lab.models.states import RunState
from web.tests.routes import Route, routes

# Beside each route as it is: the filters, orders and pages that people ask for most.
NARROWED = (
    "/experiments/?q=vfs&state=done",
    "/experiments/?verdict=regression",
    "/experiments/?workload=showgids&tree=mm",
    "/experiments/?target={group}&page=3",
    "/experiments/?sort=finished_at",
    "/regressions/?state=all&search=mm",
    "/regressions/?tree=vfs",
    "/trends/?sort=new&tree=mm",
    "/trends/?state=all&search=showgids",
    "/lab/?search=board-00",
    "/api/v1/experiments/?page_size=500",
    "/api/v1/experiments/?verdict=regression&state=done",
    "/api/v1/experiments/?page=20",
    "/api/v1/runs/?experiment={experiment_id}&page_size=500",
    "/api/v1/runs/?state=running",
    "/api/v1/runs/?page=100",
    "/api/v1/samples/?page_size=500",
    "/api/v1/samples/?experiment={experiment_id}&page_size=500",
    "/api/v1/samples/?run={run_id}&metric=elapsed&warmup=false",
    "/api/v1/samples/?page=100",
    "/api/v1/comparisons/?page_size=500",
    "/api/v1/comparisons/?verdict=regression",
    "/api/v1/comparisons/?experiment={experiment_id}",
    "/api/v1/variants/?experiment={experiment_id}",
    "/api/v1/builds/?experiment={experiment_id}",
    "/api/v1/profiles/?experiment={experiment_id}",
    "/api/v1/patches/?page=3",
    "/api/v1/trends/?tree=mm&primary=true",
)


def read_addresses() -> Iterator[tuple[str, str]]:
    """Yield the name and the address of each route, then the narrowed lists."""
    values = _values()
    for route in routes():
        yield route.name, _example(route, values)
    for address in NARROWED:
        yield address, address.format(**values)


def _example(route: Route, values: Mapping[str, object]) -> str:
    """Return an address of a route; of a resource of the API with a number of its own table."""
    resource = route.name.removeprefix("api-").partition("-")[0]
    if route.name.startswith("api-") and resource in _TABLES:
        newest = _TABLES[resource]._default_manager.order_by("-pk").values_list("pk", flat=True)[:1]
        return route.example({**values, f"{route.name}.id": newest[0]})
    return route.example(values)


_TABLES = {
    "samples": Sample,
    "workers": Worker,
    "late": LateAnswer,
    "notes": Note,
    "triage": Triage,
    "hooks": Hook,
    "deliveries": Delivery,
    "alerts": Alert,
    "fetches": Fetch,
    "profiles": Profile,
    "targets": Target,
    "comparisons": Comparison,
}


def _values() -> dict[str, object]:
    """Return a value for each parameter of an address: an experiment from the middle that has all there is."""
    called = Comparison.objects.filter(verdict="regression", primary=True, variant__role="candidate")
    over = called.order_by("pk")[called.count() // 2]
    experiment = Experiment.objects.get(pk=over.experiment_id)
    run = Run.objects.filter(experiment=experiment, state=RunState.DONE).order_by("-position")[0]
    target = Target.objects.exclude(group="").order_by("pk")[0]
    variant = experiment.variants.get(role="candidate")
    standing = Standing.objects.order_by("pk")[0].name
    return {
        "name": standing,
        "target.name": target.name,
        "act_on_target.name": target.name,
        "edit_target.name": target.name,
        "api-trees-detail.name": "mm",
        "api-workloads-detail.name": "showgids",
        "api-standing-detail.name": standing,
        "experiment_id": experiment.pk,
        "id": experiment.pk,
        "api-runs-detail.id": run.pk,
        "api-builds-detail.id": variant.build_id,
        "api-variants-detail.id": variant.pk,
        "case_id": over.case_id,
        "comparison_id": over.pk,
        "run_id": run.pk,
        "build_id": variant.build_id,
        "hook_id": Hook.objects.order_by("pk")[0].pk,
        "delivery_id": Delivery.objects.order_by("-pk")[0].pk,
        "alert_id": Alert.objects.order_by("-pk")[0].pk,
        "note_id": Note.objects.order_by("-pk")[0].pk,
        "target_id": target.pk,
        "bisection_id": Bisection.objects.order_by("-pk")[0].pk,
        "fetch_id": Fetch.objects.order_by("-pk")[0].pk,
        "user_id": User.objects.order_by("pk")[0].pk,
        "key": BasePoint.objects.filter(case=over.case_id, primary=True).values_list("trend", flat=True)[0],
        "group": target.group,
        "kind": "run",
        "work": run.pk,
        "form": "json",
        "mac": "52:54:00:12:34:56",
        "token": "0" * 43,
        "token_id": "0" * 15,
        "stream": "records",
        "number": 0,
        "secret": "wrong",
        "uidb64": "MQ",
    }
