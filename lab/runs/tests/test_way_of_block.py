# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots that are compared go into their kernels the same way, or say so and are taken again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from lab.models import Run, Target
from lab.runs.work_orders import run_order
from lab.tests.factories import finish_run, make_build, make_case, make_experiment, make_run, make_variant

pytestmark = pytest.mark.django_db


@pytest.fixture
def boot() -> Callable[..., Run]:
    """Queues a boot of one more variant."""
    target = Target.objects.create(name="metal-1", driver="metal")
    experiment = make_experiment(target=target, boots=3)
    build = make_build("metal", state="built", artifact_key="a" * 64, release="6.1.0")
    case, numbers = make_case(experiment), count()
    # The experiment goes on whatever ends.
    make_run(make_variant(experiment, build=build, state="ready"), case, block=9)

    def queued(**fields: Any) -> Run:
        variant = make_variant(experiment, f"p{next(numbers)}", build=build, state="ready")
        return make_run(variant, case, **fields)

    return queued


def went(run: Run, way: str | None, asked: str = "", **fields: Any) -> None:
    host = {"way": way, **({"way_of_block": asked} if asked else {})} if way else {}
    finish_run(run, {"ns_per_open": [1.0]}, environment={"host": host}, **fields)


def test_the_first_boot_of_a_block_is_free_and_the_others_follow_it(boot: Callable[..., Run]) -> None:
    first, second, third = (boot() for _ in range(3))
    assert run_order(first.pk).way is None
    went(first, "power")
    assert run_order(second.pk).way == "power"
    went(second, "power", "power")
    assert run_order(third.pk).way == "power"


def test_blocks_and_purposes_are_apart(boot: Callable[..., Run]) -> None:
    went(boot(), "power")
    assert run_order(boot(block=1).pk).way is None
    assert run_order(boot(purpose="profiled").pk).way is None


def test_a_boot_that_does_not_count_binds_nobody(boot: Callable[..., Run]) -> None:
    went(boot(), "kexec", findings=({"kind": "oops", "title": "an oops"},))
    went(boot(), "kexec", outcome="panicked", blame="kernel")
    assert run_order(boot().pk).way is None


def test_drivers_with_one_way_say_none(boot: Callable[..., Run]) -> None:
    went(boot(), None)
    assert run_order(boot().pk).way is None


def test_a_boot_by_power_in_a_block_by_kexec_does_not_count_and_is_taken_again_by_kexec(
    boot: Callable[..., Run],
) -> None:
    went(boot(), "kexec")
    other = boot()
    went(other, "power", "kexec")
    other.refresh_from_db()
    assert other.invalid == ["it was booted by power, the other boots of its block by kexec"]
    again = Run.objects.get(retake=1)
    assert (again.block, run_order(again.pk).way) == (0, "kexec")
