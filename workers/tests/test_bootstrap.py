# SPDX-License-Identifier: GPL-2.0-or-later
"""./bootstrap after a set-up that was interrupted."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from workers.service.place import ROOT


@pytest.mark.process
def test_a_venv_whose_making_was_interrupted_is_made_whole(tmp_path: Path) -> None:
    shutil.copy(ROOT / "bootstrap", tmp_path)
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    # Python is in it from the first moment, pip last.
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True)
    # What it installs then is not to be had in an empty folder.
    done = subprocess.run([tmp_path / "bootstrap", "python"], capture_output=True, text=True, check=False)
    assert (tmp_path / ".venv/bin/pip").is_file(), done.stderr
