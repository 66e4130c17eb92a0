# SPDX-License-Identifier: GPL-2.0-or-later
"""The comparison page of an experiment under the contention clock."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from django.test import Client

from lab.models import Experiment, Profile, Run
from lab.models.states import Outcome, RunState
from lab.profiles.analysis.frame_tree import FrameTree, build_tree, pack
from lab.tests.factories import make_case, make_comparison, make_experiment, make_run, make_variant
from lab.tests.wait_profiles import add_waiting_boots
from web.tests.conftest import SCRIPT, Page


def _waits(cycles: int, name: str) -> dict[str, Any]:
    caller = {"chain": ["down_read", "kernfs_iop_permission"], "cycles": cycles}
    return {
        "machine": "one-socket",
        "cpus": 8,
        "cycles": 1000,
        "waiting": cycles,
        "functions": [caller, {"chain": ["up_read"], "cycles": 50}],
        "locks": [{"name": name, "kind": "rwsem", "cycles": 30, "callers": [caller]}],
        "lines": [{"name": "jiffies+0x0", "cycles": cycles, "false_sharing": True, "callers": []}],
    }


def _keep(run: Run, tree: FrameTree) -> Profile:
    return Profile.objects.create(run=run, kind="waiting", tree=pack(tree), samples=tree.samples, waits=17)


@pytest.fixture
def contended(db: None) -> Experiment:
    experiment = make_experiment(clock="contention")
    base, patch = make_variant(experiment), make_variant(experiment, "p")
    case = make_case(experiment)
    for cpus, before, after in ((1, 100.0, 90.0), (8, 400.0, 180.0)):
        make_comparison(
            case, patch, metric=f"cycles_per_open_{cpus}", unit="cycles", base_median=before, median=after
        )
    for variant, cycles in ((base, 700), (patch, 300)):
        make_run(
            variant,
            case,
            state=RunState.DONE,
            outcome=Outcome.FINISHED,
            extras={"contention": _waits(cycles, SCRIPT)},
        )
    return experiment


def test_a_curve_and_its_table_show_each_variant_against_the_base_on_one_cpu(
    page: Page, contended: Experiment
) -> None:
    text = page(f"/experiments/{contended.pk}/comparison/")
    assert "Cycles per open, by the number of CPUs" in text
    assert "<title>base, 8 CPUs: 4 times</title>" in text
    assert "<title>p, 8 CPUs: 1.8 times</title>" in text
    assert "<title>p, 1 CPUs: 0.9 times</title>" in text


def test_the_page_says_in_which_functions_cpus_wait_and_for_what(page: Page, contended: Experiment) -> None:
    text = page(f"/experiments/{contended.pk}/comparison/").replace("\xa0", " ")
    row = text[text.index(">down_read<") :]
    assert row.index("70.00 %") < row.index("30.00 %") < row.index("up_read")
    assert "false sharing" in text
    assert "rwsem lock" in text
    assert "down_read ← kernfs_iop_permission" in text
    assert SCRIPT not in text


def test_each_variant_leads_to_its_flame_graph_of_waiting_and_to_its_difference(
    page: Page, contended: Experiment
) -> None:
    case = contended.cases.get()
    text = page(f"/experiments/{contended.pk}/comparison/")
    assert "Flame graphs of waiting" not in text
    for run in contended.runs.all():
        tree = build_tree(
            [(("main", "down_read"), 9_000 if run.variant.name == "p" else 21_000), (("main",), 3)]
        )
        _keep(run, tree)
    text = page(f"/experiments/{contended.pk}/comparison/")
    address = f"/experiments/{contended.pk}/profile/{case.pk}/?kind=waiting&amp;variant="
    assert f'<a href="{address}base">base</a>, ' in text
    assert (
        f'<a href="{address}p">p</a> (<a href="{address}p&amp;against=base">difference to the base</a>)'
        in text
    )
    shown = page(f"/experiments/{contended.pk}/profile/{case.pk}/?kind=waiting&variant=p&against=base")
    shown = shown.replace("\u202f", "").replace("\xa0", " ")
    assert "9003 cycles waited per operation, in the median of 1 replayed boot, on the most CPUs" in shown
    assert 'data-kind="waiting"' in shown
    assert "Cycles per operation</button>" in shown
    for word in (
        "never timed",
        "busy samples",
        "Overhead of profiling",
        "Time per boot",
        " ms<",
        "Show idle",
    ):
        assert word not in shown, word


@pytest.mark.parametrize(
    ("form", "held"),
    [
        ("folded", b"main;down_read 9000"),
        ("svg", b"9,000 cycles"),
        ("speedscope.json", b'"unit": "none"'),
        ("pb.gz", b""),
        ("tree", b""),
    ],
)
def test_waiting_is_exported_in_every_form(
    client: Client, contended: Experiment, form: str, held: bytes
) -> None:
    case, run = contended.cases.get(), contended.runs.get(variant__name="p")
    tree = build_tree([(("main", "down_read"), 9_000)])
    profile = _keep(run, tree)
    at = f"/experiments/{contended.pk}/profile/{case.pk}/variant.{form}?kind=waiting&variant=p"
    answer = client.get(at)
    assert answer.status_code == 200
    assert held.replace(b" ", b"") in answer.content.replace(b" ", b"")
    if form == "pb.gz":
        assert b"\x07waiting" in gzip.decompress(answer.content)
        assert b"\x06cycles" in gzip.decompress(answer.content)
    (row,) = client.get("/api/v1/profiles/?kind=waiting").json()["results"]
    assert (row["id"], row["kind"], row["samples"]) == (profile.pk, "waiting", 9_000)
    svg = client.get(f"/api/v1/profiles/{profile.pk}/svg/").content
    assert b"9,000 cycles" in svg
    document = client.get(f"/api/v1/experiments/{contended.pk}/profile/?kind=waiting").json()
    assert document["cases"][0]["profile"]["unit"] == "cycles"


def test_other_clocks_have_no_such_section(page: Page, compared: Experiment) -> None:
    assert "CPUs wait" not in page(f"/experiments/{compared.pk}/comparison/")


def test_other_metrics_are_folded_into_a_line_that_says_whether_one_changed(
    page: Page, contended: Experiment
) -> None:
    case, patch = contended.cases.get(), contended.variants.get(name="p")
    make_comparison(case, patch, metric="slowdown_8", unit="×", primary=False, verdict="regression")
    make_comparison(case, patch, metric="waiting_8", unit="%", primary=False, verdict="unchanged")
    text = page(f"/experiments/{contended.pk}/comparison/")
    folded = text[text.index("3 other metrics: 2 significant changes<") :]
    assert "slowdown_8" in folded
    assert "slowdown_8" not in text[: text.index("3 other metrics")]


@pytest.mark.parametrize(
    ("halved", "said"),
    [
        (
            300.0,
            "p: −50.0 %; −25.0 % with every latency halved, −55.0 % with every one doubled; the same result in all three.",
        ),
        (
            404.0,
            "p: −50.0 %; +1.0 % with every latency halved, −55.0 % with every one doubled; the result depends on the latencies.",
        ),
    ],
)
def test_the_page_says_whether_a_change_depends_on_the_machine_s_latencies(
    page: Page, contended: Experiment, halved: float, said: str
) -> None:
    assert "latency" not in page(f"/experiments/{contended.pk}/comparison/")
    for run in contended.runs.all():
        own = (
            {"0.5": halved, "1": 400.0, "2": 450.0}
            if run.variant.name == "p"
            else {"0.5": 400.0, "1": 800.0, "2": 1000.0}
        )
        run.extras["contention"]["latencies"] = own
        run.save()
    assert said in page(f"/experiments/{contended.pk}/comparison/").replace("\xa0", " ").replace(
        "\u202f", " "
    )


def test_a_line_names_all_functions_that_wait_for_it(page: Page, contended: Experiment) -> None:
    for run in contended.runs.all():
        callers = [
            {"chain": [name, "do_syscall_64"], "cycles": 3} for name in ("counts", "uncounts", "counts")
        ]
        run.extras["contention"]["lines"][0]["callers"] = callers
        run.save()
    assert "counts ← do_syscall_64; also uncounts" in page(f"/experiments/{contended.pk}/comparison/")


def test_a_verdict_of_the_contention_clock_is_explained_by_the_waiting_that_moved(
    page: Page, contended: Experiment
) -> None:
    case, patch = contended.cases.get(), contended.variants.get(name="p")
    comparison = contended.comparisons.get(metric="cycles_per_open_8")
    address = f"/experiments/{contended.pk}/explain/{comparison.pk}/"
    text = page(address)
    assert "Unknown: base and p have no profile of waiting." in text
    assert "profile = true" not in text
    assert "Counters that changed" not in text
    for variant in contended.variants.all():
        waited = 9_000 if variant == patch else 21_000
        add_waiting_boots(
            variant, case, {("open", "down_read"): waited, ("open", SCRIPT): 500}, kind="waiting"
        )
    text = page(address)
    section = text[text.index("Waiting that changed") :]
    row = section[section.index(">down_read</a>") :]
    assert "▼" in row[: row.index("</tr>")]
    assert f"/profile/{case.pk}/?kind=waiting&amp;variant=p&amp;against=base" in text
    assert "Symbols that changed" not in text
    assert SCRIPT not in text
