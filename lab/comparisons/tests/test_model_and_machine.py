# SPDX-License-Identifier: GPL-2.0-or-later
"""The contention clock's model beside hardware: which experiments are put side by side, and what is shown of them.

No test machine has KVM: the boots are recorded as workers record them, with the environment of a machine that has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoDbBlocker

from lab.comparisons.compare import compare_experiment
from lab.comparisons.exports.formats import REPORT_FORMS
from lab.comparisons.model_and_machine import models_and_machines
from lab.comparisons.shape import ModelAndMachineData
from lab.experiments.page import get_experiment
from lab.models import Experiment
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
Change = Callable[[Experiment], object]
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
) -> Experiment:
    """An experiment of a base and one patch whose boots were recorded by the path that workers use."""
    experiment = make_experiment(clock=clock, boots=6, name=f"{clock} experiment")
    base = make_variant(experiment, tree_id="t" * 40)
    patched = make_variant(experiment, "p", tree_id="p" * 40)
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


def measured(ratio: float = 0.59) -> Experiment:
    return recorded("wall", MEASURED, ratio, metric="ns_per_open", environment=hardware())


@pytest.fixture(scope="module")
def both(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[tuple[int, int]]:
    with rows_of_a_file(django_db_blocker):
        modelled = recorded("contention", MODEL, 0.64, metric=f"{metrics('open')[0].name}_20")
        yield modelled.pk, measured().pk


@pytest.fixture
def model(both: tuple[int, int]) -> Experiment:
    return Experiment.objects.get(pk=both[0])


@pytest.fixture
def machine(both: tuple[int, int]) -> Experiment:
    return Experiment.objects.get(pk=both[1])


def tables(experiment: Experiment) -> list[ModelAndMachineData]:
    row = get_experiment(experiment.pk)
    return models_and_machines(row).get(row.cases.get().pk, [])


def test_either_experiment_shows_the_model_beside_the_machine_that_ran_the_same_kernels(
    model: Experiment, machine: Experiment
) -> None:
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


def test_a_machine_of_its_own_counts_as_hardware(model: Experiment, machine: Experiment) -> None:
    machine.runs.update(environment=hardware("none", cpus=64))
    assert tables(model)[0]["machine"]["machine"] == XEON


def test_of_several_machines_the_newest_is_shown(model: Experiment) -> None:
    newest = measured(0.5)
    (table,) = tables(model)
    assert table["machine"]["experiment"] == newest.pk


def environment(properties: dict[str, Any]) -> Change:
    return lambda machine: machine.runs.update(environment=properties)


def params(parameters: dict[str, Any]) -> Change:
    return lambda machine: machine.cases.update(params=parameters)


OTHERWISE: dict[str, Change] = {
    "an emulated guest": environment(hardware("tcg")),
    "nothing recorded": environment({}),
    "fewer CPUs than threads": environment(hardware(cpus=8)),
    "unknown CPUs": environment({**hardware(), "guest": {}}),
    "damaged record": environment({**hardware(), "guest": {"cpus": "20"}}),
    "other CPUs": params({**MEASURED, "threads": 16}),
    "other work": params({**MEASURED, "directory": "/sys/elsewhere"}),
    "unknown threads": params({"rounds": 10}),
    "another patch": lambda machine: machine.variants.filter(name="p").update(tree_id="q" * 40),
    "another config": lambda machine: machine.switches.create(
        position=0, name="p", kind="config", text="CONFIG_X=y\n"
    ),
    "another base": lambda machine: Experiment.objects.filter(pk=machine.pk).update(base_tree_id="u" * 40),
}


@pytest.mark.parametrize("change", OTHERWISE.values(), ids=OTHERWISE)
def test_nothing_is_put_beside_what_is_not_the_same(
    model: Experiment, machine: Experiment, change: Change
) -> None:
    assert tables(model)
    change(machine)
    assert (tables(model), tables(machine)) == ([], [])


def test_an_experiment_that_goes_on_is_put_beside_nothing(model: Experiment, machine: Experiment) -> None:
    Experiment.objects.filter(pk=machine.pk).update(state=ExperimentState.RUNNING)
    assert (tables(model), tables(machine)) == ([], [])


def test_a_page_the_json_and_markdown_show_both_changes(
    model: Experiment, machine: Experiment, client: Client
) -> None:
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
    report = json.loads(REPORT_FORMS["json"].write(model.pk))
    assert report["cases"][0]["models_and_machines"][0]["cpus"] == 20
