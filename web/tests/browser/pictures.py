# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of each new page: its width, axe-core's findings. KPERFLAB_SHOTS=folder keeps a picture of it."""

from __future__ import annotations

import os
from pathlib import Path

from playwright.sync_api import Page

AXE = Path(__file__).resolve().parents[2] / "front" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """async () => (await axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})).violations
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')}`)"""


def looked_at(page: Page, name: str, *, width: int, dark: bool) -> int:
    """The page's width in pixels, with all of it open."""
    page.wait_for_load_state("networkidle")
    for details in page.locator("details").all():
        details.evaluate("one => { one.open = true; }")
    if folder := os.environ.get("KPERFLAB_SHOTS"):
        path = Path(folder) / f"{name}-{width}{'-dark' if dark else ''}.png"
        page.screenshot(path=path, full_page=True)
    return int(page.evaluate("document.documentElement.scrollWidth"))


def faults(page: Page) -> list[str]:
    """Return axe-core's findings on the page."""
    page.evaluate(AXE.read_text())
    findings: list[str] = page.evaluate(_RUN)
    return findings
