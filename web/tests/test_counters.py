# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters side by side: on the page, as CSV, as JSON, on the command line."""

from __future__ import annotations

import csv
import io

import pytest
from django.test import Client

from lab.models import Comparison, Experiment, Run
from lab.profiles.counters import COUNTED_ITERATIONS, counter_page
from lab.tests.factories import make_case, make_experiment, make_run, make_twin, make_variant
from lab.tests.wait_profiles import MS, add_waiting_boots
from web.tests.conftest import SCRIPT, Page

REASON = {"what": "perf stat: cycles", "why": f"the guest has no PMU {SCRIPT}"}


def add_counters(run: Run, boot: int, *, faults: int, formula: str = "=cmd()") -> None:
    """Four timed iterations and what they counted, a little more in each boot."""
    noise = 1 + boot / 1000
    run.extras = {COUNTED_ITERATIONS: 4}
    run.counters = {
        "perf stat": {"minor-faults": 4 * faults * noise, SCRIPT: 400 + 40 * (boot % 2)},
        "vmstat": {"pgfault": 4 * faults * noise, "oom_kill": 0, formula: 5 + boot % 2},
        "slab": {"dentry": {"active": 8 * (boot - 1)}},
    }
    run.unavailable = [REASON]
    run.save()


@pytest.fixture
def counted(db: None) -> Experiment:
    """Three variants; the patch takes half as many page faults."""
    made = make_experiment(state="done", profile=True)
    case = make_case(made)
    base = make_variant(made)
    for place, variant in enumerate((base, make_twin(made), make_variant(made, "p"))):
        for boot in range(3):
            run = make_run(variant, case, purpose="profiled", block=boot, state="done", outcome="finished")
            add_counters(run, (7 * boot + 5 * place) % 11, faults=500 if variant.name == "p" else 1000)
    return made


def place(experiment: Experiment) -> str:
    return f"/experiments/{experiment.pk}/counters/{experiment.cases.get().pk}"


def test_what_certainly_changed_comes_first_per_timed_iteration(counted: Experiment) -> None:
    page = counter_page(counted.pk, counted.cases.get().pk)
    first = page.rows[0]
    assert (first.source, first.name) == ("perf stat", "minor-faults")
    base, twin, patch = first.cells
    assert base.median == pytest.approx(1003)
    assert patch.median == pytest.approx(503)
    assert (base.ratio, twin.certain, patch.certain) == (None, False, True)
    assert patch.ratio == pytest.approx(0.5, abs=0.01)
    assert [column.iterations for column in page.columns] == [4.0] * 3
    assert page.quiet == 1
    assert ("slab", "dentry active") in {(row.source, row.name) for row in page.rows}


def test_the_page_shows_changes_ranges_and_what_was_not_there(page: Page, counted: Experiment) -> None:
    text = page(f"{place(counted)}/")
    assert "▼ −49.9" in text
    assert "1 000 to 1 007" in text.replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert "(9 of 9 boots)" in text
    assert "the guest has no PMU &lt;script&gt;" in text
    assert "1 more counter stayed 0" in text
    assert SCRIPT not in text


def test_files_hold_every_counter_and_run_nothing(client: Client, counted: Experiment) -> None:
    response = client.get(f"{place(counted)}.csv")
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    assert rows[2]["counter"] == "minor-faults"
    assert (rows[2]["variant"], rows[2]["certain"]) == ("p", "True")
    assert "'=cmd()" in {row["counter"] for row in rows}
    document = client.get(f"{place(counted)}.json").json()
    assert document["rows"][0]["cells"][2]["certain"] is True
    assert document["per"] == "timed iteration"
    assert document["unavailable"][0]["of"] == 9


def test_a_case_without_counters_says_how_to_get_them(page: Page, db: None) -> None:
    made = make_experiment()
    make_case(made)
    assert "No counters" in page(f"{place(made)}/")


@pytest.mark.parametrize("tail", ["/", ".csv", ".json"])
def test_counters_of_nothing_are_not_found(client: Client, db: None, tail: str) -> None:
    assert client.get(f"/experiments/7/counters/1{tail}").status_code == 404


def test_without_enough_boots_nothing_is_certain_and_that_is_said(page: Page, db: None) -> None:
    made = make_experiment(state="done")
    case = make_case(made)
    for faults, variant in ((1000, make_variant(made)), (10, make_variant(made, "p"))):
        add_counters(make_run(variant, case, purpose="profiled", state="done"), 0, faults=faults)
    text = page(f"{place(made)}/")
    assert "ask for more with profile_boots" in text
    assert "▼" not in text.replace("▲, ▼ and ◆ differ", "")


def test_what_did_not_change_in_a_boot_is_nought_there_unless_the_boot_could_not_tell(
    counted: Experiment,
) -> None:
    first, second, third = counted.runs.filter(variant__name="p")
    for run in (first, second, third):
        run.counters["vmstat"].pop("pgfault")
        run.counters["perf stat"].pop("minor-faults")
        run.save()
    third.unavailable = [{"what": "vmstat", "why": "not there"}]
    third.save()
    rows = {
        (row.source, row.name): row.cells[2] for row in counter_page(counted.pk, counted.cases.get().pk).rows
    }
    assert rows["vmstat", "pgfault"].median == 0
    assert rows["perf stat", "minor-faults"].median is None


def test_a_verdict_is_explained_by_locks_and_counters_that_moved_with_it(
    page: Page, counted: Experiment
) -> None:
    case, patch = counted.cases.get(), counted.variants.get(name="p")
    row = Comparison.objects.create(
        experiment=counted, case=case, variant=patch, metric="elapsed", better="lower", boots=3,
        ratio=0.5, low=0.4, high=0.6, verdict="improvement", margin=0.02,
    )  # fmt: skip
    address = f"/experiments/{counted.pk}/explain/{row.pk}/"
    assert "Unknown: the lock waits of base and p were not both recorded" in page(address)
    for variant in counted.variants.all():
        waited = 4 if variant == patch else 40
        add_waiting_boots(variant, case, {("open", SCRIPT): waited * MS, ("stat", "mutex"): 3 * MS})
    text = page(address)
    assert "▼ 4.2" in text
    assert "kind=lock&amp;variant=p&amp;against=base" in text
    assert ">mutex<" not in text
    assert "minor-faults" in text
    assert "dentry active" not in text
    assert SCRIPT not in text
