# SPDX-License-Identifier: GPL-2.0-or-later
"""Without git, the error names the package that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.errors import HostUnfit
from kernels.trees import git


@pytest.mark.process
def test_without_git_the_error_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "git_command", lambda *words: [str(tmp_path / "absent"), *words])
    with pytest.raises(HostUnfit, match="git is not installed: apt-get install git"):
        git.run_git(tmp_path, "version")
