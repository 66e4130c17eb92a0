# SPDX-License-Identifier: GPL-2.0-or-later
"""No page and no list reads a whole table: what PostgreSQL looks at for every address of a large lab. With KPERFLAB_TEST_DATABASE=postgres."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client

from lab.models import User
from lab.tests.factories import make_user
from lab.tests.large_lab.fill import fill
from lab.tests.large_lab.size import LabSize
from lab.tests.plans import Scan, explained, table_sizes
from web.tests.conftest import signed_in
from web.tests.large_addresses import read_addresses

pytestmark = [
    # Not in one transaction: the server ends one in which nothing happens for a minute.
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite does not tell what it read"),
]

SIZE = LabSize(experiments=3000, samples=300_000, profiles=3000, targets=100, templates=10, boots=3)
# Such a table grows with the work of the lab, and reading all of it costs more each month.
LARGE = 2000
# A page of 500 rows, each with some from another table.
MOST_ROWS = 2000
# Lists count so many rows in this test, as they count 10,000 elsewhere.
COUNTED = 500
# What may read a whole table, by the beginning of a name or an address and the table, and why.
_WALKS = (
    "a filter walks over experiments until a page is full; of boots, samples and profiles it reads nothing"
)
_AGAIN = "alerts that were measured again: the levels before them, from the points of their trends"
ALLOWED = {
    **{
        (begin, f"lab_{table}"): _WALKS
        for begin in (
            "/experiments/?",
            "/api/v1/experiments/?verdict",
            "/regressions/?",
            "regressions",
            "/api/v1/comparisons/?verdict",
        )
        for table in ("experiment", "case", "variant", "comparison", "switch")
    },
    **{
        (begin, f"lab_{table}"): _AGAIN
        for begin in ("alerts", "api-alerts-repeatability", "trends", "/trends/?")
        for table in ("basepoint", "case", "revision")
    },
    ("/api/v1/experiments/?page_size=500", "lab_run"): "counts the boots of 500 experiments",
    ("/api/v1/experiments/?page_size=500", "lab_comparison"): "counts the verdicts of 500 experiments",
    ("/api/v1/comparisons/?page_size=500", "lab_case"): "names of 500 rows, of a table that is hardly larger",
    ("metrics", "lab_healthcheck"): "a month of checks of each target, which drift is seen in",
    ("metrics", "lab_experiment"): "experiments by state, from the index",
    ("people", "lab_experiment"): "operators see how many experiments each person has",
    ("target", "lab_experiment"): "looks for a known kernel, where that of the last check is gone",
}


@pytest.fixture(autouse=True)
def _few_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.models.bounded.MOST_COUNTED", COUNTED)
    monkeypatch.setattr("web.api.paging.MOST_COUNTED", COUNTED)
    monkeypatch.setattr("web.api.catalogue.MOST_COUNTED", COUNTED)
    monkeypatch.setattr("lab.experiments.list_page.MOST_COUNTED", COUNTED)
    monkeypatch.setattr("web.api.paging._Counted.most", COUNTED)
    cache.clear()


def test_no_page_and_no_list_reads_a_whole_table(settings: Any) -> None:
    settings.API_RATES = dict.fromkeys(settings.API_RATES, "1000000/min")
    fill(SIZE, say=lambda line: None)
    sizes, client = table_sizes(), signed_in(make_user("olga", User.Role.OPERATOR))
    assert {"lab_sample", "lab_run", "lab_build", "lab_experiment", "lab_comparison"} <= {
        table for table, rows in sizes.items() if rows > LARGE
    }
    read = {name: list(_whole_tables(client, name, address, sizes)) for name, address in read_addresses()}
    offences = [line for lines in read.values() for line in lines]
    assert not offences, "\n".join(offences)
    assert len(read) > 150


def _whole_tables(client: Client, name: str, address: str, sizes: dict[str, int]) -> Iterator[str]:
    """Yield what is wrong with each statement of an address, a line each."""
    with explained() as pages:
        answer = client.get(address)
    assert answer.status_code != 500, address
    for statement in pages.statements:
        for scan in statement.scans:
            if _is_too_much(scan, sizes) and not _is_allowed(name, scan.table):
                yield f"{name} ({address}): {scan.kind} of {scan.table} looks at {scan.rows:,} of {sizes[scan.table]:,} rows:\n    {statement.sql[:600]}"


def _is_too_much(scan: Scan, sizes: dict[str, int]) -> bool:
    large = sizes.get(scan.table, 0) > LARGE
    return large and (scan.rows > MOST_ROWS or scan.kind.endswith("Seq Scan"))


def _is_allowed(name: str, table: str) -> bool:
    return any(name.startswith(begin) and table == of for begin, of in ALLOWED)
