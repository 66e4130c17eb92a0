# SPDX-License-Identifier: GPL-2.0-or-later
"""The list of experiments: what is searched for and filtered is found, by an address, in few questions."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from lab.experiments.list_page import ExperimentFilter, list_page
from lab.models import Comparison, Experiment, Target, Tree, User
from lab.tests.factories import make_case, make_experiment, make_patch_switch, make_run, make_variant
from web.tests.conftest import SCRIPT, Page

Queries = Callable[..., Any]


def judged(experiment: Experiment, verdict: str, **fields: Any) -> None:
    case = experiment.cases.first() or make_case(experiment)
    Comparison.objects.create(
        **{
            "experiment": experiment, "case": case, "variant": fields.get("variant") or make_variant(experiment, "p"), "metric": "ns_per_open",
            "unit": "ns", "better": "lower", "primary": True, "boots": 5, "base_median": 1.0, "median": 1.0,
            "ratio": 1.0, "low": 1.0, "high": 1.0, "verdict": verdict, "margin": 0.02, "method": "blocks",
        } | fields
    )  # fmt: skip


@pytest.fixture
def some(db: None, alice: User) -> dict[str, Experiment]:
    """Three experiments that differ in everything one can filter by."""
    other = Tree.objects.create(name="next", kind="git", location="/x", default_revision="main")
    metal = Target.objects.create(name="metal")
    kernfs = make_experiment(name="kernfs rwsem", state="done", submitter=alice)
    make_patch_switch(kernfs, "iattr", title="kernfs: a global rwsem", author="Zoë <zoe@example.org>")
    judged(kernfs, "improvement")
    inode = make_experiment(
        name="inode hash",
        state="running",
        tree=other,
        base_commit="abcdef12" + "0" * 32,
        priority=10,
        group="rack",
    )
    make_case(inode, workload="stat-walk")
    judged(inode, "regression", primary=False)
    buffer = make_experiment(
        name="buffer heads", state="failed", target=metal, problem="the base does not build"
    )
    judged(buffer, "regression")
    for row, day in ((kernfs, 1), (inode, 2), (buffer, 3)):
        Experiment.objects.filter(pk=row.pk).update(created_at=datetime(2026, 1, day, 12, tzinfo=UTC))
    return {"kernfs": kernfs, "inode": inode, "buffer": buffer}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["buffer", "inode", "kernfs"]),
        ("search=rwsem", ["kernfs"]),
        ("search=RWSEM+global", ["kernfs"]),
        ("search=rwsem+inode", []),
        ("search=zo%C3%AB", ["kernfs"]),
        ("search=iattr", ["kernfs"]),
        ("search=alice", ["kernfs"]),
        ("search=abcdef", ["inode"]),
        ("search=%25", []),
        ("state=running", ["inode"]),
        ("tree=next", ["inode"]),
        ("verdict=regression", ["buffer"]),
        ("verdict=improvement", ["kernfs"]),
        ("target=metal", ["buffer"]),
        ("target=rack", ["inode"]),
        ("priority=high", ["inode"]),
        ("priority=normal", ["buffer", "kernfs"]),
        ("workload=stat-walk", ["inode"]),
        ("submitter=alice", ["kernfs"]),
        ("created_after=2026-01-02", ["buffer", "inode"]),
        ("created_before=2026-01-02", ["kernfs"]),
        ("created_after=2026-01-02&created_before=2026-01-03", ["inode"]),
        ("ordering=name", ["buffer", "inode", "kernfs"]),
        ("ordering=-name", ["kernfs", "inode", "buffer"]),
        ("ordering=created_at", ["kernfs", "inode", "buffer"]),
        ("ordering=-submitter", ["kernfs", "buffer", "inode"]),
        ("state=running&tree=tiny", []),
    ],
)
def test_an_address_shows_what_fits_it(
    page: Page, some: dict[str, Experiment], query: str, found: list[str]
) -> None:
    text = page(f"/experiments/?{query}" if query else "/experiments/")
    shown = re.findall(r'<th scope="row"><a href="/experiments/(\d+)/">', text)
    assert [int(number) for number in shown] == [some[name].pk for name in found]
    if not found:
        assert "No experiment matches." in text


def test_an_experiment_is_found_by_its_number(page: Page, some: dict[str, Experiment]) -> None:
    row = some["inode"]
    assert f'<a href="/experiments/{row.pk}/">inode hash' in page(f"/experiments/?search=%23{row.pk}")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("state=odd", "There is no state “odd” here."),
        ("tree=debian-5", "There is no tree “debian-5” here."),
        ("priority=urgent", "There is no priority “urgent” here."),
        ("created_after=yesterday", "“yesterday” is not a date"),
        ("created_after=0001-01-01T00:00%2B14:00", "“0001-01-01T00:00+14:00” is not a date"),
        ("created_before=9999-12-31T23:59-10:00", "“9999-12-31T23:59-10:00” is not a date"),
        ("ordering=speed", "The list cannot be sorted by “speed”."),
        (f"submitter={SCRIPT}", "There is no submitter “&lt;script&gt;"),
    ],
)
def test_a_filter_that_means_nothing_is_told_and_not_ignored(
    page: Page, some: dict[str, Experiment], query: str, said: str
) -> None:
    text = page(f"/experiments/?{query}")
    assert said in text
    assert "kernfs rwsem" not in text


@pytest.mark.parametrize(
    "query", ["page=0", "page=99", "page=x", "page=9999999999999", "search=%00x", "search=" + "a+" * 300]
)
def test_no_address_breaks_the_list(page: Page, some: dict[str, Experiment], query: str) -> None:
    page(f"/experiments/?{query}")


def test_the_address_of_a_sent_form_holds_no_empty_filters(
    client: Client, some: dict[str, Experiment]
) -> None:
    answer = client.get("/experiments/?search=&state=done&tree=&ordering=-created_at")
    assert answer.headers["Location"] == "/experiments/?state=done"


def test_sorting_and_paging_keep_the_filters(
    page: Page, some: dict[str, Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "web.views.experiment.list_page", lambda asked, number: list_page(asked, number, size=1)
    )
    text = page("/experiments/?verdict=regression&search=e")
    assert 'href="?search=e&amp;verdict=regression&amp;ordering=name"' in text
    both = page("/experiments/?tree=tiny")
    assert "2 match, page 1 of 2" in both
    assert 'rel="next" href="?tree=tiny&amp;page=2"' in both
    assert 'rel="prev" href="?tree=tiny"' in page("/experiments/?tree=tiny&page=2")


def test_a_column_that_sorts_says_so_and_turns_round(page: Page, some: dict[str, Experiment]) -> None:
    assert 'aria-sort="descending"' in page("/experiments/")
    text = page("/experiments/?ordering=name")
    assert 'aria-sort="ascending"' in text
    assert 'href="?ordering=-name"' in text


def test_a_thousand_experiments_take_as_few_questions_as_one(
    client: Client, alice: User, django_assert_num_queries: Queries, django_assert_max_num_queries: Queries
) -> None:
    template = make_experiment(submitter=alice)
    fields = {f.attname: getattr(template, f.attname) for f in Experiment._meta.fields if not f.primary_key}
    Experiment.objects.bulk_create(Experiment(**fields) for _ in range(999))
    for row in Experiment.objects.all()[:60]:
        make_patch_switch(row, "p", title="kernfs: a title")
        case, variant = make_case(row), make_variant(row, "p")
        make_run(variant, case)
        judged_row(row, variant)
    with django_assert_num_queries(7):
        many = list_page(ExperimentFilter())
    assert (len(many.lines), many.pages, many.total) == (50, 20, 1000)
    with django_assert_num_queries(7):
        few = list_page(ExperimentFilter(search="kernfs title"))
    assert few.total == 60
    with django_assert_max_num_queries(14):
        assert client.get("/experiments/?verdict=improvement&search=kernfs").status_code == 200


def judged_row(experiment: Experiment, variant: Any) -> None:
    judged(experiment, "improvement", variant=variant)


def test_a_row_says_when_it_is_not_of_normal_priority(page: Page, some: dict[str, Experiment]) -> None:
    text = page("/experiments/")
    assert text.count("high priority") == 1
    assert "normal priority" not in text
