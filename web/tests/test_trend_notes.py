# SPDX-License-Identifier: GPL-2.0-or-later
"""Notes on trends: on the chart, beneath it, and from a form for those who may."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from lab.models import Note, User
from lab.notes.changes import write_note
from lab.trends.page import measured_revision, trend_page
from web.tests.conftest import SCRIPT, Page


def commit(number: int) -> str:
    return f"{number:040x}"


def note(stepped: str, author: User, text: str, *, number: int = 4, everywhere: bool = False) -> Note:
    revision = measured_revision(trend_page(stepped), commit(number))
    return write_note(author=author, text=text, revision=revision, trend="" if everywhere else stepped)


def test_a_note_is_a_mark_on_the_chart_with_its_text_and_author(
    page: Page, stepped: str, alice: User
) -> None:
    note(stepped, alice, f"new compiler {SCRIPT}")
    text = page(f"/trends/{stepped}/")
    assert text.count('class="pin"') == 1
    assert "alice: new compiler &lt;script&gt;" in text
    assert SCRIPT not in text
    match = re.search(r'id="trend-data" type="application/json">(.*?)</script>', text)
    assert match
    assert json.loads(match[1])["notes"] == [{"at": 4, "author": "alice", "text": f"new compiler {SCRIPT}"}]


def test_a_note_on_all_trends_is_here_too_and_one_of_another_is_not(
    page: Page, stepped: str, alice: User
) -> None:
    note(stepped, alice, "the machine moved", everywhere=True)
    other = note(stepped, alice, "about something else")
    Note.objects.filter(pk=other.pk).update(trend="another")
    text = page(f"/trends/{stepped}/")
    assert "on all trends of tiny" in text
    assert "the machine moved" in text
    assert "about something else" not in text


def test_older_notes_are_behind_a_link(
    page: Page, stepped: str, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("web.views.trend._MOST_NOTES", 2)
    for number in range(3):
        note(stepped, alice, f"remark {number}", number=number)
    text = page(f"/trends/{stepped}/")
    assert [number for number in range(3) if f'<div class="said">remark {number}' in text] == [1, 2]
    assert text.count('class="pin"') == 3
    assert '<a href="?notes=all#notes">All 3 notes</a>' in text
    text = page(f"/trends/{stepped}/?notes=all")
    assert [number for number in range(3) if f'<div class="said">remark {number}' in text] == [0, 1, 2]
    assert "notes=all" not in text


def test_a_submitter_writes_a_note_at_a_revision(page: Page, submitter: Client, stepped: str) -> None:
    posted = {"revision": commit(5)[:40], "text": "bigger cache\r\nsince then"}
    answer = submitter.post(f"/trends/{stepped}/notes", posted)
    assert answer.headers["Location"] == f"/trends/{stepped}/#notes"
    row = Note.objects.get()
    assert (row.trend, row.revision and row.revision.position) == (stepped, 5)
    assert submitter.post(f"/trends/{stepped}/notes", posted | {"everywhere": "1"}).status_code == 302
    assert Note.objects.filter(trend="").count() == 1
    assert f"/notes/{row.pk}" in page(f"/trends/{stepped}/", by=submitter)


@pytest.mark.parametrize(
    ("posted", "line"),
    [
        (
            {"revision": "ffff", "text": "kept"},
            "no measured revision of this trend begins with &quot;ffff&quot;",
        ),
        ({"revision": "", "text": "kept"}, "no measured revision of this trend is named"),
        ({"revision": "000", "text": "kept"}, "8 revisions begin with"),
        ({"revision": "0" * 39 + "4", "text": " "}, "write something: the note is empty"),
    ],
)
def test_what_is_refused_stays_as_typed(
    submitter: Client, stepped: str, posted: dict[str, str], line: str
) -> None:
    answer = submitter.post(f"/trends/{stepped}/notes", posted)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert line in text
    assert f'value="{posted["revision"]}"' in text
    assert "<details open>" in text
    assert not Note.objects.exists()


def test_a_viewer_reads_notes_but_is_offered_no_form(
    page: Page, viewer: Client, stepped: str, alice: User
) -> None:
    note(stepped, alice, "seen by all")
    text = page(f"/trends/{stepped}/", by=viewer)
    assert "seen by all" in text
    assert "note-revision" not in text
    assert "Edit or delete" not in text
    assert viewer.post(f"/trends/{stepped}/notes", {"revision": commit(4), "text": "x"}).status_code == 403


def test_ones_own_note_is_removed_and_leads_back_to_its_trend(
    submitter: Client, stepped: str, alice: User
) -> None:
    row = note(stepped, alice, "a mistake")
    answer = submitter.post(f"/notes/{row.pk}/delete")
    assert answer.headers["Location"] == f"/trends/{stepped}/"
    assert not Note.objects.exists()


def test_a_note_on_all_trends_leads_back_to_the_trend_on_which_it_was_read(
    page: Page, submitter: Client, stepped: str, alice: User
) -> None:
    note(stepped, alice, "the machine moved", everywhere=True)
    (edit,) = re.findall(r'href="(/notes/[^"]*)"', page(f"/trends/{stepped}/", by=submitter))
    form = page(edit, by=submitter)
    assert f'href="/trends/{stepped}/">Back</a>' in form
    save, delete = re.findall(r'<form method="post" action="(/notes/[^"]*)"', form)
    assert submitter.post(save, {"text": "again"}).headers["Location"] == f"/trends/{stepped}/#notes"
    assert submitter.post(delete).headers["Location"] == f"/trends/{stepped}/"


def test_notes_go_with_the_trend_as_json(client: Client, stepped: str, alice: User) -> None:
    note(stepped, alice, "new compiler")
    notes = client.get(f"/trends/{stepped}.json").json()["notes"]
    assert [(mark["commit"], mark["author"], mark["text"]) for mark in notes] == [
        (commit(4), "alice", "new compiler")
    ]
