# SPDX-License-Identifier: GPL-2.0-or-later
"""Idempotency keys of submissions whose tree a worker has to fetch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.errors import NeedsWorker
from lab.experiments.spec import ExperimentSpec
from lab.models import Experiment, User
from lab.tests.fetchers import fetch_all
from lab.tests.tiny_tree import diff, make_tiny_tree
from web.api.tests.conftest import As

pytestmark = pytest.mark.process


@pytest.fixture
def described(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A description whose tree only workers may read."""

    def needs_worker(spec: ExperimentSpec, by: User) -> None:
        raise NeedsWorker("the tree is fetched by git")

    monkeypatch.setattr("lab.submission.web_process.check_here", needs_worker)
    settings.HOME, settings.LOCAL_PATHS = tmp_path, True
    (tmp_path / "trees").mkdir()
    return {
        "name": "over REST",
        "git": str(make_tiny_tree(tmp_path / "linux")),
        "base": "v6.1",
        "patches": [{"name": "one", "text": diff("fs/inode.c", 10, "one")}],
        "cases": [{"workload": "showgids", "preset": "smoke"}],
        "measure": {"boots": 3},
    }


def test_two_keys_are_two_experiments_although_the_first_is_still_fetched(
    ask: As, described: dict[str, Any]
) -> None:
    alice = ask("alice")
    for key in ("k1", "k2", "k2"):
        assert alice.post("experiments/", described, Idempotency_Key=key).status_code == 202
    fetch_all()
    assert Experiment.objects.count() == 2
    again = [alice.post("experiments/", described, Idempotency_Key=key) for key in ("k1", "k2", "k2")]
    assert [answer.status_code for answer in again] == [200, 200, 200]
    first, *others = [answer.json()["id"] for answer in again]
    assert others[0] == others[1] != first
