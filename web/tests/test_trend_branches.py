# SPDX-License-Identifier: GPL-2.0-or-later
"""Trends of two branches of one tree: pages, files and the API say which is which, and lead from one to the other."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.test import Client

from lab.models import Tree
from lab.trends.page import TrendPage, trend_list
from lab.trends.tests.test_trends import measured
from web.tests.conftest import Page

pytestmark = pytest.mark.django_db

STABLE = "linux-6.1.y"


@pytest.fixture
def pages() -> SimpleNamespace:
    """Places 0 to 3 of main, and 4 to 6 of a branch that forked off at 2."""
    for number in range(4):
        measured(number, 100.0, 101.0)
    for number in range(4, 7):
        measured(number, 200.0, 201.0, base_branch=STABLE, base_fork=2)
    Tree.objects.update(default_revision="main")
    by_branch: dict[str, TrendPage] = {page.line.branch: page for page in trend_list()}
    return SimpleNamespace(main=by_branch[""], stable=by_branch[STABLE])


def test_a_trend_names_its_branch_and_leads_to_the_other_one(page: Page, pages: SimpleNamespace) -> None:
    text = page(f"/trends/{pages.stable.line.key}/")
    assert f"branch {STABLE}" in text
    assert "The first 3 revisions are of the default branch, main, before this branch forked off" in text
    assert f'<a href="/trends/{pages.main.line.key}/">main</a>' in text
    text = page(f"/trends/{pages.main.line.key}/")
    assert f'<a href="/trends/{pages.stable.line.key}/">{STABLE}</a>' in text
    assert "forked off" not in text


def test_lists_name_the_branch(page: Page, pages: SimpleNamespace) -> None:
    text = page("/trends/")
    assert text.count(f"branch {STABLE}") >= 1
    assert f"/trends/{pages.stable.line.key}/" in page(f"/trends/?search={STABLE}")
    assert f"/trends/{pages.main.line.key}/" not in page(f"/trends/?search={STABLE}")


def test_the_api_and_the_file_name_the_branch(client: Client, pages: SimpleNamespace) -> None:
    key = pages.stable.line.key
    rows = client.get("/api/v1/trends/?primary=true").json()["results"]
    assert {row["key"]: row["branch"] for row in rows} == {pages.main.line.key: "", key: STABLE}
    rows = client.get(f"/api/v1/trends/?primary=true&branch={STABLE}").json()["results"]
    assert [row["key"] for row in rows] == [key]
    shown = client.get(f"/api/v1/trends/{key}/").json()
    assert (shown["branch"], shown["shared"], len(shown["points"])) == (STABLE, 3, 6)
    whole = client.get(f"/trends/{key}.json").json()
    assert (whole["branch"], whole["shared"]) == (STABLE, 3)
