# SPDX-License-Identifier: GPL-2.0-or-later
"""A list of revisions measured over pretend kernels, from the command line to the trend."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.errors import LabError
from lab.models import Build, Experiment, Revision
from lab.submission.tree_history import RevisionRange, measurements
from lab.trends.page import trend_list
from workers import bisection, labctl
from workers.tests.conftest import FakeLab, opens
from workers.tests.test_bisection import SILENT, asked, line
from workers.tests.test_labctl import call

pytestmark = pytest.mark.process

__all__ = ["asked", "line"]  # fixtures


@pytest.fixture
def wanted(fake_lab: FakeLab, line: list[str]) -> RevisionRange:
    """The third revision does not compile; the fifth and later are slower."""

    def script(request: object) -> object:
        released = getattr(request, "release", "")
        build = Build.objects.get(release=released)
        slow = line.index(build.commit) >= 5
        return opens((1250.0 if slow else 1000.0) + len(fake_lab.driver.requests) % 3)

    fake_lab.scripts[""] = script  # type: ignore[assignment]
    return RevisionRange(
        tree=str(fake_lab.kernel.work), revisions=f"{line[0]}..{line[-1]}", workload="showgids", boots=2
    )


def test_revisions_become_a_trend_whose_step_names_its_commit(wanted: RevisionRange, line: list[str]) -> None:
    specs = measurements(wanted=wanted)
    assert [spec.base for spec in specs] == line
    experiments = bisection.measure(specs, SILENT)
    (page,) = trend_list()
    assert [point.revision.commit for point in page.points] == [line[0], *line[1:3], *line[4:]]
    assert [point.boots for point in page.points] == [4] * 7
    (step,) = page.steps
    assert (step.good.commit, step.bad.commit, step.verdict) == (line[4], line[5], "regression")
    assert [suspect.subject for suspect in step.suspects] == ["change 5"]
    failed = Experiment.objects.get(pk=experiments[3])
    assert failed.state == "failed"
    # All but the first were built over its objects; their builds from nothing were not needed any more.
    made = Build.objects.exclude(state="cancelled")
    assert set(made.values_list("request__base_commit", flat=True)) == {line[0]}
    assert set(Build.objects.filter(state="cancelled").values_list("variants", flat=True)) == {None}


def test_boots_of_all_revisions_take_turns(fake_lab: FakeLab, wanted: RevisionRange, line: list[str]) -> None:
    bisection.measure(measurements(wanted=replace(wanted, revisions=f"{line[5]}..{line[7]}")), SILENT)
    releases = [request.release for request in fake_lab.driver.requests]
    rounds = [set(releases[at : at + 3]) for at in range(0, len(releases), 3)]
    assert rounds == [set(releases)] * 4


@pytest.mark.parametrize(
    ("every", "chosen"), [(1, [0, 1, 2, 3, 4, 5, 6, 7]), (2, [0, 1, 3, 5, 7]), (50, [0, 7])]
)
def test_both_ends_are_measured_however_many_are_left_out(
    every: int, chosen: list[int], wanted: RevisionRange, line: list[str]
) -> None:
    specs = measurements(wanted=replace(wanted, every=every))
    assert [line.index(spec.base) for spec in specs] == chosen
    # Those left out are known all the same, for a step's suspects.
    assert Revision.objects.count() == 8


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"revisions": "main"}, "older..newer"),
        ({"revisions": "..main"}, "older..newer"),
        ({"workload": "showgid"}, 'did you mean "showgids"'),
        ({"revisions": "nowhere..line"}, 'no revision "nowhere"'),
    ],
)
def test_a_wrong_list_names_what_is_wrong(change: dict[str, str], said: str, wanted: RevisionRange) -> None:
    with pytest.raises(LabError) as caught:
        measurements(wanted=replace(wanted, **change))  # type: ignore[arg-type]
    assert said in str(caught.value)
    assert not Experiment.objects.exists()


def test_the_command_line_measures_shows_and_bisects(
    wanted: RevisionRange,
    line: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The bar's own thread would not see a test's rows.
    monkeypatch.setattr("workers.ctl.trendctl.SCREEN", SILENT)
    range_ = ("--tree", wanted.tree, "--revisions", f"{line[3]}..{line[7]}")
    assert call(monkeypatch, "trend", *range_, "--boots", "2", "--local") == labctl.EXIT_OK
    assert "ns_per_open of showgids (smoke)" in capsys.readouterr().out
    (page,) = trend_list()
    assert call(monkeypatch, "trend", page.line.key, "--local") == labctl.EXIT_OK
    assert "change 5" in capsys.readouterr().out
    assert call(monkeypatch, "trend", "--local") == labctl.EXIT_OK
    assert page.line.key in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("trend",), "add --local"),
        (("bisect", "--tree", "x", "--good", "a", "--bad", "b"), "add --local"),
        (("bisect", "--local"), "give --tree, --good and --bad"),
        (("trend", "--tree", "x", "--local"), "give --tree and --revisions"),
        (("trend", "nowhere", "--local"), 'there is no trend "nowhere"'),
        (("trend", "nowhere", "--tree", "x", "--revisions", "a..b", "--local"), "not both"),
        (("trend", "--tree", "x", "--revisions", "a..b", "--every", "0", "--local"), "--every"),
        (("bisect", "--trend", "nowhere", "--good", "a", "--local"), "--good: leave it out"),
        (("bisect", "--trend", "nowhere", "--preset", "smoke", "--local"), "--preset: leave it out"),
        (("trend", "nowhere", "--boots", "9", "--local"), "--boots: leave it out"),
        (("trend", "--clock", "wall", "--local"), "--clock: leave it out"),
        (("bisect", "--trend", "nowhere", "--most-boots", "-1", "--local"), "--most-boots"),
        (("bisect", "--trend", "nowhere", "--local"), 'there is no trend "nowhere"'),
        (("bisect", "--tree", "x", "--good", "a", "--bad", "b", "--clock", "sun", "--local"), "no clock"),
    ],
)
@pytest.mark.django_db
def test_a_wrong_call_is_one_line(
    argv: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *argv) == labctl.EXIT_USAGE
    assert said in " ".join(capsys.readouterr().err.split())
