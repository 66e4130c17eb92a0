# SPDX-License-Identifier: GPL-2.0-or-later
"""Every page says which entry of the navigation it belongs to."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from lab.models import Experiment
from web.tests.conftest import Page


def marked(text: str) -> list[tuple[str, str]]:
    """The entries that are marked in the page's header, each with how."""
    header = text.partition('<header class="site">')[2].partition("</header>")[0]
    return re.findall(r'<a href="([^"]*)" aria-current="([^"]*)"', header)


@pytest.mark.parametrize(
    "address",
    [
        "/experiments/",
        "/trends/",
        "/regressions/",
        "/standing/",
        "/lab/",
        "/help/",
        "/experiments/new",
        "/mine/",
    ],
)
def test_an_entrys_own_page_is_marked_as_the_page(page: Page, operator: Client, address: str) -> None:
    assert marked(page(address, operator)) == [(address, "page")]


@pytest.mark.parametrize(
    ("address", "above"),
    [
        ("/alerts/", "/standing/"),
        ("/bisections/", "/trends/"),
        ("/people/", "/lab/"),
        ("/account/", "/mine/"),
        ("/hooks/", "/mine/"),
        ("/limits/", "/help/"),
        ("/help/api/", "/help/"),
        ("/compare/", "/experiments/"),
    ],
)
def test_a_page_below_an_entry_marks_it(page: Page, operator: Client, address: str, above: str) -> None:
    text = page(address, operator)
    assert marked(text) == [(above, "true")]
    assert f'<nav class="path" aria-label="Path"><ol><li><a href="{above}"' in text


def test_all_parts_of_an_experiment_are_below_the_experiments(page: Page, compared: Experiment) -> None:
    run = compared.runs.all()[0]
    for address in (
        f"/experiments/{compared.pk}/",
        f"/runs/{run.pk}/",
        f"/builds/{run.variant.build_id}/log",
    ):
        assert marked(page(address)) == [("/experiments/", "true")]


def test_the_front_page_is_below_nothing(page: Page) -> None:
    assert marked(page("/")) == []
