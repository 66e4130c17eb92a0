# SPDX-License-Identifier: GPL-2.0-or-later
"""Every page at both widths and in both schemes: nothing sticks out. KPERFLAB_SHOTS=folder keeps pictures of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.models import Experiment, User
from web.tests.browser.conftest import WIDTHS, Open


def pages_of(experiment: Experiment) -> dict[str, str]:
    root = f"/experiments/{experiment.pk}"
    profile = f"{root}/profile/{experiment.cases.get().pk}/?variant=p"
    return {
        "experiments": "/experiments/",
        "overview": f"{root}/",
        "comparison": f"{root}/comparison/",
        "explain": f"{root}/explain/{experiment.comparisons.get().pk}/",
        "profile": f"{profile}&around=walk",
        "difference": f"{profile}&against=base",
        "runs": f"{root}/runs/",
        "run": f"/runs/{experiment.runs.filter(purpose='measured')[0].pk}/",
        "form": "/experiments/new",
        "trends": "/trends/",
    }


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_its_window(
    visit: Open, profiled: Experiment, trend: str, alice: User, width: int, dark: bool
) -> None:
    for name, address in (pages_of(profiled) | {"trend": f"/trends/{trend}/"}).items():
        page = visit(address, width=width, dark=dark, by=alice)
        page.wait_for_load_state("networkidle")
        if page.locator("#flame").count():
            page.wait_for_selector("#flame[data-ready]")
        for details in page.locator("details").all():
            details.evaluate("one => { one.open = true; }")
        wide = page.evaluate("document.documentElement.scrollWidth")
        if folder := os.environ.get("KPERFLAB_SHOTS"):
            kind = f"{name}-{width}{'-dark' if dark else ''}.png"
            page.screenshot(path=Path(folder) / kind, full_page=True)
        assert wide <= width, f"{name} is {wide} pixels wide"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_about_a_function_with_a_long_name_stays_within_its_window(
    visit: Open, profiled: Experiment, alice: User, width: int, dark: bool
) -> None:
    run = profiled.runs.filter(purpose="measured")[0]
    title = "BUG: KASAN: slab-use-after-free in kernfs_iop_lookup+0x21/0x40"
    report = {
        "kind": "memory",
        "title": title,
        "line_no": 412,
        "excerpt": title,
        "frame": "kernfs_iop_lookup",
    }
    profiled.runs.filter(pk=run.pk).update(
        findings=[report, report | {"frame": "a_long_name_" * 20, "corrupted": True}]
    )
    page = visit(f"/runs/{run.pk}/", width=width, dark=dark, by=alice)
    if folder := os.environ.get("KPERFLAB_SHOTS"):
        page.screenshot(path=Path(folder) / f"finding-{width}{'-dark' if dark else ''}.png", full_page=True)
    assert page.get_by_text("cut off or mixed").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
