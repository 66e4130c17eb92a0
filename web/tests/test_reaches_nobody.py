# SPDX-License-Identifier: GPL-2.0-or-later
"""No page and no answer of the API waits for another host: whatever needs one is left to a worker.

That no route does so by any method is seen where all are requested, in test_access.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from pytest_django import DjangoDbBlocker

from lab.models import Experiment, Fetch, Standing, Tree
from web.tests.access import STRANGE, Lab, lab_of_a_file, refuse_other_hosts
from web.tests.test_submission import FILLED

pytestmark = [pytest.mark.hostile, pytest.mark.django_db]
CASES = [{"workload": "showgids", "preset": "smoke"}]


@pytest.fixture(scope="module")
def lab(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    with lab_of_a_file(django_db_blocker, tmp_path_factory.mktemp("lab")) as filled:
        yield filled


@pytest.fixture(autouse=True)
def trees_at_hand() -> None:
    """Here trees are what they are."""


@pytest.fixture(autouse=True)
def reached(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> list[str]:
    """Record the addresses that a request tries to reach; refuse them."""
    settings.API_RATES = dict.fromkeys(settings.API_RATES, "1000000/min")
    settings.HOME = tmp_path / "home"
    (tmp_path / "home" / "trees").mkdir(parents=True)
    cache.clear()
    return refuse_other_hosts(monkeypatch)


@pytest.mark.parametrize("way", ["preview", "submit", "toml", "branch", "lore", "rerun", "tree"])
def test_no_page_of_a_submission_reaches_another_host(reached: list[str], lab: Lab, way: str) -> None:
    client = lab.clients["operator"]
    form = {**FILLED, "params-showgids": "", "tree": "", "git": STRANGE}
    if way == "toml":
        form = {
            "toml": f'name = "x"\ngit = "{STRANGE}"\n[[cases]]\nworkload = "showgids"\npreset = "smoke"\n'
        }
    elif way == "branch":
        form |= {"branch": "work", "branch_git": STRANGE}
    elif way == "lore":
        form |= {"lore": "20260101.1234@example.org"}
    elif way == "tree":
        Tree.objects.create(name="theirs", kind="git", location=STRANGE)
        form |= {"git": "", "tree": "theirs"}
    if way == "rerun":
        number = str(lab.values["experiment_id"])
        spec = {"name": "x", "git": STRANGE, "cases": CASES}
        Experiment.objects.filter(pk=number).update(state="done", spec=spec)
        answer = client.post(f"/experiments/{number}/rerun")
    else:
        answer = client.post("/experiments/new", form | ({"preview": "1"} if way == "preview" else {}))
    assert answer.status_code == 302, answer.content.decode()[:3000]
    assert answer.headers["Location"].startswith("/fetches/")
    assert reached == []


@pytest.mark.parametrize("path", ["experiments/", "experiments/preview/", "standing/"])
def test_no_request_of_the_api_reaches_another_host(reached: list[str], lab: Lab, path: str) -> None:
    spec = {"name": "x", "git": STRANGE, "cases": CASES}
    body = {"name": "theirs", "spec": spec, "branch": "main"} if path == "standing/" else spec
    client, before = lab.clients["owner"], Fetch.objects.count()
    answer = client.post(f"/api/v1/{path}", json.dumps(body), "application/json")
    assert answer.status_code == (201 if path == "standing/" else 202), answer.content
    assert Fetch.objects.count() - before == (path != "standing/")
    assert Standing.objects.filter(name="theirs").exists() == (path == "standing/")
    assert reached == []
