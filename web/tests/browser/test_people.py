# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes by people in a browser: sign in, decide, write, keep views; and how those pages look."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from lab.comparisons.triage import Decision, Regression, decide
from lab.models import Alert, Comparison, Experiment, Standing, Triage, User
from lab.notes.changes import write_note
from lab.people.sign_in import issue_secret
from lab.people.tokens import issue_token
from lab.tests.factories import make_grid
from web.tests.browser.conftest import HOSTILE, WIDTHS, Open
from web.tests.browser.pictures import faults, looked_at

PASSWORD = "rcu-walk-42"


@pytest.fixture
def talked(profiled: Experiment, alice: User, charlie: User) -> Experiment:
    """A regression with decisions, notes, an alert, an ill target; what people typed is hostile."""
    Comparison.objects.update(verdict="regression", ratio=1.31, low=1.27, high=1.36)
    row = profiled.comparisons.get()
    on = Regression(row.case_id, row.variant_id, row.metric)
    first = decide(by=alice, on=on, decision=Decision("acknowledged", f"I look {HOSTILE}"), seen=None)
    fixed = Decision("fixed", "see https://example.org/thread?a=1&b=2.", "https://example.org/c/1da177e")
    second = decide(by=charlie, on=on, decision=fixed, seen=first.pk)
    decide(by=alice, on=on, decision=Decision("acknowledged", "not quite"), seen=second.pk)
    write_note(author=alice, experiment=profiled, text=f"Boots 3–5 ran hot.\n{HOSTILE} https://example.org/")
    write_note(author=charlie, experiment=profiled, text="Seen. " * 40)
    issue_token(user=alice, name="laptop", scopes=["read", "submit"], days=30)
    grid = make_grid()
    grid.name = f"a running one {HOSTILE}"
    grid.state = "running"
    grid.save()
    grid.runs.filter(block=0).update(state="failed", blame="lab", finished_at=timezone.now())
    standing = Standing.objects.create(name="nightly", spec={}, tree=grid.tree, branch="master")
    Alert.objects.create(
        standing=standing,
        trend="abc",
        metric="ns_per_open",
        commit="c" * 40,
        ratio=1.2,
        worse=True,
        text=HOSTILE,
    )
    return profiled


def people_pages(experiment: Experiment) -> dict[str, str]:
    return {
        "front": "/",
        "regressions": "/regressions/?state=all",
        "triage": f"/experiments/{experiment.pk}/explain/{experiment.comparisons.get().pk}/",
        "talk": f"/experiments/{experiment.pk}/",
        "note": f"/notes/{experiment.notes.all()[0].pk}",
        "views": "/experiments/?state=done",
        "account": "/account/",
        "people": "/people/",
        "lab": "/lab/",
    }


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_of_people_is_wider_than_its_window_and_axe_finds_nothing(
    visit: Open, talked: Experiment, charlie: User, width: int, dark: bool
) -> None:
    for name, address in people_pages(talked).items():
        page = visit(address, width=width, dark=dark, by=charlie)
        assert looked_at(page, name, width=width, dark=dark) <= width, name
        assert faults(page) == [], name


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_pages_of_strangers_fit_and_axe_finds_nothing(
    visit: Open, talked: Experiment, width: int, dark: bool
) -> None:
    for name, address in (("stranger", "/"), ("sign-in", "/sign-in/")):
        page = visit(address, width=width, dark=dark)
        assert looked_at(page, name, width=width, dark=dark) <= width, name
        assert faults(page) == [], name


def test_a_stranger_signs_in_on_the_way_to_the_form_and_out_again(visit: Open, alice: User) -> None:
    alice.set_password(PASSWORD)
    alice.save()
    page = visit("/", refused=405)
    page.get_by_role("banner").get_by_role("link", name="New experiment").click()
    page.get_by_label("Username").fill("alice")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("correct username and password")
    page.get_by_label("Username").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(re.compile("/experiments/new$"))
    page.get_by_role("link", name="Your work: alice").click()
    page.get_by_role("link", name="Account and tokens").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()


