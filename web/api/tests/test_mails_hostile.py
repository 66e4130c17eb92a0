# SPDX-License-Identifier: GPL-2.0-or-later
"""Mails as strangers send them to the API: an answer that is a preview or a problem, whatever they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.fuzz.mutations import mutated_mails
from bench.fuzz.targets import corpus
from lab.models import Experiment
from lab.tests.tiny_tree import diff, make_tiny_tree
from web.api.tests.conftest import As

pytestmark = [pytest.mark.hostile, pytest.mark.process]
SEEDS = [data for _, data in corpus("mail")]
GAP = (
    f"From: A <a@example.org>\nSubject: [PATCH v2 2/3] fs: one\n\nWhy.\n---\n{diff('fs/inode.c', 10, 'one')}"
)


@pytest.fixture
def described(tmp_path: Path, settings: Any) -> dict[str, Any]:
    settings.HOME, settings.LOCAL_PATHS = tmp_path, True
    (tmp_path / "trees").mkdir()
    return {
        "name": "mails",
        "git": str(make_tiny_tree(tmp_path / "linux")),
        "base": "v6.1",
        "cases": [{"workload": "showgids", "preset": "smoke"}],
        "measure": {"boots": 3},
    }


def test_a_gap_is_a_problem_and_the_word_makes_a_preview_of_it(ask: As, described: dict[str, Any]) -> None:
    refused = ask("alice").post("experiments/preview/", described | {"series": GAP})
    assert refused.status_code == 422
    assert "version 2 has patch 2 of 3; missing: 1, 3" in refused.json()["detail"]
    preview = ask("alice").post("experiments/preview/", described | {"series": GAP, "partial": True}).json()
    (switch,) = preview["switches"]
    (patch,) = switch["patches"]
    assert (patch["version"], patch["number"], patch["total"], patch["title"]) == (2, 2, 3, "fs: one")
    assert switch["notes"] == ["missing of 3 patches, as the submitter allows: 1, 3"]
    assert not Experiment.objects.exists()


def test_a_repair_is_told_in_the_preview(ask: As, described: dict[str, Any]) -> None:
    damaged = diff("fs/inode.c", 10, "one").replace(" line 8\n", "line  8\n")
    preview = (
        ask("alice")
        .post("experiments/preview/", described | {"patches": [{"name": "one", "text": damaged}]})
        .json()
    )
    assert preview["switches"][0]["report"]


@pytest.mark.parametrize("partial", ["yes", 1, None])
def test_the_word_is_true_or_false(ask: As, described: dict[str, Any], partial: object) -> None:
    refused = ask("alice").post("experiments/preview/", described | {"series": GAP, "partial": partial})
    assert refused.status_code == 422 or refused.status_code == 400


@pytest.mark.parametrize("seed", range(10))
def test_any_mail_gives_a_preview_or_a_problem(ask: As, described: dict[str, Any], seed: int) -> None:
    (mail,) = mutated_mails([SEEDS[seed % len(SEEDS)]], 1, seed)
    answer = ask("alice").post("experiments/preview/", described | {"series": mail.decode("latin-1")})
    assert answer.status_code in (200, 400, 422)
