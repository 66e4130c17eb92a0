# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time and queries of lists on a full PostgreSQL, beside rows as DRF makes them of instances, and of /metrics."""

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


def main(experiments: int = 1000, rounds: int = 100) -> None:
    """Measure the API's list of experiments, 500 rows of three kinds made in two ways, and /metrics."""
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

    settings.API_RATES = dict.fromkeys(settings.API_RATES, "1000000/min")
    print(f"{'CPU time':<50}{'p50 ms':>9}{'p95 ms':>9}{'queries':>9}{'kB':>7}")
    client = Client()
    _print_row("/api/v1/experiments/", partial(_content, client, "/api/v1/experiments/"), rounds)
    for name, make in _ways().items():
        _print_row(name, make, rounds)
    make_busy()
    scrape = partial(_content, client, "/metrics")
    _print_row("/metrics, with readiness checked again", scrape, rounds, before=_forget)
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
    from web.api.comparisons import ComparisonRow, SampleRow
    from web.api.runs import RunRow
    from web.api.shapes import Shape, read_rows

    def by_columns(shape: Shape, rows: Any) -> bytes:
        return bytes(JSONRenderer().render(read_rows(rows, shape)))

    def by_instances(shape: Shape, rows: Any) -> bytes:
        return bytes(JSONRenderer().render(shape(rows.all(), many=True).data))

    kinds: tuple[tuple[Shape, Any], ...] = (
        (RunRow, Run.objects.select_related("variant", "case", "target")),
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
