# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables and columns that a worker reads for an order to boot."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lab.models import Experiment, Run
from lab.runs.work_orders import run_order
from lab.tests.factories import finish_builds, make_case, make_experiment, make_grid, make_run, make_variant

pytestmark = pytest.mark.django_db


def test_an_order_to_boot_reads_neither_the_description_nor_what_was_asked_of_the_build() -> None:
    experiment = make_grid()
    finish_builds(experiment)
    run = experiment.runs.order_by("position")[0]
    with CaptureQueriesContext(connection) as statements:
        run_order(run.pk)
    sent = [statement["sql"] for statement in statements]
    assert [text for text in sent if '"spec"' in text or '"request"' in text] == []
    # To plan a join of all its tables would take PostgreSQL ten times as long as to run it.
    assert max(text.count(" JOIN ") for text in sent) <= 2


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, (False, False)),
        ({"measure": {"profile": "exact", "off_cpu": True}}, (True, True)),
        ({"measure": {"profile": "exact"}, "cases": [{"profile": True}]}, (False, False)),
        ({"measure": {"profile": True}, "cases": [{"profile": "exact"}]}, (False, True)),
    ],
)
def test_a_profiled_boot_is_told_by_its_description_how_to_profile(
    spec: dict[str, object], expected: tuple[bool, bool]
) -> None:
    experiment = make_grid()
    finish_builds(experiment)
    Experiment.objects.filter(pk=experiment.pk).update(spec=spec)
    run = experiment.runs.order_by("position")[0]
    Run.objects.filter(pk=run.pk).update(purpose="profiled")
    order = run_order(run.pk)
    assert (order.off_cpu, order.exact) == expected


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("base", "kind", "switches", "of_archive"),
    [
        ("v1", "archive", (), True),
        ("v1", "archive", ("config",), False),
        ("c" * 40, "archive", (), False),
        ("v1", "git", (), False),
    ],
)
def test_a_commit_of_somebodys_patch_as_the_base_is_not_the_archives_kernel(
    base: str, kind: str, switches: tuple[str, ...], of_archive: bool
) -> None:
    experiment = make_experiment(base_name=base)
    experiment.tree.kind = kind
    experiment.tree.save()
    run = make_run(make_variant(experiment, *switches), make_case(experiment))
    finish_builds(experiment)
    assert run_order(run.pk).of_archive is of_archive
