# SPDX-License-Identifier: GPL-2.0-or-later
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from psycopg.adapt import Loader
from psycopg.pq import Format

from lab.apps import _read_moments
from lab.postgres_moments import MomentLoader


class Asked:
    """A connection that notes the readers it is given."""

    def __init__(self, vendor: str) -> None:
        self.vendor, self.connection, self.adapters = vendor, self, self
        self.readers: dict[str, type[Loader]] = {}

    def register_loader(self, name: str, reader: type[Loader]) -> None:
        self.readers[name] = reader


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("2026-11-26 23:50:13+00", 0),
        ("2026-11-26 23:50:13.5+00", 500_000),
        ("2026-11-26 23:50:13.000001+00", 1),
    ],
)
def test_a_moment_is_read_in_utc_to_the_microsecond(text: str, microseconds: int) -> None:
    moment = MomentLoader(1184).load(text.encode())
    assert moment == datetime(2026, 11, 26, 23, 50, 13, microseconds, UTC)
    assert moment.utcoffset() == timedelta(0)


def test_what_is_no_moment_is_an_error() -> None:
    with pytest.raises(ValueError, match="infinity"):
        MomentLoader(1184).load(b"infinity")


def test_connections_to_postgresql_read_moments_so() -> None:
    postgres, sqlite = Asked("postgresql"), Asked("sqlite")
    for asked in (postgres, sqlite):
        _read_moments(asked)
    assert postgres.readers == {"timestamptz": MomentLoader}
    assert sqlite.readers == {}


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no moments: Django reads its text")
def test_rows_have_their_moments_in_utc_whatever_zone_they_were_written_in() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT timestamptz '2026-11-26 23:50:13.5+02', now()")
        written, now = cursor.fetchone()
        assert cursor.connection.adapters.get_loader(1184, Format.TEXT) is MomentLoader
    assert written == datetime(2026, 11, 26, 21, 50, 13, 500_000, UTC)
    assert abs(now - datetime.now(UTC)) < timedelta(minutes=5)
