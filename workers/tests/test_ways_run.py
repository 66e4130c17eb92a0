# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots of a block go one way through the whole path: asked of the driver, recorded, and judged by a gate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.models import Run
from workers.drivers.base import BootRequest, Way
from workers.drivers.fake import Script
from workers.tests.conftest import FakeLab, opens

pytestmark = [pytest.mark.django_db, pytest.mark.process]


def test_a_block_goes_the_way_of_its_first_boot_and_one_that_could_not_is_taken_again(
    fake_lab: FakeLab,
) -> None:
    asked: list[Way | None] = []

    def script_for(request: BootRequest) -> Script:
        """As a machine does that is off at first, and refuses one kexec in its second block."""
        asked.append(request.way)
        refuses = asked.count("kexec") == 1 and request.way == "kexec"
        way: Way = "power" if len(asked) == 1 or refuses else request.way or "kexec"
        extra = {"way_of_block": request.way} if request.way else {}
        return replace(opens(1000.0), host={"way": way, **extra})

    fake_lab.scripts[""] = script_for
    fake_lab.run(fake_lab.spec({}, measure={"boots": 2, "iterations": 2, "warmup": 1}))
    assert asked == [None, "power", None, "kexec", "kexec"]
    runs = Run.objects.filter(purpose="measured").order_by("position")
    assert [(run.block, run.retake, bool(run.invalid)) for run in runs] == [
        (0, 0, False),
        (0, 0, False),
        (1, 0, False),
        (1, 0, True),
        (1, 1, False),
    ]
    (left_out,) = [run for run in runs if run.invalid]
    assert left_out.invalid == ["it was booted by power, the other boots of its block by kexec"]
