# SPDX-License-Identifier: GPL-2.0-or-later
"""axe-core finds no fault for people who use a keyboard, a screen reader, or little contrast."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.models import Experiment, User
from web.tests.browser.conftest import Open
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
