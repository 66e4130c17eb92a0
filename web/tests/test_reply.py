# SPDX-License-Identifier: GPL-2.0-or-later
"""The reply to the list as a page and as text, and the comparison's forms as files."""

from __future__ import annotations

import html
import re

import pytest
from django.conf import settings
from django.test import Client

from kernels.artifacts.store import ArtifactMetadata, ArtifactStore
from lab.comparisons.exports.formats import REPORT_FORMS
from lab.models import Experiment, User
from lab.tests.factories import make_build, make_patch_switch
from web.tests.conftest import SCRIPT, Page


def mail(text: str) -> str:
    match = re.search(r"<textarea[^>]*>(.*?)</textarea>", text, re.DOTALL)
    assert match
    return html.unescape(match[1])


@pytest.fixture
def ada(client: Client, db: None) -> User:
    user = User.objects.create_user("ada", "ada@example.org", first_name="Ada", last_name="Lovelace")
    client.force_login(user)
    return user


@pytest.fixture
def compared(compared: Experiment) -> Experiment:
    """As elsewhere, with its kernels built."""
    compared.variants.exclude(state="pruned").update(state="ready")
    return compared


def test_the_reply_is_text_to_copy_with_a_link_that_leads_here(page: Page, compared: Experiment) -> None:
    text = mail(page(f"/experiments/{compared.pk}/reply/"))
    assert "ns_per_open [ns]" in text
    assert f"\nhttp://testserver/experiments/{compared.pk}/comparison/\n" in text
    assert max(len(line) for line in text.split("\n")) <= 72
    assert SCRIPT in " ".join(text.split())  # as text
    assert "Tested-by" not in text


def test_the_comparison_leads_to_the_reply_and_the_reproducer(page: Page, compared: Experiment) -> None:
    text = page(f"/experiments/{compared.pk}/comparison/")
    assert f'href="/experiments/{compared.pk}/reply/"' in text
    assert f'href="/experiments/{compared.pk}/export/reproducer"' in text


def test_who_is_signed_in_may_sign_and_nobody_else(
    page: Page, client: Client, compared: Experiment, ada: User
) -> None:
    address = f"/experiments/{compared.pk}/reply/"
    assert "Tested-by" not in mail(page(address))
    assert mail(page(f"{address}?sign=1")).endswith("\n\nTested-by: Ada Lovelace <ada@example.org>\n")
    client.logout()
    assert "Tested-by" not in mail(page(f"{address}?sign=1"))


def test_an_account_without_an_address_is_told_so(page: Page, compared: Experiment, ada: User) -> None:
    User.objects.update(email="")
    text = page(f"/experiments/{compared.pk}/reply/?sign=1")
    assert "Your account has no mail address" in text
    assert "Tested-by:" not in mail(text)


def test_an_odd_name_signs_nothing_and_is_told(page: Page, compared: Experiment, ada: User) -> None:
    User.objects.update(first_name=SCRIPT, last_name="")
    text = page(f"/experiments/{compared.pk}/reply/?sign=1")
    assert "is not a name with an address" in text
    assert "Tested-by:" not in mail(text)


def test_a_regression_is_not_signed_and_says_why(page: Page, compared: Experiment, ada: User) -> None:
    compared.comparisons.update(verdict="regression")
    text = page(f"/experiments/{compared.pk}/reply/?sign=1")
    assert "No Tested-by: p makes ns_per_open" in html.unescape(text)
    assert "Tested-by:" not in mail(text)


def test_a_reply_may_be_about_one_of_several_patches(page: Page, compared: Experiment) -> None:
    make_patch_switch(compared, "other", title="fs: other")
    address = f"/experiments/{compared.pk}/reply/"
    assert '<option value="other"' in page(address)
    assert 'measured "fs: other"' in mail(page(f"{address}?for=other"))
    wrong = page(f"{address}?for=othre")
    assert "did you mean" in wrong
    assert 'measured "kernfs' in mail(wrong)


def test_the_text_alone_is_plain_and_a_wrong_patch_one_line(client: Client, compared: Experiment) -> None:
    answer = client.get(f"/experiments/{compared.pk}/reply.txt")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content.decode().startswith("Hi,\n")
    wrong = client.get(f"/experiments/{compared.pk}/reply.txt?for=x")
    assert (wrong.status_code, wrong.content.decode().count("\n")) == (422, 1)
    assert client.get("/experiments/4711/reply.txt").status_code == 404


@pytest.mark.parametrize("form", REPORT_FORMS)
def test_every_form_is_a_file_of_its_own_type(client: Client, compared: Experiment, form: str) -> None:
    answer = client.get(f"/experiments/{compared.pk}/export/{form}")
    made = REPORT_FORMS[form]
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, made.media_type)
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{made.file_name(compared.pk)}"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_form_there_is_not_is_not_found(client: Client, compared: Experiment) -> None:
    assert client.get(f"/experiments/{compared.pk}/export/pdf").status_code == 404
    assert client.get("/experiments/4711/export/json").status_code == 404


@pytest.mark.process
def test_a_kernel_can_be_built_without_a_lab_while_its_artifact_is_there(client: Client, db: None) -> None:
    build = make_build("x", state="built", artifact_key="e" * 64)
    address = f"/builds/{build.pk}/build.sh"
    store = ArtifactStore(settings.HOME / "artifacts")
    store.remove("e" * 64)
    assert client.get(address).status_code == 404
    draft = settings.HOME / "artifacts" / ".draft-script"
    draft.mkdir(parents=True)
    (draft / "reproducer.sh").write_text("#!/bin/sh\n")
    metadata = ArtifactMetadata("6.1", "t", "c", "t", "b", "0", "gcc", "i", "h", 1.0, 1.0, "", "2026-11-20")
    store.add("e" * 64, draft, metadata)
    answer = client.get(address)
    assert b"".join(answer.streaming_content) == b"#!/bin/sh\n"  # type: ignore[attr-defined]
    assert address in client.get(f"/builds/{build.pk}/log").content.decode()
