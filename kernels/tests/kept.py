# SPDX-License-Identifier: GPL-2.0-or-later
"""Folders that outlast a test run, for programs that are kept under a hash of all they are made from."""

import os
from pathlib import Path

# As the test run began: single tests set it again.
_ROOT = Path(os.environ["KPERFLAB_HOME"])


def kept(name: str) -> Path:
    """Return a folder of the tests' state root."""
    folder = _ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def begin_with_programs(home: Path) -> Path:
    """Give a new lab what earlier runs compiled for guests; return its home."""
    for name in ("programs", "initramfs"):
        (home / name).symlink_to(kept(name))
    return home
