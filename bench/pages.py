# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time of pages and the API's lists with 1,000 experiments and a million samples, and the same rows as DRF makes them of instances.

    python -m bench.pages [--rounds N] [--home DIR]

Times are of this process's CPU, over all there is between request and bytes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

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
    "/api/v1/runs/?page=500",
    "/api/v1/samples/?page_size=500",
    "/api/v1/samples/?experiment={experiment}&page_size=500",
    "/api/v1/samples/?page=20000",
    "/api/v1/samples/?metric=elapsed&warmup=false",
    "/api/v1/comparisons/?page_size=500",
    "/api/v1/comparisons/?verdict=regression",
    "/api/v1/builds/",
    "/api/v1/variants/?experiment={experiment}",
    "/api/v1/patches/?page=3",
    "/api/v1/trends/",
    "/api/v1/trends/{trend}/",
)


def main() -> None:
    """Make the tables, ask for the pages, print a line for each, then for each way to make rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--home", help="keep the tables here, and use those that are")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kperflab-pages-") as folder:
        os.environ["KPERFLAB_HOME"] = given.home or folder
        os.environ["KPERFLAB_HOSTS"] = "testserver"
        subprocess.run([sys.executable, "-m", "bench.load_store"], check=True)
        _measure(given.rounds)


def _measure(rounds: int) -> None:
    # The home is named by now, so Django may read its settings.
    from django.conf import settings
    from django.test import Client

    import workers.app  # noqa: F401
    from lab.models import BasePoint, Experiment

    settings.API_RATES = dict.fromkeys(settings.API_RATES, "1000000/min")
    names = {
        "experiment": Experiment.objects.values_list("pk", flat=True)[0],
        "trend": BasePoint.objects.values_list("trend", flat=True)[0],
    }
    print(f"{'address':<50}{'p50 ms':>9}{'p95 ms':>9}{'queries':>9}{'kB':>7}")
    client = Client()
    for address in ADDRESSES:
        _tell(address, partial(_content, client, address.format(**names)), rounds)
    for name, make in _ways().items():
        _tell(name, make, rounds)


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


def _tell(name: str, ask: Callable[[], bytes], rounds: int) -> None:
    from django.db import connection

    asked: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        asked.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        size = len(ask())
    took = []
    for _ in range(rounds):
        began = time.process_time()
        ask()
        took.append(1000 * (time.process_time() - began))
    took.sort()
    p50, p95 = took[rounds // 2], took[int(0.95 * rounds)]
    print(f"{name:<50}{p50:>9.1f}{p95:>9.1f}{len(asked):>9}{size / 1000:>7.0f}", flush=True)


if __name__ == "__main__":
    main()
