# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: exit codes a pipeline reads, and errors of one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from lab.experiments.priority import PRIORITIES
from lab.experiments.spec import read_spec
from lab.models import Experiment
from lab.tests.factories import make_grid, make_user
from workers import demo, labctl, local
from workers.ctl import options
from workers.ctl.lazy_commands import load, summary
from workers.tests.conftest import FakeLab, opens


def call(monkeypatch: pytest.MonkeyPatch, *argv: str) -> int:
    monkeypatch.setattr("sys.argv", ["labctl", *argv])
    monkeypatch.setattr("workers.local.prepare", lambda: None)
    with pytest.raises(SystemExit) as caught:
        labctl.main()
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("frobnicate",), "No such command"),
        (("submit", "--local"), "give either a file"),
        (("watch",), "Missing argument 'EXPERIMENT'"),
        (("cmpare", "3"), "Did you mean 'compare'"),
        (("list", "--local", "--state", "don"), 'did you mean "done"'),
        (("list", "--local", "--server", "https://lab.example"), "give one of them"),
        (("list",), "add --local"),
        (("compare", "12345", "--local"), "there is no experiment 12345"),
        (("log", "--local"), "labctl: give either --build or --run"),
        (("run", "12345", "--local"), "there is no experiment 12345"),
    ],
)
@pytest.mark.django_db
def test_a_wrong_call_is_one_line_and_not_the_code_for_cannot_tell(
    argv: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *argv) == labctl.EXIT_USAGE
    assert said in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.django_db
def test_a_wrong_description_names_the_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.toml").write_text('name = "x"\ntree = "debian-6.1"\n[[cases]]\nworkload = "showgid"\n')
    assert call(monkeypatch, "submit", str(tmp_path / "x.toml"), "--local") == labctl.EXIT_USAGE
    assert 'did you mean "showgids"' in " ".join(capsys.readouterr().err.split())


