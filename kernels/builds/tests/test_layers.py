# SPDX-License-Identifier: GPL-2.0-or-later
"""Layers and sources of builds: what a clock that was set back, another build or a power cut must not spoil."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kernels.builds.builder import Builder, Limits
from kernels.builds.structures import FinishedBuild
from kernels.tests.pretend import PretendKernel

pytestmark = pytest.mark.process


def test_a_clock_that_was_set_back_during_the_base_hides_no_change(
    pretend: PretendKernel, tmp_path: Path
) -> None:
    """Then some of its objects are newer than what any later build writes."""

    def set_back(built: FinishedBuild) -> None:
        if built.objects.upper is None:
            tomorrow = time.time() + 86400
            os.utime(built.objects.lower / "fs/buffer.o", (tomorrow, tomorrow))

    builder = Builder(tmp_path, Limits(seconds=30, memory=1 << 30, cores=2), on_built=set_back)
    builder.build(pretend.request())
    lines: list[str] = []
    revision = pretend.edited("fs/buffer.c", "block * 3", "block * 41")
    builder.build(pretend.request(revision), on_line=lines.append)
    assert "  CC      fs/buffer.o" in lines
