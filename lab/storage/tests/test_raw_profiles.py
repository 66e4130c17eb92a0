# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw perf.data: under its hash, once."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lab.errors import UnknownRow
from lab.storage.raw_profiles import keep_raw, raw_path


def test_a_file_is_kept_under_the_hash_of_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(b"PERFILE2")
    sha256 = keep_raw(tmp_path, file)
    assert sha256 == hashlib.sha256(b"PERFILE2").hexdigest()
    assert raw_path(tmp_path, sha256).samefile(file)


def test_equal_files_are_stored_once_and_keeping_again_changes_nothing(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for file in (first, second):
        file.write_bytes(b"same")
        keep_raw(tmp_path, file)
    sha256 = keep_raw(tmp_path, second)
    assert first.samefile(second)
    assert [path.name for path in raw_path(tmp_path, sha256).parent.iterdir()] == [sha256]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2", "profiles"]


def test_a_beginning_that_a_full_disk_left_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(b"whole")
    kept = raw_path(tmp_path, hashlib.sha256(b"whole").hexdigest())
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"who")
    assert raw_path(tmp_path, keep_raw(tmp_path, file)).read_bytes() == b"whole"


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "AB" * 32, "ab" * 31])
def test_what_is_no_hash_has_no_place(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownRow):
        raw_path(tmp_path, name)