@pytest.mark.process
@pytest.mark.parametrize(("ns", "code"), [(800.0, 0), (1250.0, 1), (None, 2)])
def test_the_exit_code_is_the_verdict(
    ns: float | None,
    code: int,
    fake_lab: FakeLab,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def script(_request: object) -> object:
        wild = 700.0 if len(fake_lab.driver.requests) % 2 else 1400.0
        return opens(wild if ns is None else ns)

    fake_lab.scripts["other"] = script  # type: ignore[assignment]
    patch = fake_lab.diff("fs/inode.c", "\tWARN_HERE();\n", "")
    five = {"boots": 5, "iterations": 2, "warmup": 1}
    experiment = fake_lab.run(fake_lab.spec({"other": patch}, measure=five))
    assert call(monkeypatch, "compare", str(experiment.pk), "--local") == code
    assert "ns_per_open [ns]" in capsys.readouterr().out


@pytest.mark.process
def test_work_that_is_interrupted_says_that_the_same_command_continues_it(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    number = local.take_up(fake_lab.spec({}), say=lambda _: None)
    monkeypatch.setattr(local, "work_through", interrupted)
    assert call(monkeypatch, "run", str(number), "--local") == 130
    assert "the same command continues from here" in " ".join(capsys.readouterr().err.split())


@pytest.mark.process
def test_an_experiment_without_its_base_exits_with_3(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("workers.loop.build_claimed", fails)
    experiment = fake_lab.run(fake_lab.spec({}))
    assert call(monkeypatch, "show", str(experiment.pk), "--local") == 0
    assert call(monkeypatch, "compare", str(experiment.pk), "--local") == labctl.EXIT_LAB


def test_a_fault_of_ours_does_not_end_with_the_code_of_a_regression(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("workers.ctl.clients.client.Client.document", fails)
    assert call(monkeypatch, "watch", "7", "--server", "https://lab.example") == labctl.EXIT_LAB
    assert "ZeroDivisionError: ours" in capsys.readouterr().err


def places(group: Any) -> Iterator[tuple[str, str]]:
    for name, place in group.info.cls.places.items():
        yield from [(name, place)] if isinstance(place, str) else places(place)


@pytest.mark.parametrize(("name", "place"), places(labctl.cli))
def test_the_list_of_commands_says_what_each_says_of_itself(name: str, place: str) -> None:
    assert str(load(place, name).help).splitlines()[0] == summary(place, name)


def test_every_story_is_a_valid_description() -> None:
    by_clock = {clock: demo.stories("all", clock) for clock in demo.CLOCKS}
    assert {path.stem for path in by_clock["wall"]} == {"kernfs", "inode", "buffer"}
    assert {path.stem for path in by_clock["contention"]} == {
        "kernfs",
        "kernfs-exact",
        "inode",
        "buffer",
        "factorial",
    }
    for path in [path for paths in by_clock.values() for path in paths]:
        assert read_spec(path.read_bytes(), path.parent).cases


def test_a_story_has_a_description_for_contention_and_one_for_instructions() -> None:
    specs = [read_spec(path.read_bytes(), path.parent) for path in demo.stories("kernfs")]
    assert [spec.measure.clock for spec in specs] == ["contention", "instructions"]
    assert [path.parent.name for path in demo.stories("kernfs", "wall")] == ["wall"]


@pytest.mark.parametrize(
    ("story", "clock"), [("kernfs-exact", "contention"), ("kernfs", "sundial"), ("factorial", "wall")]
)
def test_what_is_no_story_is_refused_with_those_there_are(story: str, clock: str) -> None:
    with pytest.raises(typer.BadParameter, match="there are"):
        demo.stories(story, clock)


@pytest.mark.parametrize("code", [labctl.EXIT_OK, 1, 2, labctl.EXIT_LAB])
def test_the_demo_without_pages_fails_only_where_a_story_could_not_be_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    monkeypatch.setattr("workers.local.prepare", lambda: None)
    monkeypatch.setattr("workers.local.sweep", list)
    monkeypatch.setattr(demo, "replay", lambda path: (7, code))
    monkeypatch.setattr("sys.argv", ["demo", "--serve", "0"])
    with pytest.raises(SystemExit) as ended:
        demo.main()
    assert ended.value.code == (labctl.EXIT_LAB if code == labctl.EXIT_LAB else 0)


def test_on_this_machine_an_experiment_is_kept_let_go_of_and_made_urgent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], db: None
) -> None:
    alice, number = make_user("alice"), str(make_grid().pk)
    Experiment.objects.update(submitter=alice)

    def said(*argv: str, code: int = labctl.EXIT_OK) -> str:
        assert call(monkeypatch, *argv, "--local") == code
        captured = capsys.readouterr()
        return " ".join((captured.out + captured.err).split())

    assert f"experiment {number} is kept" in said("keep", number)
    assert Experiment.objects.get().kept
    assert "is no longer kept" in said("unkeep", number)
    assert not Experiment.objects.get().kept
    assert "has priority high" in said("priority", number, "high")
    assert Experiment.objects.get().priority == PRIORITIES["high"]
    assert "priority high" in said("show", number)
    shown = json.loads(said("list", "--format", "json", "--priority", "high", "--submitter", "alice"))
    assert [(row["id"], row["priority"], row["group"]) for row in shown] == [(int(number), "high", "")]
    assert "no experiment like that" in said("list", "--submitter", "bob")
    assert "no experiment like that" in said("list", "--priority", "low")
    Experiment.objects.update(state="done")
    for command in (("keep", "999"), ("unkeep", "999"), ("priority", "999", "low")):
        assert "there is no experiment 999" in said(*command, code=labctl.EXIT_USAGE)
    assert "is done already" in said("priority", number, "low", code=labctl.EXIT_USAGE)


def test_labctl_knows_the_priorities_there_are() -> None:
    assert tuple(PRIORITIES) == options.PRIORITIES


@pytest.mark.process
def test_a_rerun_on_this_machine_is_refused_while_the_first_is_open(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = str(local.take_up(fake_lab.spec({}), say=lambda line: None))
    for state in ("queued", "running"):
        Experiment.objects.update(state=state)
        assert call(monkeypatch, "rerun", number, "--local") == labctl.EXIT_USAGE
        said = " ".join(capsys.readouterr().err.split())
        assert f"experiment {number} is {state}: wait until it finishes, or cancel it first" in said
    assert Experiment.objects.count() == 1
    assert call(monkeypatch, "rerun", "12345", "--local") == labctl.EXIT_USAGE
    assert "there is no experiment 12345" in capsys.readouterr().err


@pytest.mark.process
def test_a_rerun_on_this_machine_that_is_asked_for_twice_is_one_experiment(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = local.take_up(fake_lab.spec({}), say=lambda line: None)
    assert call(monkeypatch, "cancel", str(first), "--local") == 0
    capsys.readouterr()
    made = []
    for _ in range(2):
        assert call(monkeypatch, "rerun", str(first), "--local") == 0
        made.append(int(capsys.readouterr().out))
    again = Experiment.objects.exclude(pk=first).get()
    assert (made, again.origin_id, again.state) == ([again.pk] * 2, first, "queued")


@pytest.mark.process
@pytest.mark.parametrize("argv", [(), ("--help",), ("compare", "--help"), ("target", "--help")])
def test_a_reader_that_closes_the_pipe_makes_no_regression_of_help(argv: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "workers.labctl", *argv]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (labctl.EXIT_OK, "")
