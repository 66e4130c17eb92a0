# SPDX-License-Identifier: GPL-2.0-or-later
"""Sources go into the store wherever this machine keeps its trees and its temporary files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from kernels.tests.pretend import PretendKernel
from lab.submission.shared_sources import name_in_store, share_sources
from lab.submission.sources import Source
from lab.tests.stores import directory_store


@pytest.mark.process
def test_trees_and_temporary_files_may_be_on_different_disks(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = directory_store(settings, tmp_path / "store")
    kernel = PretendKernel(tmp_path)
    changed = kernel.edited("fs/inode.c", "i_ino == ino", "i_ino == ino + 1")
    source = Source("pretend", "git", str(kernel.work))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        monkeypatch.setattr(tempfile, "tempdir", elsewhere)
        share_sources(kernel.tree, source, kernel.base, [changed.commit], lambda _line: None)
    assert store.has(name_in_store(changed.commit))
    assert store.has(name_in_store(kernel.base.commit))
    assert list((kernel.tree.repository.parent / ".bundles").iterdir()) == []
