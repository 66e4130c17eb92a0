# SPDX-License-Identifier: GPL-2.0-or-later
"""Experiments that are never deleted, and pages of files that the retention policy removed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from lab.models import Build, Experiment, Run
from web.tests.conftest import Page

REMOVED = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture(autouse=True)
def empty_home(settings: Any, tmp_path: Path) -> None:
    settings.HOME = tmp_path


def remove_files() -> None:
    Run.objects.update(console="runs/1-1/console.log", expired_at=REMOVED)
    key = "ab" * 32
    Build.objects.update(
        artifact_key=key, log=f"artifacts/{key}/build.log", state="built", expired_at=REMOVED
    )


def test_an_operator_keeps_an_experiment_and_lets_go_of_it(
    compared: Experiment, operator: Client, page: Page
) -> None:
    address = f"/experiments/{compared.pk}/"
    assert "Never delete" in page(address, operator)
    for kept, button in (("yes", "Allow deletion"), ("no", "Never delete")):
        assert operator.post(f"/experiments/{compared.pk}/keep", {"kept": kept}).status_code == 302
        compared.refresh_from_db()
        assert compared.kept == (kept == "yes")
        assert button in page(address, operator)


def test_others_do_not_keep_it(compared: Experiment, submitter: Client, viewer: Client) -> None:
    for client in (submitter, viewer, Client()):
        assert client.post(f"/experiments/{compared.pk}/keep", {"kept": "yes"}).status_code in (302, 403)
    compared.refresh_from_db()
    assert not compared.kept
    assert submitter.post("/experiments/999999/keep", {"kept": "yes"}).status_code == 404


def test_pages_of_removed_files_say_so_and_when(compared: Experiment, page: Page) -> None:
    remove_files()
    run, build = compared.runs.all()[0], Build.objects.all()[0]
    assert "Removed on 2026-11-22 by the retention policy." in page(f"/runs/{run.pk}/")
    assert "removed on 2026-11-22 by the retention policy" in page(f"/experiments/{compared.pk}/")
    text = page(f"/builds/{build.pk}/log")
    assert "by the retention policy. The kernel is rebuilt when an experiment needs it." in text
    assert "Build it without a lab" not in text


def test_downloads_of_removed_files_are_gone_not_unknown(compared: Experiment, client: Client) -> None:
    remove_files()
    run, build = compared.runs.all()[0], Build.objects.all()[0]
    for address in (
        f"/runs/{run.pk}/console.txt",
        f"/builds/{build.pk}/log.txt",
        f"/builds/{build.pk}/build.sh",
        f"/api/v1/runs/{run.pk}/console/",
        f"/api/v1/builds/{build.pk}/log/",
    ):
        answer = client.get(address)
        assert answer.status_code == 410, address
        assert b"removed on 2026-11-22 by the retention policy" in answer.content
