# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import pytest

from workloads.guest.tuning import Tuning, untuned

ALL = Tuning(
    governor="performance", turbo=False, smt=False, isolcpus="1-3", irq_affinity="0", hugepages="never"
)
AS_ASKED = {
    "governor": "performance",
    "turbo": "off",
    "smt": "off",
    "isolcpus": "1-3",
    "irq_affinity": "0",
    "hugepages": "never",
}


def test_the_command_line_asks_kernel_and_agent() -> None:
    assert ALL.cmdline() == (
        "isolcpus=domain,managed_irq,1-3 irqaffinity=0 kperflab.governor=performance kperflab.turbo=off "
        "kperflab.smt=off kperflab.irq_affinity=0 kperflab.hugepages=never"
    )
    assert Tuning().cmdline() == ""


def test_a_machine_as_it_was_asked_to_be_is_tuned() -> None:
    assert untuned(ALL.asked(), AS_ASKED) == []
    assert untuned(Tuning().asked(), {}) == []


@pytest.mark.parametrize(
    ("name", "found", "line"),
    [
        ("governor", "schedutil", "governor: asked performance, is schedutil"),
        # One CPU of many is enough.
        ("governor", "performance;powersave", "governor: asked performance, is performance;powersave"),
        ("governor", "", "governor: asked performance, is unknown to its kernel"),
        ("turbo", "on", "turbo: asked off, is on"),
        ("turbo", "", "turbo: asked off, is unknown to its kernel"),
        ("smt", "on", "smt: asked off, is on"),
        ("isolcpus", "1-2", "isolcpus: asked 1-3, is 1-2"),
        ("isolcpus", "1-²", "isolcpus: asked 1-3, is 1-²"),
        ("irq_affinity", "0-3", "irq_affinity: asked 0, is 0-3"),
        ("hugepages", "madvise", "hugepages: asked never, is madvise"),
    ],
)
def test_what_is_not_as_asked_is_a_line(name: str, found: str, line: str) -> None:
    assert untuned(ALL.asked(), AS_ASKED | {name: found}) == [line]


def test_the_same_cpus_written_otherwise_are_the_same() -> None:
    assert untuned({"isolcpus": "1,2,3,7"}, {"isolcpus": "1-3,7"}) == []
    assert untuned({"smt": "off"}, {"smt": ""}) == [], "a machine without siblings has none on"


def test_what_a_machine_says_is_bounded_and_need_not_make_sense() -> None:
    assert untuned({"isolcpus": "1"}, {"isolcpus": "1-99999999999"}) == [
        "isolcpus: asked 1, is 1-99999999999"
    ]
    (line,) = untuned({"governor": "x"}, {"governor": "y" * 5000})
    assert len(line) < 100
