# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker makes each driver when it is first asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.bench import MAKERS, Drivers
from workers.drivers.fake import FakeDriver
from workers.drivers.fake_guest import play


def test_a_driver_is_made_once_and_only_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def make(home: Path) -> FakeDriver:
        made.append(home)
        return FakeDriver(play)

    monkeypatch.setitem(MAKERS, "fake", make)
    drivers = Drivers(tmp_path)
    assert made == []
    assert drivers["fake"] is drivers["fake"]
    assert made == [tmp_path]
