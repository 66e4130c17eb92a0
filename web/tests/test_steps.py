# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps on the page of trends: search and order in the address, decisions about many at once, and bisections."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from pytest_django import DjangoDbBlocker

from lab.models import BasePoint, Bisection, BisectionStep, Revision, StepDecision, User
from lab.tests.file_rows import rows_of_a_file
from lab.trends.tests.test_trends import course
from web.tests.conftest import SCRIPT, Page


@pytest.fixture(scope="module")
def three_commits(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    with rows_of_a_file(django_db_blocker):
        course([100.0, 101.0, 100.0, 120.0, 121.0, 120.0], step=3)
        for number in range(16):
            Revision.objects.get_or_create(
                tree=Revision.objects.all()[0].tree,
                commit=f"{number:040x}",
                defaults={"position": number, "subject": f"change {number} {SCRIPT}", "author": "Ann"},
            )
        yield f"{BasePoint.objects.all()[0].trend}:{9:040x}"


@pytest.fixture
def wide(three_commits: str, db: None) -> str:
    """The pick of a step that lies somewhere among three commits."""
    return three_commits


def picks(text: str) -> list[str]:
    return re.findall(r'type="checkbox" name="step" value="([^"]+)"', text)


def test_a_step_is_listed_before_the_trends_and_readers_cannot_decide(page: Page, wide: str) -> None:
    text = page("/trends/")
    assert text.index('id="steps"') < text.index("All trends")
    assert 'class="change regression"' in text
    assert SCRIPT not in text
    assert picks(text) == []
    assert "Bisect</button>" not in text


@pytest.mark.parametrize(
    ("query", "steps", "trends"),
    [
        ("search=open", 1, 1),
        ("search=OPEN+showgids", 1, 1),
        ("search=open+nowhere", 0, 0),
        ("search=change+9", 1, 0),
        ("tree=tiny", 1, 1),
        ("tree=nowhere", 0, 0),
        ("target=nowhere", 0, 0),
        ("state=accepted", 0, 1),
        ("state=all", 1, 1),
        ("state=bogus&sort=bogus", 1, 1),
        ("sort=new", 1, 1),
        ("sort=name", 1, 1),
    ],
)
def test_the_address_searches_filters_and_sorts(
    page: Page, wide: str, submitter: Client, query: str, steps: int, trends: int
) -> None:
    text = page(f"/trends/?{query}", by=submitter)
    assert (len(picks(text)), text.count('class="spark"')) == (steps, trends)


def test_empty_filters_leave_the_address(client: Client, wide: str) -> None:
    response = client.get("/trends/?search=&tree=tiny&state=")
    assert response.headers["Location"] == "/trends/?tree=tiny"


def test_a_step_is_accepted_with_a_note_and_opened_again(page: Page, wide: str, submitter: Client) -> None:
    assert picks(page("/trends/", by=submitter)) == [wide]
    sent = {"step": [wide], "state": "accepted", "note": f"known {SCRIPT}", "bug": "https://bugs.example/1"}
    submitter.post("/trends/steps", sent | {"kept": "tree=tiny"})
    assert picks(page("/trends/", by=submitter)) == []
    text = page("/trends/?state=accepted", by=submitter)
    assert picks(text) == [wide]
    assert "accepted by alice: known &lt;script&gt;" in text
    assert 'href="https://bugs.example/1"' in text
    submitter.post("/trends/steps", {"step": [wide], "state": "open"})
    assert picks(page("/trends/", by=submitter)) == [wide]
    assert list(StepDecision.objects.values_list("state", flat=True)) == ["open", "accepted"]


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "choose at least one step"),
        ({"step": "nothing"}, "this is not a step; reload the page"),
        ({"step": "a" * 12 + ":zzzzzzz"}, "this is not a step; reload the page"),
        ({"step": "<script>:" + "0" * 40}, "this is not a step; reload the page"),
        ({"step": "-".join(["a" * 12] * 900) + ":" + "0" * 40}, "this is not a step; reload the page"),
        ({"step": "", "state": "gone"}, "there is no state &quot;gone&quot;; valid: open, accepted, ignored"),
        ({"state": ""}, "there is no state"),
        ({"note": "x" * 2001}, "a note has at most 2,000 characters, this one 2,001"),
        ({"note": "a\u202eb"}, "U+202E"),
        ({"bug": "javascript:alert(1)"}, "give the address of the report, beginning with https://"),
        ({"bug": "https://x y"}, "give the address of the report, beginning with https://"),
        ({"bug": "https://x" + "x" * 500}, "give the address of the report, beginning with https://"),
        ({"bug": 'https://x"onclick=1'}, "give the address of the report, beginning with https://"),
    ],
)
def test_a_decision_that_says_nothing_clear_changes_nothing(
    wide: str, submitter: Client, sent: dict[str, str], said: str
) -> None:
    whole = {"state": "accepted"} | ({} if not sent else {"step": wide}) | sent
    text = submitter.post("/trends/steps", whole, follow=True).content.decode()
    assert f"Nothing was changed: {said}" in text or said in text
    assert StepDecision.objects.count() == 0


