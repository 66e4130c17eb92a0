# SPDX-License-Identifier: GPL-2.0-or-later
"""Each field of a description is known to labctl: in a file, as an option for a series, and in what it shows."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from lab.experiments.measure import MeasureSpec
from lab.experiments.spec import ExperimentSpec
from lab.experiments.stored_spec import description_as_toml
from lab.models import Target
from lab.tests.descriptions import DIFF, NOTED, SETS, URGENCY, setting, specified, value_at
from lab.tests.factories import make_experiment
from workers import labctl
from workers.tests.test_labctl import call
from workloads.catalog import load_catalog

# What the options of `labctl submit SERIES` say, and the value that the description has then.
OPTIONS: dict[str, tuple[tuple[str, ...], Any]] = {
    "name": (("--name", "another name"), "another name"),
    "tree": (("--tree", "debian-6.12"), "debian-6.12"),
    "git": (("--tree", "https://git.example/linux.git"), "https://git.example/linux.git"),
    "base": (("--base", "v6.1.192"), "v6.1.192"),
    "design": (("--design", "cumulative"), "cumulative"),
    "target": (("--target", "guest-2"), "guest-2"),
    "priority": (("--priority", "low"), "low"),
    "patches[].alternative": (("--alternative", "2"), 2),
    "patches[].partial": (("--partial",), True),
    "cases[].workload": (("--workload", "stat-walk"), "stat-walk"),
    "cases[].preset": (("--preset", "large"), "large"),
    "cases[].params": (("--param", "threads=2", "--param", "showgids:rounds=9"), {"threads": 2, "rounds": 9}),
    "measure.profile": (("--exact", "--clock", "instructions"), "exact"),
    "measure.profile_boots": (("--profile", "--profile-boots", "4"), 4),
    "measure.off_cpu": (("--profile", "--off-cpu"), True),
}


def _plain_option(name: str) -> tuple[tuple[str, ...], Any]:
    """Return the option of a field of [measure] that takes nothing else beside it."""
    value = SETS[f"measure.{name}"]["measure"][name]
    option = f"--{name.replace('_', '-')}"
    return ((option,) if value is True else (option, str(value))), value


OPTIONS |= {
    f"measure.{name}": _plain_option(name)
    for name in MeasureSpec.model_fields
    if f"measure.{name}" not in OPTIONS
}
# A series is one switch, named after its file, of its own text; what concerns several switches, config changes and a
# case apart from others takes a file. Nobody gives what a reproducer notes.
ONLY_IN_A_FILE = {
    *(f"patches[].{name}" for name in ("name", "requires", "excludes", "text", "origin", "catalog", "range")),
    *(f"configs[].{name}" for name in ("name", "requires", "excludes", "lines")),
    "cases[].profile",
    "reproduces",
}


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch, db: None) -> list[ExperimentSpec]:
    """Stand in for the submission, which would import a tree: keep what it is asked to take in."""
    specs: list[ExperimentSpec] = []

    def submit(*, spec: ExperimentSpec, **_: object) -> Any:
        specs.append(spec)
        return SimpleNamespace(pk=make_experiment().pk)

    monkeypatch.setattr("workers.local.submit_experiment", submit)
    return specs


def test_each_field_has_an_option_or_a_reason_to_take_a_file() -> None:
    assert set(OPTIONS) | ONLY_IN_A_FILE == set(SETS)
    assert not set(OPTIONS) & ONLY_IN_A_FILE


@pytest.mark.parametrize("field", sorted(OPTIONS))
def test_an_option_sets_the_field_of_a_series(
    field: str, taken: list[ExperimentSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fix.patch").write_text(DIFF)
    options, value = OPTIONS[field]
    plain = {"--tree": "debian-6.1", "--workload": "showgids"}
    rest = [word for pair in plain.items() if pair[0] not in options for word in pair]
    assert call(monkeypatch, "submit", "fix.patch", "--local", "--no-wait", *rest, *options) == 0
    assert value_at(taken[0].model_dump(mode="json"), field) == value


@pytest.mark.parametrize("field", sorted(set(SETS) - NOTED))
def test_a_file_sets_the_field(
    field: str, taken: list[ExperimentSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.toml"
    file.write_text(description_as_toml(setting(field)))
    assert call(monkeypatch, "submit", str(file), "--local", "--no-wait") == 0
    assert taken == [specified(field)]


@pytest.mark.parametrize("field", sorted(name for name in OPTIONS if name.startswith("measure.")))
def test_an_option_overrides_how_a_file_measures(
    field: str, taken: list[ExperimentSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.toml"
    file.write_text(description_as_toml(setting("name")))
    assert call(monkeypatch, "submit", str(file), "--local", "--no-wait", *OPTIONS[field][0]) == 0
    assert value_at(taken[0].model_dump(mode="json"), field) == OPTIONS[field][1]


def test_show_prints_what_the_api_tells_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], client: Client, db: None
) -> None:
    """The API's own tests ask for each field of it."""
    row = make_experiment(spec=specified("cases[].profile").model_dump(mode="json", exclude={"priority"}))
    assert call(monkeypatch, "show", str(row.pk), "--local", "--format", "json") == 0
    experiment = client.get(f"/api/v1/experiments/{row.pk}/", headers={"host": "127.0.0.1:8000"}).json()
    assert json.loads(capsys.readouterr().out) == experiment


