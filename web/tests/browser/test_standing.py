# SPDX-License-Identifier: GPL-2.0-or-later
"""Standing experiments, alerts and hooks in a browser: nothing sticks out, axe finds nothing, forms work by keyboard."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.utils import timezone

from lab.hooks.changes import HookFields, make_hook
from lab.models import Alert, Delivery, Experiment, Hook, Standing, Tree, User
from lab.tests.factories import make_experiment
from web.tests.browser.conftest import HOSTILE, WIDTHS, Open
from web.tests.browser.test_access import _RUN, AXE


@pytest.fixture
def pages(transactional_db: None, alice: User) -> dict[str, str]:
    """The addresses of pages that show every state, by name."""
    done = make_experiment(name="nightly: 0123456789ab fs: inode: shorten the hash chains", state="done")
    standing = Standing.objects.create(
        name="nightly",
        owner=alice,
        spec={"name": HOSTILE, "tree": "tiny", "cases": [{"workload": "showgids", "preset": "smoke"}]},
        tree=Tree.objects.get(name="tiny"),
        branch="for-next",
        secret="s" * 40,
        problem="0123456789ab waits for the budget of tiny: 120 of 200 boots in 24 hours are used, it takes 100",
        mail_to=["ann@example.org"],
        last_commit="0123456789abcdef0123456789abcdef01234567",
        quiet_from=22,
        quiet_until=6,
    )
    Experiment.objects.update(standing=standing)
    Standing.objects.create(
        name="weekly-without-anything-yet", spec={}, tree=standing.tree, enabled=False, branch=""
    )
    _alerts(standing, done, alice)
    hook = _hook(alice)
    return {
        "standings": "/standing/",
        "standing": "/standing/nightly/",
        "standing-form": "/standing/new",
        "standing-edit": "/standing/nightly/edit",
        "alerts": "/alerts/",
        "hooks": "/hooks/",
        "hook": f"/hooks/{hook.pk}/",
        "hook-form": "/hooks/new",
        "hook-edit": f"/hooks/{hook.pk}/edit",
    }


def _alerts(standing: Standing, experiment: Experiment, alice: User) -> None:
    for number, seen in enumerate((None, timezone.now())):
        Alert.objects.create(
            standing=standing,
            experiment=experiment,
            trend="abc123abc123",
            metric="ns_per_open",
            commit=f"{number:040x}",
            ratio=1.2,
            worse=not number,
            text=f"ns_per_open of showgids (smoke) got worse by 20.1 % at 0123456789ab {HOSTILE}",
            told_at=seen,
            seen_at=seen,
            seen_by=alice if seen else None,
        )


def _hook(alice: User) -> Hook:
    hook = make_hook(by=alice, fields=HookFields("ci", "https://ci.example.org/hooks/kperflab?project=vfs"))
    for state, status in (("delivered", 200), ("waiting", None), ("given-up", 500)):
        Delivery.objects.create(
            hook=hook,
            event="experiment.done",
            subject=f"experiment/{state}",
            payload={"event": "experiment.done", "experiment": {"name": HOSTILE}},
            state=state,
            attempts=3,
            status=status,
            answer=f"{HOSTILE} " * 6 if status else "ConnectError: all connection attempts failed",
            next_at=timezone.now(),
        )
    return hook


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_its_window_and_axe_finds_nothing_wrong(
    visit: Open, pages: dict[str, str], alice: User, width: int, dark: bool
) -> None:
    source = AXE.read_text()
    for name, address in pages.items():
        page = visit(address, width=width, dark=dark, by=alice)
        for details in page.locator("details").all():
            details.evaluate("one => { one.open = true; }")
        if folder := os.environ.get("KPERFLAB_SHOTS"):
            kind = f"{name}-{width}{'-dark' if dark else ''}.png"
            page.screenshot(path=Path(folder) / kind, full_page=True)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} is {wide} pixels wide"
        page.evaluate(source)
        assert page.evaluate(_RUN) == [], name


def test_a_hook_is_made_tried_and_shown(visit: Open, pages: dict[str, str], alice: User) -> None:
    page = visit("/hooks/new", by=alice)
    page.get_by_label("Name").fill("mine")
    page.get_by_label("Address", exact=True).fill("https://ci.example.org/")
    page.get_by_role("button", name="Save").press("Enter")
    page.get_by_role("button", name="Send a test").click()
    assert page.locator("td .chip").first.inner_text() == "waiting"
    assert Hook.objects.filter(name="mine", owner=alice).exists()
