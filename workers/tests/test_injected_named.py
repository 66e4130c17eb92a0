# SPDX-License-Identifier: GPL-2.0-or-later
"""Regressions made on purpose, from `labctl submit` to the page, on real kernels: the page names what was injected.

Kernels stay under the tests' state root, so that only the first run compiles them.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from django.test import Client

import workers.app  # noqa: F401
from lab.models import Experiment
from workers import labctl

pytestmark = [pytest.mark.real, pytest.mark.campaign, pytest.mark.django_db]

INJECTED = Path(__file__).parent / "injected"
REGRESSION = 1


def submitted(monkeypatch: pytest.MonkeyPatch, name: str) -> Experiment:
    """Submit a description as a user would, wait for it, and return the experiment; it must end as a regression."""
    monkeypatch.setattr("sys.argv", ["labctl", "submit", str(INJECTED / f"{name}.toml"), "--local"])
    monkeypatch.setattr("workers.local.prepare", lambda: None)
    with pytest.raises(SystemExit) as ended:
        labctl.main()
    experiment = Experiment.objects.latest("pk")
    troubles = list(experiment.runs.exclude(state="done").values_list("problem", "problem_detail"))
    assert (experiment.state, troubles, ended.value.code) == ("done", [], REGRESSION), experiment.problem
    return experiment


def rows_of(client: Client, address: str) -> list[list[str]]:
    """Return the texts of the cells of all tables of a page, a list a row."""
    page = client.get(address)
    assert page.status_code == 200
    # What stands below a name is a word of its own.
    text = page.content.decode().replace('<span class="sub', ' <span class="sub')
    rows = re.findall(r"<tr.*?</tr>", text, flags=re.DOTALL)
    return [
        [" ".join(html.unescape(re.sub(r"<[^>]+>", "", cell)).split()) for cell in cells]
        for cells in (re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL) for row in rows)
    ]


def exact_changes(rows: list[list[str]]) -> list[dict[str, str]]:
    """Return what each of a page's tables of an exact difference calls the patch's: the change by function, a table a variant."""
    tables: list[dict[str, str]] = []
    of_the_patch = False
    for name, *cells in filter(None, rows):
        if name == "Function (self)":
            tables.append({})
        elif not cells:
            of_the_patch = name == "The patch"
        elif tables and of_the_patch:
            # Below the function's name stand its line and whether the diff touches it.
            tables[-1][name.split()[0]] = cells[0]
        of_the_patch = of_the_patch and name != "Variant"
    return tables


def size(change: str) -> float:
    """Return how large a change of instructions is that a page shows."""
    return abs(float(change.replace("−", "-").replace(",", "")))


def test_the_exact_profile_names_forty_instructions_more_and_a_counters_two(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    experiment = submitted(monkeypatch, "instructions")
    longer, counter = exact_changes(rows_of(client, f"/experiments/{experiment.pk}/comparison/"))
    assert longer["generic_fillattr"] == "+40"
    assert all(size(change) < 10 for name, change in longer.items() if name != "generic_fillattr")
    # Another hash chain may be longer by one in a hundred stats.
    counted = {name: change for name, change in counter.items() if size(change) >= 0.1}
    assert counted == {"vfs_getattr_nosec": "+1", "vfs_statx": "+1"}, "the only sign of it on one CPU"
    verdicts = experiment.comparisons.filter(metric="instructions_per_stat", variant__role="candidate")
    assert dict(verdicts.values_list("variant__name", "verdict")) == {
        "longer-stat": "regression",
        "global-counter": "unchanged",
    }


def places(rows: list[list[str]]) -> dict[str, tuple[str, str]]:
    """Return of all locks and lines on a page the kind and the functions that wait, by name."""
    at = [place for place, row in enumerate(rows) if row and row[0] == "Lock or cache line"]
    of = [row for first in at for row in rows[first + 1 : first + 7] if len(row) == len(rows[first])]
    return {name: (kind, waits) for name, kind, _, waits in reversed(of)}


def test_the_page_names_a_global_counter_with_both_functions_and_false_sharing(
    monkeypatch: pytest.MonkeyPatch, client: Client
) -> None:
    experiment = submitted(monkeypatch, "contention")
    verdicts = experiment.comparisons.filter(metric="cycles_per_stat_8", variant__role="candidate")
    assert dict(verdicts.values_list("variant__name", "verdict")) == {
        "global-counter": "regression",
        "neighbours": "regression",
    }
    # Its own instructions cost 1.5 % on one CPU too, which may or may not be within the margin.
    alone = experiment.comparisons.filter(metric="waiting_1", variant__role="candidate")
    assert set(alone.values_list("verdict", flat=True)) == {"unchanged"}, "one CPU waits for nobody"
    rows = places(rows_of(client, f"/experiments/{experiment.pk}/comparison/"))
    (counter,) = (name for name in rows if "stats_under_way" in name)
    kind, waits = rows[counter]
    assert kind == "cache line"
    assert "vfs_statx" in waits
    assert "vfs_getattr_nosec" in waits
    kind, waits = rows["stat_limit, stats_of_first_cpu"]
    assert kind == "false sharing"
    assert waits.startswith("vfs_statx ← ")
    assert any("slab mm_struct, bytes " in name for name in rows), "memory from a slab cache"
