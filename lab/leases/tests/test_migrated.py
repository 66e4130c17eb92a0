# SPDX-License-Identifier: GPL-2.0-or-later
"""A database of before: one with all replaced migrations goes on, an older one is refused unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.leases.version import replaced_migrations, too_old
from lab.tests.labs import Lab
from lab.tests.template_database import begin_with_template

FIRST = "0001_squashed_0028_fetch"
RECORD = (
    "import django; django.setup(); from django.db import connection\n"
    "from django.db.migrations.recorder import MigrationRecorder\n"
    "recorder = MigrationRecorder(connection)\n"
)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab on SQLite, with its tables."""
    begin_with_template(tmp_path / "lab")
    made = Lab(tmp_path / "lab", "")
    made.run("manage.py", "migrate", "--verbosity", "0")
    return made


@pytest.mark.process
def test_a_database_that_the_replaced_migrations_made_is_migrated(lab: Lab) -> None:
    lab.run("-c", f"{RECORD}recorder.record_unapplied('lab', '{FIRST}')")
    lab.run("manage.py", "migrate", "--verbosity", "0")
    assert lab.run("manage.py", "migrate", "--check").returncode == 0


@pytest.mark.process
def test_a_database_without_some_of_them_is_refused_unchanged(lab: Lab, tmp_path: Path) -> None:
    lab.run(
        "-c",
        f"{RECORD}[recorder.record_unapplied('lab', name) for name in "
        f"('{FIRST}', '0027_switch_notes', '0028_fetch', '0036_step_decisions')]",
    )
    before = lab.rows()
    why = "without lab.0027_switch_notes: run manage.py migrate with the code of commit b6b374f first"
    refused = lab.run("manage.py", "migrate", ok=False)
    assert f"the database is of older code, {why}" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert lab.rows() == before
    file = tmp_path / "old.zip"
    lab.labctl("backup", str(file))
    restored = lab.labctl("restore", str(file), "--replace", ok=False)
    assert f"is of older code, {why}, where the backup was made" in restored.stderr
    assert lab.rows() == before


def test_an_empty_database_is_not_too_old() -> None:
    assert len(replaced_migrations()) == 28
    assert too_old([]) == too_old(replaced_migrations().keys()) == ""
    assert "without lab.0001_initial" in too_old([("lab", "0002_guest_target")])
