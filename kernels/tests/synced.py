# SPDX-License-Identifier: GPL-2.0-or-later
"""Record which files are written out to the disk, where a power cut leaves them."""

from __future__ import annotations

import os

import pytest


def inodes_synced(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Return the inodes whose bytes are written out from here on; more are added as it happens."""
    inodes: set[int] = set()
    sync = os.fsync

    def noted(descriptor: int) -> None:
        inodes.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr("os.fsync", noted)
    return inodes
