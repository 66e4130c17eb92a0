# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails as strangers upload them to the form: a page with a series or a refusal, whatever they hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from bench.fuzz.mutations import mutated_mails
from bench.fuzz.targets import corpus
from lab.experiments.spec import ExperimentSpec
from web.cloned import typed_from
from web.tests.test_submission import FILLED, error_beside

pytestmark = pytest.mark.hostile
SEEDS = [data for _, data in corpus("mail")]
MAILS = [*SEEDS, *mutated_mails(SEEDS, 30, seed=11)]
DIFF = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
GAP = f"From: A <a@example.org>\nSubject: [PATCH 2/3] x: y\n\n---\n{DIFF}"
DEEP = b"".join(b"From: a\nContent-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (n, n) for n in range(12))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[ExperimentSpec]:
    specs: list[ExperimentSpec] = []

    def submit(*, spec: ExperimentSpec, **_: object) -> Any:
        specs.append(spec)
        return SimpleNamespace(pk=41)

    monkeypatch.setattr("lab.submission.duplicates.submit_experiment", submit)
    return specs


def upload(client: Client, data: bytes, **fields: str) -> Any:
    files = [SimpleUploadedFile("a.mbox", data)]
    return client.post("/experiments/new", {**FILLED, **fields, "files": files})


@pytest.mark.parametrize("number", range(len(MAILS)))
def test_any_mail_is_received_or_refused_beside_its_field(
    submitter: Client, taken: list[ExperimentSpec], number: int
) -> None:
    response = upload(submitter, MAILS[number])
    assert response.status_code in (302, 422)
    for spec in taken:
        assert all((patch.text or "").encode() for patch in spec.patches)


@pytest.mark.process
def test_a_mail_that_no_mailer_builds_is_refused_beside_the_files(
    submitter: Client, taken: list[ExperimentSpec]
) -> None:
    response = upload(submitter, DEEP)
    assert "mail 1: its parts are nested more than 8 deep" in error_beside(response, "files")
    assert taken == []


@pytest.mark.process
def test_a_gap_is_told_and_the_word_is_a_checkbox(submitter: Client, taken: list[ExperimentSpec]) -> None:
    page = upload(submitter, GAP.encode(), boots="many").content.decode()
    assert "It is incomplete: it has patch 2 of 3; missing: 1, 3" in page
    assert 'name="patch-0-partial"' in page
    submitter.post(
        "/experiments/new",
        {**FILLED, "patch-0-name": "y", "patch-0-text": GAP, "patch-0-partial": "on"},
    )
    assert taken[-1].patches[0].partial


def test_a_clone_keeps_the_word() -> None:
    description = {"name": "x", "patches": [{"name": "y", "text": GAP, "partial": True}], "cases": []}
    typed, _ = typed_from(description, {}, origin=1)
    assert typed.patches[0].partial


@pytest.mark.process
@pytest.mark.parametrize(
    "title",
    ["<script>alert(1)</script>", "[red]x[/red]", "=?utf-8?q?=1b[31m?=x", "a\u202eb", '"><img src=x>'],
)
def test_no_title_of_a_mail_gets_into_a_page_as_more_than_text(
    submitter: Client, taken: list[ExperimentSpec], title: str
) -> None:
    mail = f"From: {title} <a@example.org>\nSubject: [PATCH 2/3] {title}\n\n---\n{DIFF}"
    page = upload(submitter, mail.encode(), boots="many").content.decode()
    head = page.partition("<textarea")[0]
    assert "<script>alert" not in page
    assert "<img src=x>" not in page
    assert not {"\x1b", "\u202e"} & set(head)
