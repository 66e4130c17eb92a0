# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine's own numbers in the form and in a clone, and that results of two machine models never meet."""

from __future__ import annotations

from typing import Any

import pytest

from lab.comparisons.compare import compare_experiment
from lab.comparisons.page import false_alarms
from lab.experiments.spec import spec_from_mapping
from lab.models import BasePoint, Case, Comparison, Experiment
from lab.models.states import Role
from lab.tests.factories import (
    finish_builds,
    finish_run,
    make_case,
    make_comparison,
    make_experiment,
    make_run,
    make_twin,
    make_variant,
)
from lab.trends.identity import trend_key
from web.cloned import typed_from
from web.forms import describe, read_params
from web.tests.conftest import Page
from workloads.catalog import load_catalog
from workloads.tests.test_machines import NUMBERS

CYCLES = {
    "name": "cycles_per_open_4", "unit": "cycles", "better": "lower", "margin": 0.02, "primary": True,
}  # fmt: skip


NOBODY_WAITS = {
    "machine": "one-socket",
    "cpus": 4,
    "cycles": 100,
    "waiting": 0,
    "functions": [],
    "locks": [],
    "lines": [],
}


def described(machine: object) -> dict[str, Any]:
    params = {"cpus": [1, 4], "machine": machine}
    return {
        "name": "machines",
        "tree": "debian-6.1",
        "patches": [{"name": "p", "catalog": "vfs-iget-rcu"}],
        "cases": [{"workload": "showgids", "preset": "smoke", "params": params}],
        "measure": {"clock": "contention"},
    }


def machine_of(mapping: dict[str, Any]) -> object:
    spec = spec_from_mapping(mapping)
    params = spec.cases[0].params
    return load_catalog()["showgids"].resolve("smoke", params, clock="contention")["machine"]


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_form_and_clone_keep_each_number(name: str) -> None:
    both = {"l1_bytes": {"l1_ways": 16}, "l1_ways": {"l1_bytes": 65536}}.get(name, {})
    table = {"base": "two-socket", name: NUMBERS[name], **both}
    wanted = machine_of(described(table))
    inline = ", ".join(
        f'{key} = "{number}"' if isinstance(number, str) else f"{key} = {number}"
        for key, number in table.items()
    )
    typed, wrong = read_params(f"machine = {{ {inline} }}\ncpus = [1, 4]")
    assert wrong == ""
    assert machine_of(described(typed["machine"])) == wanted
    typed, wrong = read_params(f"machine = {wanted}")
    assert (wrong, machine_of(described(typed["machine"]))) == ("", wanted)
    spec = spec_from_mapping(described(table))
    again, left_out = typed_from(spec.model_dump(mode="json", exclude_none=True), {}, origin=7)
    assert left_out == ()
    assert spec_from_mapping(describe(again).mapping) == spec


def modelled(machine: str, **fields: Any) -> Case:
    experiment = make_experiment(clock="contention", boots=4, **fields)
    return make_case(experiment, params={"cpus": [4], "machine": machine}, metrics=[CYCLES])


def replayed(case: Case, keys: list[str]) -> Experiment:
    """Return the compared experiment; keys: of the machine models that the candidate's boots were replayed on."""
    experiment = case.experiment
    variants = [make_variant(experiment), make_variant(experiment, "p"), make_twin(experiment)]
    runs = [
        (make_run(variant, case, block=block), variant.name == "p", block)
        for variant in variants
        for block in range(4)
    ]
    finish_builds(experiment)
    for run, is_candidate, block in runs:
        key = keys[block] if is_candidate else keys[0]
        values = {"cycles_per_open_4": [1e6, 100.0 + block, 100.0 + block]}
        finish_run(run, values, extras={"contention": {**NOBODY_WAITS, "machine_key": key}})
    compare_experiment(experiment.pk)
    return experiment


def test_boots_of_one_machine_model_are_compared(db: None) -> None:
    case = modelled("one-socket")
    replayed(case, ["a", "a", "a", "a"])
    assert Comparison.objects.get(variant__name="p").boots == 4
    assert BasePoint.objects.filter(case=case).count() == 1


@pytest.mark.hostile
def test_boots_of_two_machine_models_are_not_compared_and_the_page_says_so_once(db: None, page: Page) -> None:
    case = modelled("one-socket")
    experiment = replayed(case, ["a", "a", "b", "a"])
    for row in Comparison.objects.filter(experiment=experiment):
        assert (row.verdict, row.ratio, row.boots) == ("inconclusive", None, 0)
        assert row.reason == (
            "boots of this case were replayed on 2 different machine models, and are not compared: "
            "submit it again to workers of one version"
        )
    assert not BasePoint.objects.filter(case=case).exists(), "nor do they join a trend"
    text = page(f"/experiments/{experiment.pk}/comparison/")
    assert 'doubt">boots of this case were replayed on 2 different machine models' in text
    assert text.count('doubt">boots of this case were replayed') == 1


@pytest.mark.parametrize("other", ["two-socket", "one-socket, transfer_cycles=90", "one-socket, ghz=3.5"])
def test_a_trend_is_of_one_machine_model(db: None, other: str) -> None:
    first, two = modelled("one-socket"), modelled(other)
    two.experiment.tree, two.experiment.target = first.experiment.tree, first.experiment.target
    assert trend_key(first, "cycles_per_open_4", "c") != trend_key(two, "cycles_per_open_4", "c")
    two.params = dict(first.params)
    assert trend_key(first, "cycles_per_open_4", "c") == trend_key(two, "cycles_per_open_4", "c")


@pytest.mark.parametrize("other", ["two-socket", "one-socket, transfer_cycles=90"])
def test_the_record_of_false_alarms_pools_one_machine_model(db: None, other: str) -> None:
    first = modelled("one-socket")
    two = modelled(other, target=first.experiment.target)
    for case, verdict in ((first, "unchanged"), (two, "regression"), (two, "regression")):
        twin = make_variant(case.experiment, f"twin-{Comparison.objects.count()}", role=Role.AA)
        make_comparison(case, twin, metric="cycles_per_open_4", verdict=verdict)
    assert false_alarms(first) == {"cycles_per_open_4": {"called": 0, "compared": 1}}
    assert false_alarms(two) == {"cycles_per_open_4": {"called": 2, "compared": 2}}
