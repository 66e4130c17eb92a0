# SPDX-License-Identifier: GPL-2.0-or-later
"""The contention clock's model beside hardware: which experiments are put side by side, and what is shown of them.

No test machine has KVM: the boots are recorded as workers record them, with the environment of a machine that has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoDbBlocker

from lab.comparisons.compare import compare_experiment
from lab.comparisons.exports.formats import REPORT_FORMS
from lab.comparisons.page import comparison_data
from lab.comparisons.shape import ModelAndMachineData
from lab.models import Experiment, Switch
from lab.models.states import ExperimentState, Role
from lab.tests.factories import (
    finish_builds,
    finish_run,
    make_case,
    make_experiment,
    make_run,
    make_twin,
    make_variant,
)
from lab.tests.file_rows import rows_of_a_file
from workloads.contention import metrics

pytestmark = pytest.mark.django_db
XEON = "Intel(R) Xeon(R) Gold 6242"
MODEL = {"cpus": [1, 20], "machine": "one-socket", "threads": 20, "rounds": 1, "most": 64}
MEASURED = {"threads": 20, "rounds": 10, "most": 64}


def recorded(
    clock: str,
    params: dict[str, Any],
    ratio: float,
    *,
    metric: str,
    environment: dict[str, Any] | None = None,
    tree: str = "p" * 40,
    config: str = "",
    **fields: Any,
) -> Experiment:
    """An experiment of a base and one patch whose boots were recorded by the path that workers use."""
    experiment = make_experiment(clock=clock, boots=6, name=f"{clock} experiment", **fields)
    base = make_variant(experiment, tree_id="t" * 40)
    patched = make_variant(experiment, "p", tree_id=tree)
    if config:
        Switch.objects.create(experiment=experiment, position=0, name="p", kind="config", text=config)
    shown = {"name": metric, "unit": "ns", "better": "lower", "margin": 0.02, "primary": True}
    case = make_case(experiment, params=params, metrics=[shown])
    again = make_twin(experiment)
    for block in range(6):
        for variant in (base, patched, again):
            make_run(variant, case, block=block)
    finish_builds(experiment)
    for run in experiment.runs.order_by("position"):
        value = 100.0 + run.block % 3
        value *= ratio if run.variant.role == Role.CANDIDATE else 1
        finish_run(run, {metric: [value, value]}, environment=environment or {})
    compare_experiment(experiment.pk)
    Experiment.objects.filter(pk=experiment.pk).update(state=ExperimentState.DONE)
    experiment.refresh_from_db()
    return experiment


def hardware(accelerator: str = "kvm", cpus: int = 20) -> dict[str, Any]:
    return {
        "guest": {"cpus": cpus, "cpu_model": XEON},
        "host": {"accelerator": accelerator},
        "machine": {"accelerator": accelerator, "vcpus": cpus},
    }


def modelled(ratio: float = 0.64, params: dict[str, Any] | None = None, **fields: Any) -> Experiment:
    metric = f"{metrics('open')[0].name}_20"
    return recorded("contention", params or MODEL, ratio, metric=metric, **fields)


def measured(ratio: float = 0.59, params: dict[str, Any] | None = None, **fields: Any) -> Experiment:
    given = {"environment": hardware()} | fields
    return recorded("wall", params or MEASURED, ratio, metric="ns_per_open", **given)


@pytest.fixture(scope="module")
def modelled_once(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Experiment]:
    with rows_of_a_file(django_db_blocker):
        yield modelled()


@pytest.fixture
def model(modelled_once: Experiment) -> Experiment:
    return Experiment.objects.get(pk=modelled_once.pk)


def tables(experiment: Experiment) -> list[ModelAndMachineData]:
    return comparison_data(experiment.pk)["cases"][0]["models_and_machines"]


def test_either_experiment_shows_the_model_beside_the_machine_that_ran_the_same_kernels(
    model: Experiment,
) -> None:
    machine = measured()
    (table,) = tables(model)
    assert tables(machine) == [table]
    assert table["cpus"] == 20
    assert (table["model"]["experiment"], table["model"]["machine"]) == (model.pk, "one-socket")
    assert (table["machine"]["experiment"], table["machine"]["machine"]) == (machine.pk, f"{XEON} under KVM")
    assert (table["model"]["metric"], table["machine"]["metric"]) == ("cycles_per_open_20", "ns_per_open")
    (row,) = table["rows"]
    assert row["variant"] == "p"
    assert row["model"]["ratio"] == pytest.approx(0.64)
    assert row["machine"]["ratio"] == pytest.approx(0.59)
    assert row["model"]["low"] is not None
    assert row["machine"]["high"] is not None
    assert table["different"] == ["rounds 1 in the model, 10 on the machine"]


def test_a_machine_of_its_own_counts_as_hardware(model: Experiment) -> None:
    measured(environment=hardware("none", cpus=64))
    assert tables(model)[0]["machine"]["machine"] == XEON


def test_of_several_machines_the_newest_is_shown(model: Experiment) -> None:
    measured(0.9)
    newest = measured(0.5)
    (table,) = tables(model)
    assert table["machine"]["experiment"] == newest.pk


@pytest.mark.parametrize(
    "fields",
    [
        {"environment": hardware("tcg")},
        {"environment": {}},
        {"environment": hardware(cpus=8)},
        {"environment": {**hardware(), "guest": {}}},
        {"environment": {**hardware(), "guest": {"cpus": "20"}}},
        {"params": {**MEASURED, "threads": 16}},
        {"params": {**MEASURED, "directory": "/sys/elsewhere"}},
        {"params": {"rounds": 10}},
        {"tree": "q" * 40},
        {"config": "CONFIG_X=y\n"},
        {"base_tree_id": "u" * 40},
    ],
    ids=[
        "an emulated guest", "nothing recorded", "fewer CPUs than threads", "unknown CPUs", "damaged record",
        "other CPUs", "other work", "unknown threads", "another patch", "another config", "another base",
    ],
)  # fmt: skip
def test_nothing_is_put_beside_what_is_not_the_same(model: Experiment, fields: dict[str, Any]) -> None:
    machine = measured(**fields)
    assert (tables(model), tables(machine)) == ([], [])


def test_an_experiment_that_goes_on_is_put_beside_nothing(model: Experiment) -> None:
    machine = measured()
    Experiment.objects.filter(pk=machine.pk).update(state=ExperimentState.RUNNING)
    assert (tables(model), tables(machine)) == ([], [])


def test_a_page_the_json_and_markdown_show_both_changes(model: Experiment, client: Client) -> None:
    machine = measured()
    text = client.get(f"/experiments/{model.pk}/comparison/").content.decode().replace("\xa0", " ")
    assert "The model and the machine at 20 CPUs" in text
    assert f'<a href="/experiments/{machine.pk}/comparison/">Machine</a>' in text
    assert "−36.0 %" in text
    assert "−41.0 %" in text
    assert "The cases differ: rounds 1 in the model, 10 on the machine." in text
    markdown = REPORT_FORMS["markdown"].write(model.pk)
    assert isinstance(markdown, str)
    line = next(line for line in markdown.splitlines() if "model" in line and "machine" in line)
    assert line.startswith("- p: model -36.0%")
    assert "machine -41.0%" in line
    assert " at 20 CPUs" in line
    told = json.loads(REPORT_FORMS["json"].write(model.pk))
    assert told["cases"][0]["models_and_machines"][0]["cpus"] == 20
