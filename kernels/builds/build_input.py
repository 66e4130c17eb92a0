# SPDX-License-Identifier: GPL-2.0-or-later
"""Write what a build is given besides sources and objects: the resolved config, and the sources of external modules."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from kernels.builds.layers import hand_over, own_directory
from kernels.builds.request import ModuleSource


def write_config(text: str, folder: Path, stamp: float) -> None:
    """Write the config into the directory of objects. stamp: its time, see newer_than."""
    path = folder / ".config"
    path.write_text(text)
    path.chmod(0o644)
    os.utime(path, (stamp, stamp))
    hand_over(path)


def write_modules(modules: Iterable[ModuleSource], folder: Path) -> None:
    """Write each module's files into a directory of its own below a new folder."""
    own_directory(folder)
    for module in modules:
        own_directory(folder / module.name)
        for name, data in module.files.items():
            (folder / module.name / name).write_bytes(data)
            (folder / module.name / name).chmod(0o644)
