# SPDX-License-Identifier: GPL-2.0-or-later
"""A backup that older code made: restoring it gives the very lab that bringing the old one up to date gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from lab.tests.clusters import cluster
from lab.tests.labs import Lab, connecting

# Whole labs, each with a database and command lines of its own.
pytestmark = pytest.mark.service

# The oldest that this code can migrate, and one in the middle.
VERSIONS = ("0001_squashed_0028_fetch", "0033_build_steps")


@pytest.fixture(params=["sqlite", "postgresql"])
def labs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Lab, Lab]]:
    """An old lab to be, and an empty machine."""
    with ExitStack() as stack:
        urls = (
            ["", ""]
            if request.param == "sqlite"
            else [stack.enter_context(cluster()), stack.enter_context(cluster())]
        )
        homes = [tmp_path / "runs" / "old", tmp_path / "new"]
        yield Lab(homes[0], urls[0]), Lab(homes[1], urls[1])


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_restored_is_the_old_lab_brought_up_to_date(
    labs: tuple[Lab, Lab], version: str, tmp_path: Path
) -> None:
    old, new = labs
    old.run("-m", "lab.tests.oldrows", version)
    file = tmp_path / "old.zip"
    old.labctl("backup", str(file))
    output = new.labctl("restore", str(file)).stdout
    assert "restored the lab of" in output
    assert new.run("manage.py", "migrate", "--check").returncode == 0
    old.run("manage.py", "migrate", "--verbosity", "0")
    # 0030_fetch_looked_at writes the moment of the migration.
    expected, restored = old.rows(besides="looked_at"), new.rows(besides="looked_at")
    assert expected.keys() == restored.keys()
    assert [name for name in expected if expected[name] != restored[name]] == []
    assert len(restored["lab_run"]) == len(restored["lab_standing"]) == 3
    assert not [row for row in restored["lab_run"] if any(str(value).startswith("/") for value in row)]
    # Users may do what they may only with these, which grow with the tables.
    assert ("lab", "deployment") in {row[1:] for row in restored["django_content_type"]}
    numbers_go_on(new)


def test_a_table_of_newer_code_gets_its_content_type_after_those_of_the_backup(
    labs: tuple[Lab, Lab], tmp_path: Path
) -> None:
    """Over a lab that is there: what its own migrations wrote must be in nobody's way."""
    old, new = labs
    old.run("-m", "lab.tests.oldrows", VERSIONS[0])
    old.labctl("backup", str(tmp_path / "old.zip"))
    new.run("manage.py", "migrate", "--verbosity", "0")
    new.labctl("restore", str(tmp_path / "old.zip"), "--replace")
    types = [row[0] for row in new.rows()["django_content_type"]]
    assert len(types) == len(set(types))
    numbers_go_on(new)


def numbers_go_on(lab: Lab) -> None:
    """A new row of any table is numbered after those that are there."""
    if not lab.url:
        return
    with psycopg.connect(connecting(lab.url)) as postgres:
        rows = postgres.execute(
            "SELECT table_name, column_name, pg_get_serial_sequence(quote_ident(table_name), column_name)"
            " FROM information_schema.columns WHERE table_schema = 'public'"
        ).fetchall()
        numbered = [row for row in rows if row[2]]
        assert len(numbered) > 20
        for table, column, sequence in numbered:
            query = f'SELECT nextval(%s) > coalesce(max("{column}"), 0) FROM "{table}"'
            assert postgres.execute(query, (sequence,)).fetchone() == (True,), table
