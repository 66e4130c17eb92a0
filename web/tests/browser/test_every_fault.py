# SPDX-License-Identifier: GPL-2.0-or-later
"""The form says everything that is wrong at once: what the form sees, what the lab refuses, and what does not apply."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from kernels.trees.tree import import_archive
from lab.models import Experiment, Fetch, Target, Tree, User
from lab.tests.tiny_tree import diff, make_tiny_tree
from web.tests.browser.conftest import WIDTHS, Open
from web.tests.browser.pictures import faults, looked_at

WRONG = {
    "name": "enter at most 200 characters, not 201",
    "patch-0-name": 'did you mean ["“]my-patch',
    "patch-0-text": "absent.c",
    "patch-1-text": "there is no diff in it",
    "patch-1-requires": "did you mean",
    "case-showgids": 'did you mean ["“]threads',
    "boots": "“many” is not a whole number",
    "iterations": "must be at least 1, not 0",
}


@pytest.fixture
def form(visit: Open, transactional_db: None, tmp_path: Path, alice: User) -> Callable[..., Tab]:
    """Return what opens the form of a lab with one tree, which is imported."""
    source = make_tiny_tree(tmp_path / "linux-source-6.1")
    archive = tmp_path / "linux-source-6.1.tar.xz"
    subprocess.run(
        ["tar", "-C", str(tmp_path), "--exclude=.git", "-cJf", str(archive), source.name], check=True
    )
    import_archive("tiny", archive, settings.HOME / "trees")
    Target.objects.get_or_create(name="guest")
    Tree.objects.create(name="tiny", kind="archive", location=str(archive), default_revision="v6.1.0")

    def opened(**how: Any) -> Tab:
        tab = visit("/experiments/new", by=alice, refused=422, **how)
        tab.get_by_label("Tree", exact=True).select_option("tiny")
        return tab

    return opened


def fill_wrong(form: Tab) -> None:
    """Make a mistake in every part of the form."""
    for node in form.locator("details").all():
        node.evaluate("node => node.open = true")
    form.get_by_label("Name", exact=True).fill("x" * 201)
    form.locator("[name=patch-0-text]").fill(diff("fs/absent.c", 20, "changed"))
    form.locator("[name=patch-0-name]").fill("my patch")
    form.locator("[name=patch-1-text]").fill("no patch at all")
    form.locator("[name=patch-1-name]").fill("second")
    form.locator("[name=patch-1-requires]").fill("my-patsh")
    form.get_by_label("Other parameters of showgids").fill("treads = 2")
    form.get_by_label("Boots", exact=True).fill("many")
    form.get_by_label("Iterations", exact=True).fill("0")


@pytest.mark.parametrize("button", ["Submit", "Preview"])
def test_faults_of_every_stage_are_each_beside_their_field_after_one_click(
    form: Callable[..., Tab], button: str
) -> None:
    tab = form()
    fill_wrong(tab)
    tab.locator("#new").get_by_role("button", name=button, exact=True).click()
    expect(tab.get_by_role("alert")).to_be_visible()
    for field, words in WRONG.items():
        expect(tab.locator(f"[id='{field}-error']")).to_contain_text(re.compile(words))
    expect(tab.get_by_role("alert").get_by_role("listitem")).to_have_count(len(WRONG))
    assert Experiment.objects.count() == Fetch.objects.count() == 0


def test_a_base_that_is_nearly_right_is_proposed_beside_a_patch_that_holds_no_diff(
    form: Callable[..., Tab],
) -> None:
    tab = form()
    tab.get_by_label("Base", exact=True).fill("v6.1.1")
    tab.locator("[name=patch-0-text]").fill("no patch at all")
    tab.get_by_label("Boots", exact=True).fill("many")
    tab.locator("#new").get_by_role("button", name="Preview", exact=True).click()
    for field, words in {"base": 'Did you mean "v6.1.0"', "patch-0-text": "no diff", "boots": "many"}.items():
        expect(tab.locator(f"[id='{field}-error']")).to_contain_text(words)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_form_full_of_faults_fits_keeps_what_was_typed_and_offers_one_empty_slot(
    form: Callable[..., Tab], width: int, *, dark: bool
) -> None:
    tab = form(width=width, dark=dark)
    fill_wrong(tab)
    tab.locator("#new").get_by_role("button", name="Submit", exact=True).click()
    expect(tab.get_by_role("alert").get_by_role("listitem")).to_have_count(len(WRONG))
    expect(tab.locator("summary", has_text="Paste another patch")).to_have_count(1)
    expect(tab.locator("[name=patch-1-requires]")).to_have_value("my-patsh")
    assert "absent.c" in tab.locator("[name=patch-0-text]").input_value()
    assert looked_at(tab, "faults", width=width, dark=dark) <= width
    assert not faults(tab)