@pytest.mark.thorough
@pytest.mark.parametrize("field", sorted(set(SETS) - URGENCY - {"patches[].text"}))
def test_show_tells_the_field_as_json(
    field: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], db: None
) -> None:
    Target.objects.get_or_create(name="guest-2")
    spec = specified(field).model_dump(mode="json", exclude={"priority"})
    row = make_experiment(spec=spec)
    assert call(monkeypatch, "show", str(row.pk), "--local", "--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)["description"]
    assert value_at(shown, field) == value_at(json.loads(json.dumps(spec)), field)


@pytest.mark.process
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--param", "threads"), '--param "threads" is not of the form [WORKLOAD:]NAME=VALUE'),
        (("--param", "=2"), "is not of the form [WORKLOAD:]NAME=VALUE"),
        (("--param", "stat-walk:threads=2"), 'no --workload is "stat-walk"; there are showgids'),
        (("--param", "treads=2"), "threads"),
        (("--alternative", "0"), "patches[0].alternative"),
        (("--alternative", "2", "--each"), "leave out --each"),
        (("--profile-boots", "0"), "measure.profile_boots"),
        (("--off-cpu",), "measure.off_cpu: waits are recorded in profiled boots"),
    ],
)
def test_a_wrong_option_names_the_field(
    options: tuple[str, ...],
    said: str,
    taken: list[ExperimentSpec],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fix.patch").write_text(DIFF)
    series = ("submit", "fix.patch", "--local", "--tree", "debian-6.1", "--workload", "showgids")
    assert call(monkeypatch, *series, *options) == labctl.EXIT_USAGE
    assert said in " ".join(capsys.readouterr().err.split())
    assert taken == []


@pytest.mark.parametrize(
    "text",
    [
        '{ base = "two-socket", sockets = 4, cpus_per_socket = 8, transfer_cycles = 90 }',
        "two-socket, sockets=4, cpus_per_socket=8, transfer_cycles=90",
    ],
)
def test_an_option_gives_a_machine_its_own_numbers(
    text: str, taken: list[ExperimentSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fix.patch").write_text(DIFF)
    options = ("--clock", "contention", "--param", "cpus=[1, 4]", "--param", f"machine={text}")
    assert (
        call(
            monkeypatch,
            "submit",
            "fix.patch",
            "--local",
            "--no-wait",
            "--tree",
            "debian-6.1",
            "--workload",
            "showgids",
            *options,
        )
        == 0
    )
    (case,) = taken[0].cases
    resolved = load_catalog()["showgids"].resolve("smoke", case.params, clock="contention")
    assert resolved["machine"] == "two-socket, sockets=4, transfer_cycles=90, cpus_per_socket=8"
