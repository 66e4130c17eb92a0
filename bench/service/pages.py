# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time and queries of pages, the API's lists and /metrics on a full PostgreSQL, beside rows as DRF makes them of instances."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from lab.tests.postgres import start_cluster

ADDRESSES = (
    "/",
    "/experiments/",
    "/experiments/?q=vfs&state=done",
    "/experiments/{experiment}/",
    "/experiments/{experiment}/comparison/",
    "/experiments/{experiment}/runs/",
    "/regressions/?state=all&search=iter",
    "/trends/",
    "/trends/{trend}/",
    "/api/v1/experiments/",
    "/api/v1/experiments/?page_size=500",
    "/api/v1/experiments/?verdict=regression&state=done",
    "/api/v1/experiments/?page=20",
    "/api/v1/experiments/{experiment}/",
    "/api/v1/experiments/{experiment}/comparison/",
    "/api/v1/runs/?experiment={experiment}&page_size=500",
    "/api/v1/runs/?after=10000",
    "/api/v1/samples/?page_size=500",
    "/api/v1/samples/?experiment={experiment}&page_size=500",
    "/api/v1/samples/?after=500000",
    "/api/v1/samples/?experiment={experiment}&metric=elapsed&warmup=false",
    "/api/v1/comparisons/?page_size=500",
    "/api/v1/comparisons/?verdict=regression",
    "/api/v1/builds/",
    "/api/v1/variants/?experiment={experiment}",
    "/api/v1/patches/?page=3",
    "/api/v1/trends/",
    "/api/v1/trends/{trend}/",
)


def main(experiments: int, rounds: int) -> None:
    """Fill the tables, ask for the pages and for /metrics, and print a line for each and for each way to make rows."""
    os.environ["KPERFLAB_DATABASE"] = start_cluster()
    with tempfile.TemporaryDirectory(prefix="kperflab-pages-") as folder:
        os.environ |= {"KPERFLAB_HOME": folder, "KPERFLAB_STORE": folder, "KPERFLAB_HOSTS": "testserver"}
        fill = [sys.executable, "-m", "bench.load_store", "--experiments", str(experiments)]
        subprocess.run([*fill, "--samples", str(1000 * experiments)], check=True)
        _measure(rounds)


def _measure(rounds: int) -> None:
    # Django reads its settings here, after the variables above are set.
    from django.conf import settings
    from django.test import Client

    import workers.app  # noqa: F401
    from bench.service.busy_hour import make_busy
    from lab.models import BasePoint, Experiment

    settings.API_RATES = dict.fromkeys(settings.API_RATES, "1000000/min")
    names = {
        "experiment": Experiment.objects.values_list("pk", flat=True)[0],
        "trend": BasePoint.objects.values_list("trend", flat=True)[0],
    }
    print(f"{'CPU time':<50}{'p50 ms':>9}{'p95 ms':>9}{'queries':>9}{'kB':>7}")
    client = Client()
    for address in ADDRESSES:
        _print_row(address, partial(_content, client, address.format(**names)), rounds)
    for name, make in _ways().items():
        _print_row(name, make, rounds)
    make_busy()
    scrape = partial(_content, client, "/metrics")
    _print_row("/metrics, with readiness asked anew", scrape, rounds, before=_forget)
    _print_row("/metrics, right after another", scrape, rounds)


def _forget() -> None:
    """Make the next scrape ask database, Redis and the store again."""
    from lab.operations import readiness
    from lab.storage import store_check

    readiness._last = None
    store_check._asking._found = None


def _content(client: Any, path: str) -> bytes:
    return bytes(client.get(path).content)


def _ways() -> dict[str, Callable[[], bytes]]:
    """The newest 500 rows of three kinds: by columns, and by the same serializer of instances, with no question a row."""
    from rest_framework.renderers import JSONRenderer

    from lab.models import Comparison, Run, Sample
    from web.api.comparisons import ComparisonRow
    from web.api.rows import Shape, read_rows
    from web.api.runs import RunRow
    from web.api.samples import SampleRow

    def by_columns(shape: Shape, rows: Any) -> bytes:
        return bytes(JSONRenderer().render(read_rows(rows, shape)))

    def by_instances(shape: Shape, rows: Any) -> bytes:
        return bytes(JSONRenderer().render(shape(rows.all(), many=True).data))

    kinds: tuple[tuple[Shape, Any], ...] = (
        (RunRow, Run.objects.select_related("variant", "case")),
        (SampleRow, Sample.objects.all()),
        (ComparisonRow, Comparison.objects.select_related("variant", "case")),
    )
    ways: dict[str, Callable[[], bytes]] = {}
    for shape, rows in kinds:
        newest = rows.order_by("-pk")[:500]
        ways[f"500 {shape.__name__}: by columns"] = partial(by_columns, shape, newest)
        ways[f"500 {shape.__name__}: DRF, of instances"] = partial(by_instances, shape, newest)
    return ways


def _print_row(
    name: str, ask: Callable[[], bytes], rounds: int, before: Callable[[], None] = lambda: None
) -> None:
    from django.db import connection

    asked: list[str] = []

    # Django's own record of queries is emptied when a request begins.
    def note(execute: Any, sql: str, *rest: Any) -> Any:
        asked.append(sql)
        return execute(sql, *rest)

    before()
    with connection.execute_wrapper(note):
        size = len(ask())
    took = []
    for _ in range(rounds):
        before()
        began = time.process_time()
        ask()
        took.append(1000 * (time.process_time() - began))
    took.sort()
    p50, p95 = took[rounds // 2], took[int(0.95 * rounds)]
    print(f"{name:<50}{p50:>9.1f}{p95:>9.1f}{len(asked):>9}{size / 1000:>7.0f}", flush=True)
