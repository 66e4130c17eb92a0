# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots that the metal driver refuses before it turns anything on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from workers.drivers.base import Machine
from workers.errors import MachineUnfit
from workers.tests.metalbench import Bench, metal_bench
from workers.tests.pretendmachine import PretendMachine

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bench(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return metal_bench(tmp_path, settings, monkeypatch)


def asks_for_nothing(machine: PretendMachine) -> None:
    raise AssertionError("it was turned on")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"machine": Machine(1, 512, "tcg", "instructions")}, "no physical machine has an instruction clock"),
        ({"access": {"mac": "x"}}, r"target metal-1: access\."),
        ({"cmdline": "x" * 2000}, "too long"),
        ({"target": "metal-2"}, 'no target "metal-2"'),
    ],
)
def test_what_no_machine_can_do_is_refused_before_anything_is_turned_on(
    bench: Bench, change: dict[str, Any], said: str
) -> None:
    machine = PretendMachine(asks_for_nothing)
    with (
        pytest.raises(MachineUnfit, match=said),
        bench.driver(machine).boot(replace(bench.request, **change)),
    ):
        pass
    assert machine.done == []


def test_a_lab_that_no_machine_can_reach_is_refused_before_anything_is_turned_on(
    bench: Bench, settings: Any
) -> None:
    settings.NETBOOT_URL = "http://127.0.0.1:8000"
    machine = PretendMachine(asks_for_nothing)
    with pytest.raises(MachineUnfit, match="KPERFLAB_NETBOOT_URL"), bench.driver(machine).boot(bench.request):
        pass
    assert machine.done == []
