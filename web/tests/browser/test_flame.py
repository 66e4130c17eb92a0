# SPDX-License-Identifier: GPL-2.0-or-later
"""The flame graph in a browser: drawn, driven by keys, kept in its address, and its names only ever text."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from lab.models import Experiment, Profile
from lab.profiles.analysis.frame_tree import build_tree, pack
from lab.profiles.analysis.source_lines import pack_lines
from web.tests.browser.conftest import HOSTILE, WIDTHS, Open
from web.tests.browser.pictures import faults, looked_at


@pytest.fixture
def address(profiled: Experiment) -> str:
    return f"/experiments/{profiled.pk}/profile/{profiled.cases.get().pk}/?variant=p"


def ready(page: Page) -> Page:
    page.wait_for_selector("#flame[data-ready]")
    return page


def pressed(page: Page, *keys: str) -> str:
    """Return the description of the frame that these keys lead to."""
    page.focus("#flame")
    for key in keys:
        page.keyboard.press(key)
    return (page.text_content("#flame-live") or "").replace("\xa0", " ")


def test_frames_are_reached_and_told_by_keys(visit: Open, address: str) -> None:
    page = ready(visit(address))
    assert pressed(page, "ArrowUp").startswith("sys: 90.00 %, 1\N{NARROW NO-BREAK SPACE}350 samples")
    assert pressed(page, "ArrowRight").startswith("irq: 10.00 %")
    assert pressed(page, "ArrowRight").startswith("irq")
    assert (
        pressed(page, "ArrowLeft", "ArrowUp", "ArrowRight") == "new: 30.00 %, 450 samples, 30.00 % in itself"
    )
    assert pressed(page, "ArrowDown").startswith("sys")
    assert pressed(page, "Escape").startswith("all: 100.00 %")


def test_a_zoomed_view_is_reproduced_by_its_address(visit: Open, address: str) -> None:
    page = ready(visit(address))
    pressed(page, "ArrowUp", "ArrowUp", "Enter")
    page.click("text=Roots on top")
    expect(page).to_have_url(re.compile(re.escape("view=icicle")))
    expect(page).to_have_url(re.compile("#at=sys/walk$"))
    again = ready(visit(page.url[page.url.index("/experiments") :]))
    expect(again.locator("button[data-flag=icicle]")).to_have_attribute("aria-pressed", "true")
    expect(again.locator("#flame-detail")).to_contain_text("walk: 60.00")
    # A frame beside the zoomed one is out of sight and not walked to.
    assert pressed(again, "ArrowDown").startswith(HOSTILE)


def test_a_click_zooms_and_reset_leads_back(visit: Open, address: str) -> None:
    page = ready(visit(address))
    box = page.locator("#flame canvas").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 0.95, box["y"] + box["height"] - 27)
    expect(page).to_have_url(re.compile("#at=irq$"))
    page.click("#flame-reset")
    expect(page).not_to_have_url(re.compile(re.escape("#at")))


def test_a_search_tells_the_matched_share_and_stays_in_the_address(visit: Open, address: str) -> None:
    page = ready(visit(address))
    page.fill("#flame-search", "<IMG")
    page.keyboard.press("Enter")
    expect(page.locator("#flame-share")).to_have_text(re.compile("1 frame matches: 40.00.% of samples"))
    expect(page).to_have_url(re.compile(re.escape(f"search={quote('<IMG')}")))
    again = ready(visit(address + "&search=down"))
    expect(again.locator("#flame-share")).to_contain_text("20.00")
    assert again.input_value("#flame-search") == "down"


def test_the_callers_of_the_focused_symbol_are_shown_below_it(visit: Open, address: str) -> None:
    page = ready(visit(address))
    pressed(page, "ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight")
    page.click("#flame-callers")
    expect(page).to_have_url(re.compile(re.escape("callers=down_read")))
    expect(page.locator("#flame-mode")).to_contain_text("callers are below down_read")
    assert pressed(page, "ArrowDown", "ArrowDown").startswith("walk: 20.00 %")
    page.click("#flame-callers")
    expect(page).not_to_have_url(re.compile(re.escape("callers")))


def test_a_hostile_symbol_is_text_wherever_it_is_told(visit: Open, address: str) -> None:
    page = ready(visit(address))
    assert pressed(page, "ArrowUp", "ArrowUp", "ArrowUp").startswith(HOSTILE)
    page.click("#flame-callers")
    expect(page.locator("#flame-mode")).to_contain_text(HOSTILE)
    assert page.locator("main img").count() == 0
    assert page.title() != "run"


def test_a_difference_tells_both_shares_the_ratio_and_how_certain(visit: Open, address: str) -> None:
    page = ready(visit(f"{address}&against=base"))
    message = pressed(page, "ArrowUp", "ArrowUp", "ArrowUp")
    assert message == "down_read: base 60.00 %, p 20.00 %, × 0.33, certain (q < 0.001)"
    page.click("text=Samples per boot")
    expect(page).to_have_url(re.compile(re.escape("scale=samples")))
    assert "300 samples" in pressed(page, "ArrowUp", "ArrowUp", "ArrowUp")
    frames = page.get_attribute("#flame", "data-ready")
    page.click("text=On both sides only")
    expect(page).to_have_url(re.compile(re.escape("sides=both")))
    assert frames == "8"


def test_the_other_variant_is_shown_in_the_same_view(visit: Open, address: str) -> None:
    page = ready(visit(f"{address}&search=down"))
    page.click("text=Roots on top")
    page.click("nav[aria-label=Variant] >> text=base")
    ready(page)
    expect(page).to_have_url(re.compile(re.escape("variant=base")))
    expect(page).to_have_url(re.compile(re.escape("search=down")))
    expect(page).to_have_url(re.compile(re.escape("view=icicle")))


def test_a_profile_that_cannot_be_read_is_told(visit: Open, address: str) -> None:
    page = visit("/experiments/")
    page.context.route("**/variant.tree*", lambda route: route.fulfill(body=b"no tree"))
    damaged = page.context.new_page()
    damaged.goto(page.url.split("/experiments")[0] + address)
    expect(damaged.locator("#flame-error")).to_contain_text("cannot be shown: it does not decompress")


def test_a_stack_of_ten_thousand_frames_is_scrolled_not_cut(
    visit: Open, address: str, profiled: Experiment
) -> None:
    deep = tuple(f"f{depth}" for depth in range(10_000))
    tree = pack(build_tree([(deep, 5)]))
    Profile.objects.filter(run__variant__name="p").update(tree=tree, samples=5)
    page = ready(visit(f"/experiments/{profiled.pk}/profile/{profiled.cases.get().pk}/?variant=p"))
    assert page.locator("#flame canvas").evaluate("one => one.height") < 2000
    page.focus("#flame")
    page.locator("#flame").evaluate("one => { one.scrollTop = 0; }")
    box = page.locator("#flame canvas").bounding_box()
    assert box
    page.mouse.move(box["x"] + 50, box["y"] + 5)
    expect(page.locator("#flame-detail")).to_contain_text("f9999: 100.00")


def test_a_symbol_of_ten_thousand_letters_stays_within_the_page(
    visit: Open, address: str, profiled: Experiment
) -> None:
    tree = pack(build_tree([(("x" * 10_000,), 5)]))
    Profile.objects.filter(run__variant__name="p").update(tree=tree, samples=5)
    page = ready(visit(address, width=390))
    assert "characters)" in pressed(page, "ArrowUp")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_profile_without_samples_says_so(visit: Open, address: str) -> None:
    Profile.objects.update(tree=pack(build_tree([])), samples=0)
    page = ready(visit(address))
    expect(page.locator("#flame-empty")).to_be_visible()


def test_the_callers_of_a_difference_are_as_certain_as_its_frames(visit: Open, address: str) -> None:
    page = ready(visit(f"{address}&against=base&callers=down_read"))
    expect(page.locator("#flame[data-told=all]")).to_have_count(1)
    assert "certain (q" in pressed(page, "ArrowDown", "ArrowDown")
    assert "walk: base 60.00" in pressed(page)
    page.click("#flame-callers")
    expect(page.locator("#flame[data-told=all]")).to_have_count(0)
    assert pressed(page, "ArrowUp").startswith("sys: base")


def sandwich(page: Page, symbol: str) -> Page:
    ready(page)
    expect(page).to_have_url(re.compile(re.escape(f"around={quote(symbol)}")))
    expect(page.locator("main")).to_contain_text(f"{symbol} is in the middle")
    return page


def test_a_frames_callers_and_callees_are_one_picture_with_an_address(visit: Open, address: str) -> None:
    page = ready(visit(address))
    pressed(page, "ArrowUp", "ArrowUp")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Callers and callees of walk")).to_be_focused()
    page.keyboard.press("Enter")
    sandwich(page, "walk")
    assert pressed(page, "Home").startswith("walk: 60.00 %, 900 samples")
    assert pressed(page, "ArrowUp") == "sys: 60.00 %, 900 samples"
    assert pressed(page, "ArrowUp") == "sys: 60.00 %, 900 samples", "nothing calls it"
    assert pressed(page, "ArrowDown").startswith("walk: 60.00 %")
    assert pressed(page, "ArrowDown").startswith(f"{HOSTILE}: 40.00 %")
    assert pressed(page, "ArrowRight", "Enter").startswith("down_read: 20.00 %")
    expect(page).to_have_url(re.compile("#at=down_read$"))
    again = sandwich(visit(page.url[page.url.index("/experiments") :]), "walk")
    expect(again.locator("#flame-detail")).to_contain_text("down_read: 20.00")
    again.click("text=Whole flame graph")
    ready(again)
    expect(again).not_to_have_url(re.compile("around"))


def test_either_half_of_a_sandwich_is_zoomed_by_itself(visit: Open, address: str) -> None:
    page = sandwich(visit(f"{address}&around=down_read"), "down_read")
    box = page.locator("#flame canvas").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + 9)
    expect(page).to_have_url(re.compile(re.escape("#at=../walk/sys")))
    assert pressed(page, "ArrowDown", "ArrowDown").startswith("down_read: 20.00 %")
    expect(page.get_by_role("link", name="Callers and callees of")).to_have_count(0)
    page.get_by_role("link", name="walk", exact=True).first.click()
    sandwich(page, "walk")
    expect(page.locator("#around")).to_contain_text("walk")


@pytest.mark.parametrize("kind", ["cpu", "lock", "exact", "waiting"])
def test_a_difference_of_every_kind_has_a_sandwich_as_certain_as_its_frames(
    visit: Open, address: str, kind: str
) -> None:
    Profile.objects.update(kind=kind)
    page = sandwich(visit(f"{address}&kind={kind}&against=base&around=walk"), "walk")
    expect(page.locator("#flame[data-told=all]")).to_have_count(1)
    for keys in (("Home", "ArrowUp"), ("Home", "ArrowDown")):
        assert re.search(
            r"certain \(q|changed by the patch|boots of one kernel|may be chance", pressed(page, *keys)
        )
    assert "certain (q" in pressed(page, "Home", "ArrowDown", "ArrowRight") or kind != "cpu"


def test_a_sandwich_of_what_no_sample_holds_says_so(visit: Open, address: str) -> None:
    page = ready(visit(f"{address}&around={quote('<b>nothing')}"))
    expect(page.locator("main")).to_contain_text("No sample of any variant contains <b>nothing")
    expect(page.locator("#flame-empty")).to_be_visible()


def test_a_frame_tells_its_file_and_line_where_they_are_known(visit: Open, address: str) -> None:
    lines = {"walk": "fs/namei.c:2251", "constructor": "fs/<b>.c:1"}
    Profile.objects.update(lines=pack_lines(lines))
    for sides in ("", "&against=base"):
        page = visit(f"{address}{sides}&around=walk")
        expect(page.locator("#flame-detail")).to_contain_text(re.compile(r"walk: .* · fs/namei.c:2251$"))
        assert "·" not in pressed(page, "ArrowDown")
        expect(page.locator("main")).to_contain_text("walk (fs/namei.c:2251) is in the middle")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_a_function_fits_and_is_open_to_everybody(
    visit: Open, address: str, width: int, dark: bool
) -> None:
    deep = f"drivers/{'very_long_folder/' * 9}file.c:123456"
    Profile.objects.update(lines=pack_lines({"walk": deep, "down_read": deep}))
    for name, sides in (("function", ""), ("function-difference", "&against=base")):
        page = ready(visit(f"{address}{sides}&around=walk", width=width, dark=dark))
        expect(page.locator("#flame-detail")).to_contain_text(deep)
        assert looked_at(page, name, width=width, dark=dark) <= width
        assert faults(page) == []