def test_the_terminals_link_signs_in_and_the_form_is_there(visit: Open, transactional_db: None) -> None:
    page = visit(f"/sign-in/here/{issue_secret()}")
    page.get_by_role("banner").get_by_role("link", name="New experiment").click()
    expect(page.get_by_role("button", name="Submit", exact=True)).to_be_visible()


def test_a_viewer_is_offered_nothing_to_change(visit: Open, talked: Experiment, bob: User) -> None:
    for address in ("/", *(people_pages(talked)[name] for name in ("triage", "talk"))):
        page = visit(address, by=bob)
        expect(page.get_by_role("link", name="New experiment")).to_have_count(0)
        expect(page.get_by_text("Decide")).to_have_count(0)
        expect(page.get_by_text("Write a note")).to_have_count(0)


def test_a_regression_is_triaged_from_the_list(visit: Open, profiled: Experiment, alice: User) -> None:
    Comparison.objects.update(verdict="regression")
    page = visit("/regressions/", by=alice)
    page.get_by_role("link", name="p: ns_per_open").click()
    page.locator("summary", has_text="Decide").click()
    page.get_by_label("State").select_option("fixed")
    page.get_by_label("Fixed by").fill("1da177e4c3f4")
    page.get_by_label("Reason").fill("found by bisection")
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("region", name="Triage")).to_contain_text("found by bisection")
    assert Triage.objects.get().author == alice
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Regressions").click()
    expect(page.get_by_text("nothing is open")).to_be_visible()


def test_a_decision_made_from_an_old_page_is_asked_for_again(
    visit: Open, profiled: Experiment, alice: User, charlie: User
) -> None:
    Comparison.objects.update(verdict="regression")
    row = profiled.comparisons.get()
    page = visit(f"/experiments/{profiled.pk}/explain/{row.pk}/", by=alice, refused=409)
    on = Regression(row.case_id, row.variant_id, row.metric)
    decide(by=charlie, on=on, decision=Decision("expected", "meant so"), seen=None)
    page.locator("summary", has_text="Decide").click()
    page.get_by_label("Reason").fill("mine")
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("alert")).to_contain_text("charlie has set it to expected", ignore_case=True)
    expect(page.get_by_label("Reason")).to_have_value("mine")
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert list(Triage.objects.values_list("state", flat=True)) == ["expected", "acknowledged"]


def test_a_note_is_written_edited_and_deleted(visit: Open, profiled: Experiment, alice: User) -> None:
    page = visit(f"/experiments/{profiled.pk}/", by=alice)
    page.get_by_text("Write a note").click()
    page.get_by_label("Your note").fill(f"see https://example.org/x {HOSTILE}")
    page.get_by_role("button", name="Add").click()
    note = page.get_by_role("article", name="Note of alice")
    expect(note.get_by_role("link", name="https://example.org/x")).to_be_visible()
    expect(note).to_contain_text(HOSTILE)
    note.get_by_role("link", name="Edit").click()
    page.get_by_label("Text").fill("second thought")
    page.get_by_role("button", name="Save").click()
    expect(note).to_contain_text("second thought")
    note.get_by_role("link", name="Edit").click()
    page.get_by_role("button", name="Delete this note").click()
    expect(page.get_by_text("The note is deleted.")).to_be_visible()
    expect(note).to_have_count(0)


def test_an_operator_invites_somebody(visit: Open, charlie: User) -> None:
    page = visit("/people/", by=charlie)
    page.get_by_label("Name", exact=True).fill("dora")
    page.get_by_role("button", name="Invite").click()
    link = page.get_by_role("status").get_by_text("/choose-password/").inner_text()
    guest = visit(link[link.index("/choose-password/") :])
    guest.get_by_label("New password", exact=True).fill(PASSWORD)
    guest.get_by_label("New password confirmation").fill(PASSWORD)
    guest.get_by_role("button", name="Choose it and sign in").click()
    expect(guest.get_by_role("link", name="Your work: dora")).to_be_visible()
