# SPDX-License-Identifier: GPL-2.0-or-later
"""A standing experiment over a real repository."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lab.models import Standing, User
from lab.standing.changes import StandingFields, make_standing
from lab.standing.new_revisions import LookOutcome, look
from lab.tests.factories import make_user
from lab.tests.tiny_tree import git, make_tiny_tree

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
SECRET = "a secret of enough characters"


@pytest.fixture
def charlie() -> User:
    return make_user("charlie", User.Role.OPERATOR)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return make_tiny_tree(tmp_path / "linux")


@pytest.fixture
def commit(work: Path) -> Callable[[str], str]:
    """Commit a change to the branch main; returns its id."""

    def make(subject: str) -> str:
        (work / "fs" / "inode.c").write_text(f"/* {subject} */\n" + (work / "fs" / "inode.c").read_text())
        git(work, "commit", "-q", "-a", "-m", subject)
        return git(work, "rev-parse", "HEAD").strip()

    return make


@pytest.fixture
def fields(work: Path) -> Callable[..., StandingFields]:
    def make(**more: Any) -> StandingFields:
        spec = {
            "name": "x",
            "git": str(work),
            "base": "v6.1",
            "cases": [{"workload": "showgids", "preset": "smoke"}],
            "measure": {"boots": 3},
        }
        defaults: dict[str, Any] = {"name": "nightly", "spec": spec, "branch": "main", "secret": SECRET}
        return StandingFields(**(defaults | more))

    return make


@pytest.fixture
def standing(charlie: User, fields: Callable[..., StandingFields]) -> Standing:
    return make_standing(by=charlie, fields=fields())


@pytest.fixture
def looked(standing: Standing, home: Path) -> Callable[..., LookOutcome]:
    def once(now: datetime = NOON) -> LookOutcome:
        outcome = look(standing_id=standing.pk, now=now, home=home)
        assert outcome is not None
        standing.refresh_from_db()
        assert standing.problem == outcome.problem
        return outcome

    return once
