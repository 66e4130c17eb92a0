# SPDX-License-Identifier: GPL-2.0-or-later
"""The moment of a backup: rows are read in one transaction, which does not outlast them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from lab.operations.backup import make


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_while_files_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: Any) -> int:
        looked.append(connection.in_atomic_block)
        return 0

    looked: list[bool] = []
    monkeypatch.setattr(make, "_add_files", look)
    make.back_up(tmp_path / "lab.zip", files="all", say=lambda line: None)
    # PostgreSQL would end it after a minute, and with it the backup.
    assert looked == [False]
