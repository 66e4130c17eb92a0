# SPDX-License-Identifier: GPL-2.0-or-later
"""The end of a kernel's release, as the linker sees it."""

import subprocess
from pathlib import Path

import pytest

from kernels.builds.request import local_version

pytestmark = pytest.mark.process

SOURCE = """
const char *const release = "6.1.192{end}";
const char *const ends[] = {{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f", "fd", "0a", "cq", "8021q"}};
const char *const others[] = {{"sse4a", "cloud", "0x0", "half"}};
"""


def _linked(folder: Path, key: str) -> bytes:
    """Return what is linked of strings and a release, the release blanked."""
    end = local_version(key)
    (folder / "a.c").write_text(SOURCE.format(end=end))
    subprocess.run(["gcc", "-O2", "-c", "a.c"], cwd=folder, check=True)
    subprocess.run(["ld", "-O2", "-e", "0", "-o", "a.out", "a.o"], cwd=folder, check=True)
    return (folder / "a.out").read_bytes().replace(end.encode(), b"-" * len(end))


def test_no_string_of_a_kernel_moves_into_its_release(tmp_path: Path) -> None:
    keys = [digit * 12 for digit in "059af"] + [
        "a2e35d08aa59",
        "1b8b2c4d0c4a",
        "00000000000a",
        "6fc0000000fd",
        "a9b2033a5e3c",
        "a9b203338021",
    ]
    assert len({_linked(tmp_path, key) for key in keys}) == 1
