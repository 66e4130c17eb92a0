# SPDX-License-Identifier: GPL-2.0-or-later
"""labctl where the service's database does not answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.service.place import ROOT


@pytest.mark.process
def test_a_database_that_does_not_answer_is_one_line_of_labctl(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "workers.labctl", "list", "--local"],
        env=os.environ
        | {
            "KPERFLAB_HOME": str(tmp_path),
            "KPERFLAB_DATABASE": f"postgres://u:hidden@%2F{tmp_path.name}/lab",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("labctl: the lab's database does not answer (")
    assert "hidden" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