def test_enter_in_the_note_on_the_chosen_steps_bisects_none(page: Page, wide: str, submitter: Client) -> None:
    text = page("/trends/", by=submitter)
    form = text[text.index('<form method="post" action="/trends/steps">') :]
    # Browsers take Enter in a line of text for a press of the form's first button, and do nothing if it is disabled.
    first = re.search(r"<button[^>]*>", form)
    assert first
    assert first[0] == "<button hidden disabled>"


def test_a_refused_decision_keeps_its_steps_and_what_was_typed(
    page: Page, wide: str, submitter: Client
) -> None:
    sent = {"step": wide, "state": "accepted", "note": f"known {SCRIPT}", "bug": "bugs.example/1"}
    text = submitter.post("/trends/steps", sent, follow=True).content.decode()
    assert "Nothing was changed" in text
    assert 'name="note" maxlength="2000" value="known &lt;script&gt;' in text
    assert 'value="bugs.example/1"' in text
    assert f'name="step" value="{wide}" checked' in text
    assert "bugs.example" not in page("/trends/", by=submitter)


@pytest.mark.hostile
@pytest.mark.parametrize("sent", [{"state": "accepted"}, {"bisect": "1"}])
def test_who_may_not_submit_neither_decides_nor_bisects(
    wide: str, client: Client, bob: User, sent: dict[str, str]
) -> None:
    whole = {key: wide if key == "bisect" else value for key, value in sent.items()} | {"step": wide}
    assert client.post("/trends/steps", whole).status_code == 302
    client.force_login(bob)
    assert client.post("/trends/steps", whole).status_code == 403
    assert StepDecision.objects.count() == Bisection.objects.count() == 0


@pytest.mark.hostile
@pytest.mark.parametrize(
    "pick", ["nowhere:1", "b" * 12 + ":" + "0" * 40, ":", "a" * 5000, f"{'0' * 12}:{9:040x}", "../../x:y"]
)
def test_a_bisection_of_no_step_is_not_started(wide: str, submitter: Client, pick: str) -> None:
    assert submitter.post("/trends/steps", {"bisect": pick}).status_code == 404
    assert StepDecision.objects.count() == Bisection.objects.count() == 0


def test_the_back_address_stays_on_the_page(wide: str, submitter: Client) -> None:
    sent = {"step": wide, "state": "ignored", "kept": "//evil.example/"}
    response = submitter.post("/trends/steps", sent)
    assert response.headers["Location"].startswith("/trends/?")


def test_a_bisection_is_started_once_and_accepts_the_step(page: Page, wide: str, submitter: Client) -> None:
    for _ in range(2):
        submitter.post("/trends/steps", {"bisect": wide})
    row = Bisection.objects.get()
    assert row.automatic
    assert row.line == [f"{number:040x}" for number in (6, 7, 8, 9)]
    assert (row.metric, row.verdict, row.state) == ("ns_per_open", "regression", "running")
    assert BisectionStep.objects.count() == 0
    text = page("/trends/?state=accepted", by=submitter)
    assert f'href="/bisections/{row.pk}/"' in text
    assert "Bisect</button>" not in text
    assert page("/trends/", by=submitter).count('name="step"') == 0
