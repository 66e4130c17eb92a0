# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of one boot: how it was started."""

import pytest
from django.test import Client

from lab.models import Profile, Run
from lab.profiles.analysis.frame_tree import build_tree, pack
from lab.tests.factories import finish_run, make_case, make_experiment, make_grid, make_run, make_variant
from web.tests.conftest import SCRIPT, Page

pytestmark = pytest.mark.django_db

HOST = {"way": "power", "way_of_block": "kexec", "kexec_failed": "kexec_load failed: Operation not permitted"}


@pytest.fixture
def run() -> Run:
    experiment = make_experiment()
    case = make_case(experiment)
    # The experiment goes on whatever ends.
    make_run(make_variant(experiment), case, block=9)
    return make_run(make_variant(experiment, "p"), case)


def test_a_boot_that_does_not_count_says_why_and_which_way_it_went(run: Run, client: Client) -> None:
    finish_run(run, {"ns_per_open": [1.0, 1.0]}, environment={"host": HOST})
    text = client.get(f"/runs/{run.pk}/").content.decode()
    why = "it was booted by power, the other boots of its block by kexec"
    assert f"Its numbers do not count: {why}." in text
    for fact in ("way of block", "kexec_load failed: Operation not permitted"):
        assert fact in text


def test_a_boot_that_counts_says_nothing_of_that(run: Run, client: Client) -> None:
    finish_run(run, {"ns_per_open": [1.0, 1.0]}, environment={"host": {"way": "kexec"}})
    assert "do not count" not in client.get(f"/runs/{run.pk}/").content.decode()


def test_a_boot_leads_to_each_kind_of_profile_that_it_kept(run: Run, client: Client) -> None:
    finish_run(run, {"ns_per_open": [1.0, 1.0]})
    assert "Profiles of" not in client.get(f"/runs/{run.pk}/").content.decode()
    for kind in ("waiting", "cpu"):
        tree = build_tree([(("main", "down_read"), 9)])
        Profile.objects.create(run=run, kind=kind, tree=pack(tree), samples=tree.samples)
    text = client.get(f"/runs/{run.pk}/").content.decode()
    at = f"/experiments/{run.experiment_id}/profile/{run.case_id}/?kind="
    assert (
        f'<a href="{at}waiting&amp;variant=p">waiting</a>, <a href="{at}cpu&amp;variant=p">on cpu</a>.'
        in text
    )


@pytest.mark.hostile
def test_the_report_of_perf_c2c_is_shown_as_text_apart_from_the_workloads_output(
    run: Run, client: Client
) -> None:
    finish_run(run, {"ns_per_open": [1.0, 1.0]}, extras={"shared_lines": f"Table {SCRIPT}", "opens": 3})
    text = client.get(f"/runs/{run.pk}/").content.decode()
    assert "Table &lt;script&gt;alert(1)&lt;/script&gt;</code></pre>" in text
    assert SCRIPT not in text
    assert text.count("Table &lt;script") == 1


def test_the_runs_say_which_of_them_do_not_count(page: Page) -> None:
    experiment = make_grid()
    base, case = experiment.variants.get(name="base"), experiment.cases.get()
    over = {"state": "done", "outcome": "finished"}
    make_run(base, case, block=8, invalid=["the load was 3.2, at most 1 is allowed"], **over)
    make_run(base, case, block=8, retake=1, **over)
    text = page(f"/experiments/{experiment.pk}/runs/")
    assert text.count("does not count: the load was 3.2, at most 1 is allowed") == 1


def test_boots_that_may_stop_early_are_shown_as_a_maximum(page: Page) -> None:
    experiment = make_experiment(boots=20, sequential=True)
    assert "<dd>up to 20</dd>" in page(f"/experiments/{experiment.pk}/")
    assert "<dd>5</dd>" in page(f"/experiments/{make_experiment(boots=5).pk}/")
