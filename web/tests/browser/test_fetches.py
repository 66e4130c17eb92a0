# SPDX-License-Identifier: GPL-2.0-or-later
"""A tree named by its git address, in a browser: the form, the wait for a worker, its progress, a refusal and a preview."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from lab.models import Experiment, Fetch, Target, User
from lab.submission.fetches.queue import claim_fetch, renew_fetch, report_stage
from lab.submission.fetches.work import carry_out
from lab.tests.factories import make_user
from lab.tests.fetchers import fetch_all
from lab.tests.tiny_tree import diff, make_tiny_tree
from web.tests.browser.conftest import HOSTILE, WIDTHS, Open
from web.tests.browser.pictures import faults, looked_at

pytestmark = pytest.mark.django_db(transaction=True)
LOOKS = [(width, dark) for width in WIDTHS for dark in (False, True)]


@pytest.fixture(autouse=True)
def trees_at_hand() -> None:
    """Leave it to the lab to say which trees are at hand."""


@pytest.fixture
def source(tmp_path: Path, settings: Any) -> str:
    """A repository that only workers may read."""
    Target.objects.get_or_create(name="guest")
    settings.HOME, settings.LOCAL_PATHS = tmp_path / "home", True
    (tmp_path / "home" / "trees").mkdir(parents=True)
    return str(make_tiny_tree(tmp_path / "linux"))


def asked(
    tab: Tab, source: str, *, base: str = "v6.1", button: str = "Preview", name: str = "by git"
) -> Fetch:
    """Fill in the form, press one of its buttons, and return the fetch whose page is then open."""
    tab.get_by_label("Name", exact=True).fill(name)
    tab.get_by_label("Or a git address").fill(source)
    tab.get_by_label("Base", exact=True).fill(base)
    tab.get_by_label("Name of the switch").first.fill("one")
    tab.get_by_label("The patch").first.fill(diff("fs/inode.c", 10, "one"))
    tab.get_by_label("showgids", exact=True).check()
    tab.get_by_label("Preset of showgids").select_option("smoke")
    tab.get_by_role("button", name=button, exact=True).first.click()
    expect(tab.get_by_role("heading", name=f"of {name}")).to_be_visible()
    return Fetch.objects.get(state="waiting", request__description__name=name)


def fits(tab: Tab, name: str, width: int, dark: bool) -> None:
    assert looked_at(tab, name, width=width, dark=dark) <= width, name
    assert faults(tab) == [], name


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_a_preview_is_followed_from_the_form_to_its_result(
    visit: Open, source: str, alice: User, width: int, dark: bool
) -> None:
    earlier = Fetch.objects.create(
        user=make_user("earlier"), kind="preview", request={"description": {}}, digest="e"
    )
    tab = visit("/experiments/new", by=alice, width=width, dark=dark)
    asked(tab, source)
    expect(tab.locator("#live")).to_contain_text("1 request is ahead of it")
    fits(tab, "fetch-waiting", width, dark)

    earlier.delete()
    expect(tab.locator("#live")).to_contain_text("it is next")
    row = claim_fetch(by="host:1:1")
    assert row is not None
    report_stage(row.pk, row.token, "git", "Receiving objects:  41% (3772816/9201989)")
    assert renew_fetch(row.pk, row.token, received_bytes=1234 << 20)
    expect(tab.locator("#live")).to_contain_text("1,234 MiB received")
    expect(tab.locator("#live")).to_contain_text("Receiving objects")
    fits(tab, "fetch-running", width, dark)

    carry_out(row.pk, row.token)
    expect(tab.get_by_role("heading", name="Preview: nothing is queued yet")).to_be_visible()
    expect(tab.locator("#preview")).to_contain_text("to build")
    expect(tab.get_by_label("Or a git address")).to_have_value(source)
    fits(tab, "fetch-preview", width, dark)
    assert Experiment.objects.count() == 0


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_a_refusal_stands_beside_its_field_and_says_what_was_not_done(
    visit: Open, source: str, alice: User, width: int, dark: bool
) -> None:
    tab = visit("/experiments/new", by=alice, width=width, dark=dark, refused=422)
    asked(tab, source, base="v9.9", button="Submit")
    fetch_all()
    expect(tab.get_by_role("alert")).to_contain_text("has no revision")
    expect(tab.locator("#base-error")).to_contain_text("v9.9")
    expect(tab.get_by_role("heading", name="Submission failed")).to_be_visible()
    fits(tab, "fetch-refused", width, dark)


def test_a_refused_preview_does_not_speak_of_a_submission(visit: Open, source: str, alice: User) -> None:
    tab = visit("/experiments/new", by=alice, refused=422)
    asked(tab, source, base="v9.9")
    fetch_all()
    expect(tab.get_by_role("alert").get_by_role("heading")).to_have_text("Preview failed")


def test_a_submission_ends_on_the_page_of_its_experiment(visit: Open, source: str, alice: User) -> None:
    tab = visit("/experiments/new", by=alice)
    asked(tab, source, button="Submit")
    fetch_all()
    expect(tab.get_by_role("heading", name="by git")).to_be_visible()
    expect(tab).to_have_url(re.compile(f"/experiments/{Experiment.objects.get().pk}/$"))


def test_a_cancelled_preview_gives_the_form_back(visit: Open, source: str, alice: User) -> None:
    tab = visit("/experiments/new", by=alice)
    row = asked(tab, source)
    tab.get_by_role("button", name="Cancel the preview").click()
    expect(tab.get_by_text("The preview was cancelled. Nothing was queued.")).to_be_visible()
    expect(tab.get_by_label("Or a git address")).to_have_value(source)
    row.refresh_from_db()
    assert row.state == "cancelled"


@pytest.mark.hostile
def test_what_another_host_says_is_text_and_stays_within_the_page(
    visit: Open, source: str, alice: User
) -> None:
    tab = visit("/experiments/new", by=alice, width=390)
    asked(tab, source, name=f"{HOSTILE}{'x' * 60}")
    row = claim_fetch(by="host:1:1")
    assert row is not None
    report_stage(row.pk, row.token, "git", f"remote: {HOSTILE}{'y' * 250}")
    expect(tab.locator("#live")).to_contain_text(HOSTILE)
    assert tab.locator("main img").count() == 0
    fits(tab, "fetch-hostile", 390, False)
