# SPDX-License-Identifier: GPL-2.0-or-later
"""Distributions, explanations and trends in a browser."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from lab.models import Experiment
from web.tests.browser.conftest import HOSTILE, Open


def test_every_boot_is_a_dot_that_leads_to_its_run(visit: Open, profiled: Experiment) -> None:
    page = visit(f"/experiments/{profiled.pk}/comparison/")
    assert page.locator(".strip circle").count() == 10
    page.locator(".strip a").first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/runs/\d+/"))


def test_a_verdict_leads_to_its_explanation_and_on_to_the_flame_graph(
    visit: Open, profiled: Experiment
) -> None:
    page = visit(f"/experiments/{profiled.pk}/comparison/")
    page.click("text=why")
    expect(page.locator("h2").first).to_contain_text("p on ns_per_open")
    expect(page.locator("main")).to_contain_text("Symbols that changed")
    page.click("text=/differential flame graph/i")
    page.wait_for_selector("#flame[data-ready]")
    expect(page.locator("#flame-head")).to_have_text("showgids (smoke): p against base")


def test_a_symbol_opens_into_its_callers_and_callees(visit: Open, profiled: Experiment) -> None:
    page = visit(f"/experiments/{profiled.pk}/profile/{profiled.cases.get().pk}/?variant=p")
    page.click("text=▸ walk")
    expect(page.locator("tr.near").first).to_contain_text("called by sys")
    expect(page.locator("tr.near", has_text=HOSTILE)).to_contain_text("calls")


def test_a_trend_is_walked_by_keys_and_tells_revision_author_and_subject(visit: Open, trend: str) -> None:
    page = visit(f"/trends/{trend}/")
    page.wait_for_selector("#trend[data-ready='6']")
    page.focus("#trend")
    page.keyboard.press("Home")
    expect(page.locator("#trend-said")).to_contain_text(f"0000000000 change 0 {HOSTILE} · {HOSTILE}")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#trend-said")).to_contain_text("0000000004 change 4")
    expect(page.locator("#trend-said")).to_contain_text("regression of +19.7")
    assert page.locator("#trend-still").count() == 0


def test_a_stretch_of_a_trend_is_reproduced_by_its_address(visit: Open, trend: str) -> None:
    page = visit(f"/trends/{trend}/")
    page.wait_for_selector("#trend[data-ready]")
    box = page.locator("#trend .u-over").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.35, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 100, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"from=0000000002&to=0000000004"))
    again = visit(page.url[page.url.index("/trends") :])
    again.wait_for_selector("#trend[data-ready]")
    again.focus("#trend")
    again.keyboard.press("End")
    expect(again.locator("#trend-said")).to_contain_text("change 4")
