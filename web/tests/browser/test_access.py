# SPDX-License-Identifier: GPL-2.0-or-later
"""axe-core finds no fault for people who use a keyboard, a screen reader, or little contrast."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.models import Experiment, User
from web.tests.browser.conftest import WIDTHS, Open
from web.tests.browser.pictures import faults
from web.tests.browser.test_layout import pages_of

AXE = Path(__file__).resolve().parents[2] / "front" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """async () => (await axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})).violations
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')}`)"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_wrong_on_any_page(
    visit: Open, profiled: Experiment, trend: str, alice: User, dark: bool
) -> None:
    source = AXE.read_text()
    for name, address in (pages_of(profiled) | {"trend": f"/trends/{trend}/"}).items():
        page = visit(address, dark=dark, by=alice)
        page.wait_for_load_state("networkidle")
        page.evaluate(source)
        assert page.evaluate(_RUN) == [], name


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_wrong_on_the_ways_in(
    visit: Open, profiled: Experiment, charlie: User, width: int, dark: bool
) -> None:
    pair = f"/compare/?first={profiled.pk}&second={profiled.pk}"
    for address in ("/", "/help/", "/help/api/", "/mine/", pair, "/regressions/", "/standing/", "/lab/"):
        page = visit(address, width=width, dark=dark, by=charlie)
        page.wait_for_load_state("domcontentloaded")
        assert faults(page) == [], address
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
