# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl lab expire`: what it says of each kind of thing that a lab keeps."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from lab.operations.retention import Expiry
from lab.storage.inventory import KINDS, InventoryItem
from lab.tests.stores import directory_store
from workers import labctl
from workers.ctl import expirectl

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_what_builders_compiled_for_each_other_has_a_line(
    options: tuple[str, ...],
    tmp_path: Path,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings.HOME = tmp_path / "home"
    store = directory_store(settings, tmp_path / "store")
    store.put(f"compiled/{'a' * 64}", b"a pack")
    os.utime(tmp_path / "store" / "compiled" / ("a" * 64), (time.time() - 100 * 24 * 3600,) * 2)
    monkeypatch.setattr("sys.argv", ["labctl", "lab", "expire", *options])
    with pytest.raises(SystemExit) as ended:
        labctl.main()
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert "compiled files" in printed
    assert "1 items" in printed


def test_every_kind_has_a_name() -> None:
    expirectl._show(Expiry((), tuple(InventoryItem(kind, "1") for kind in KINDS), None), ())
