# SPDX-License-Identifier: GPL-2.0-or-later
"""Places of the key and the files in the last step of a restore."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lab.operations.backup import restore
from lab.operations.backup.archive import Reader


def test_runs_on_a_disk_of_their_own_are_put_there(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables are in place by then, so an error would leave a lab without its files."""
    rename = os.rename

    def between_disks(source: Any, target: Any) -> None:
        if (tmp_path / "runs" in Path(source).parents) is not (tmp_path / "runs" in Path(target).parents):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        rename(source, target)

    settings.HOME = tmp_path
    draft = tmp_path / ".restoring"
    (draft / "runs" / "1-1").mkdir(parents=True)
    (draft / "runs" / "1-1" / "console.log").write_text("of the backup")
    (tmp_path / "runs" / "1-1").mkdir(parents=True)
    (tmp_path / "runs" / "1-1" / "records.bin").write_text("of the lab before")
    monkeypatch.setattr(os, "rename", between_disks)
    restore._put_in_place(draft, cast(Reader, SimpleNamespace(pieces=lambda name: iter([b"key"]))))
    assert {path.name: path.read_text() for path in (tmp_path / "runs" / "1-1").iterdir()} == {
        "console.log": "of the backup"
    }
    assert (tmp_path / "secret.key").read_bytes() == b"key"
