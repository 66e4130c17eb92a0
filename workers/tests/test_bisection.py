# SPDX-License-Identifier: GPL-2.0-or-later
"""Bisections over a line of pretend kernels: what is found, what is skipped, and what a killed one leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import pytest

from kernels.tests.pretend import FAKELINUX
from lab.bisections.outcome import conclude
from lab.bisections.pages import bisection_page
from lab.bisections.search import conclude_step, get_bisection, step_spec, take_step
from lab.bisections.start import BisectionRequest, start_bisection
from lab.errors import LabError, UnknownRow
from lab.models import Bisection, BisectionStep, Experiment, Run
from workers import bisection, local
from workers.drivers.base import BootRequest
from workers.drivers.fake import Script
from workers.errors import GuestHung, GuestPanicked
from workers.tests.conftest import FakeLab, opens
from workloads.compile import compile_programs

pytestmark = pytest.mark.process

INODE = "fs/inode.c"
COMMITS = 7
SILENT = bisection.Screen(lambda: nullcontext(lambda line: None), lambda experiment_id: nullcontext())


@pytest.fixture
def line(fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The base and COMMITS commits on top of it, each with code of its own; the third does not compile.

    It is mended by the fourth.
    """
    # Asks the compiler for its version at each boot, which is half of a fake one's time.
    monkeypatch.setattr("workers.boot_request.compile_programs", cache(compile_programs))
    kernel = fake_lab.kernel
    before = kernel._git("symbolic-ref", "--short", "HEAD")
    kernel._git("checkout", "--quiet", "--force", "-B", "line", kernel.base.commit)
    text = (FAKELINUX / INODE).read_text()
    commits = [kernel.base.commit]
    for number in range(1, COMMITS + 1):
        body = text + f"\nint added_{number}(void) {{ return {number if number != 3 else 'nothing'}; }}\n"
        (kernel.work / INODE).write_text(body)
        commits.append(kernel._commit(f"change {number}").commit)
    kernel._git("checkout", "--quiet", "--force", before)
    return commits


@pytest.fixture
def asked(fake_lab: FakeLab, line: list[str]) -> BisectionRequest:
    return BisectionRequest(
        tree=str(fake_lab.kernel.work), good=line[0], bad=line[-1], workload="showgids", boots=3
    )


def behave(fake_lab: FakeLab, line: list[str], ns: Callable[[int], float]) -> None:
    """Give each revision its own time per open, with a little noise from boot to boot."""

    def script(number: int) -> Callable[[BootRequest], Script]:
        return lambda request: opens(ns(number) + len(fake_lab.driver.requests) % 3)

    fake_lab.scripts |= {commit[:12]: script(number) for number, commit in enumerate(line) if number}


def run(search: Bisection) -> Iterator[BisectionStep]:
    steps: list[BisectionStep] = []
    bisection.work_through(search.pk, SILENT, steps.append)
    return iter(steps)


def answers(steps: Iterator[BisectionStep]) -> list[tuple[int, str]]:
    return [(step.revision, step.outcome) for step in steps]


@pytest.fixture
def series(fake_lab: FakeLab, line: list[str]) -> str:
    """The last three of the line's commits as they would be mailed; Eve wrote them."""
    mails = fake_lab.kernel._git("format-patch", "--stdout", f"{line[4]}..{line[7]}")
    mails = mails.replace("] change ", "] patch ")
    return mails.replace("From: kperflab <kperflab@localhost>", "From: Eve <eve@example.org>") + "\n"


@pytest.mark.thorough
def test_the_patch_of_a_series_that_made_it_slower_is_found(
    fake_lab: FakeLab, line: list[str], series: str, asked: BisectionRequest
) -> None:
    asked = replace(asked, good=line[4], bad="", series=series)
    search = start_bisection(asked=asked)
    assert search.line[0] == line[4]
    assert len(search.line) == 4
    # Nobody had committed them: they are in no branch of the tree.
    assert not set(search.line[1:]) & set(line)
    behave(fake_lab, search.line, lambda number: 1250.0 if number >= 2 else 1000.0)
    assert answers(run(search)) == [(3, "bad"), (1, "good"), (2, "bad")]
    page = bisection_page(search.pk)
    assert [(suspect.subject, suspect.author) for suspect in page.suspects] == [
        ("patch 6", "Eve <eve@example.org>"),
    ]


def test_the_same_series_goes_on_where_it_stopped(
    line: list[str], series: str, asked: BisectionRequest
) -> None:
    asked = replace(asked, good=line[4], bad="", series=series)
    first = start_bisection(asked=asked)
    assert start_bisection(asked=asked).pk == first.pk
    assert (
        start_bisection(asked=replace(asked, series=series.replace("return 7", "return 77"))).pk != first.pk
    )


def test_a_series_that_does_not_apply_names_its_patch(
    line: list[str], series: str, asked: BisectionRequest
) -> None:
    with pytest.raises(LabError, match="patch 5"):
        start_bisection(asked=replace(asked, good=line[0], bad="", series=series))
    with pytest.raises(LabError, match="there is no diff in it"):
        start_bisection(asked=replace(asked, bad="", series="nothing of the kind"))
    assert not Bisection.objects.exists()


def test_the_commit_that_made_it_slower_is_found(
    fake_lab: FakeLab, line: list[str], asked: BisectionRequest
) -> None:
    behave(fake_lab, line, lambda number: 1250.0 if number >= 6 else 1000.0)
    search = start_bisection(asked=asked)
    assert answers(run(search)) == [(7, "bad"), (3, "skipped"), (5, "good"), (6, "bad")]
    row = get_bisection(search.pk)
    assert (row.state, row.answer, row.suspects) == ("done", "commit", [line[6]])
    bad = row.steps.get(revision=6)
    assert bad.ratio == pytest.approx(1.25, abs=0.01)
    assert bad.experiment is not None
    assert bad.experiment.name == f"bisection {row.pk}, step 4: change 6"


@pytest.mark.thorough
def test_what_cannot_be_built_leaves_a_range_that_names_it(
    fake_lab: FakeLab, line: list[str], asked: BisectionRequest
) -> None:
    behave(fake_lab, line, lambda number: 1250.0 if number >= 4 else 1000.0)
    search = start_bisection(asked=asked)
    steps = list(run(search))
    row = get_bisection(search.pk)
    assert (row.state, row.answer, row.suspects) == ("done", "range", line[3:5])
    skipped = next(step for step in steps if step.outcome == "skipped")
    assert "nothing" in skipped.reason


def test_a_range_without_the_step_is_not_searched(
    fake_lab: FakeLab, line: list[str], asked: BisectionRequest
) -> None:
    behave(fake_lab, line, lambda number: 1000.0)
    search = start_bisection(asked=asked)
    assert answers(run(search)) == [(7, "good")]
    assert (get_bisection(search.pk).answer, get_bisection(search.pk).suspects) == ("no-step", [])


@pytest.mark.thorough
def test_an_improvement_is_searched_as_well(
    fake_lab: FakeLab, line: list[str], asked: BisectionRequest
) -> None:
    behave(fake_lab, line, lambda number: 700.0 if number >= 2 else 1000.0)
    search = start_bisection(asked=replace(asked, verdict="improvement"))
    list(run(search))
    assert get_bisection(search.pk).suspects == [line[2]]


@pytest.mark.thorough
def test_a_kernel_that_panics_is_skipped(fake_lab: FakeLab, line: list[str], asked: BisectionRequest) -> None:
    behave(fake_lab, line, lambda number: 1250.0 if number >= 2 else 1000.0)
    panic = Script(problem=GuestPanicked("Kernel panic - not syncing: Fatal exception"))
    fake_lab.scripts[line[4][:12]] = lambda request: panic
    search = start_bisection(asked=asked)
    outcomes = dict(answers(run(search)))
    assert outcomes.get(4, "skipped") == "skipped"
    assert get_bisection(search.pk).suspects == [line[2]]


@pytest.mark.thorough
def test_boots_that_cannot_tell_are_asked_again_and_then_are_ambiguous(
    fake_lab: FakeLab, line: list[str], asked: BisectionRequest
) -> None:
    behave(fake_lab, line, lambda number: 1250.0 if number >= 5 else 1000.0)

    def wild(_: BootRequest) -> Script:
        return opens(1000.0 * (1 + (len(fake_lab.driver.requests) * 37 % 19 - 9) / 25))

    fake_lab.scripts[line[5][:12]] = wild
    search = start_bisection(asked=replace(asked, most_boots=10))
    steps = list(run(search))
    about = [(step.boots, step.outcome) for step in steps if step.revision == 5]
    assert about == [(3, "again"), (6, "ambiguous")]
    assert get_bisection(search.pk).suspects == line[5:7]
    # One boot that the lab lost leaves it as open as it was.
    again = next(step for step in steps if step.outcome == "again")
    boots = Run.objects.filter(experiment=again.experiment, variant__role="candidate", purpose="measured")
    boots.filter(pk=boots.earliest("pk").pk).update(state="failed", outcome="lost", blame="lab")
    assert conclude(again).outcome == "again"


def test_a_fault_of_the_lab_is_tried_again_and_never_becomes_an_answer(
    fake_lab: FakeLab, line: list[str], asked: BisectionRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    behave(fake_lab, line, lambda number: 1250.0 if number >= 2 else 1000.0)
    with monkeypatch.context() as broken:

        def fails(*_: object) -> None:
            raise ZeroDivisionError("ours")

        broken.setattr("workers.loop.build_claimed", fails)
        search = start_bisection(asked=asked)
        step = take_step(search.pk)
        assert step is not None
        bisection.work_on(step, SILENT)
        step.refresh_from_db()
        assert (step.outcome, step.revision) == ("fault", 7)
        assert "ZeroDivisionError" in step.reason
    list(run(search))
    assert get_bisection(search.pk).suspects == [line[2]]


def test_three_faults_about_one_revision_end_it_without_an_answer(
    fake_lab: FakeLab, line: list[str], asked: BisectionRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("workers.loop.build_claimed", fails)
    search = start_bisection(asked=asked)
    assert answers(run(search)) == [(7, "fault")] * 3
    row = get_bisection(search.pk)
    assert (row.state, row.answer, row.suspects) == ("failed", "", [])
    assert "ZeroDivisionError" in row.problem


def test_a_good_revision_that_does_not_run_ends_it(
    fake_lab: FakeLab, line: list[str], asked: BisectionRequest
) -> None:
    hung = Script(problem=GuestHung("the guest did not finish within 300 s"))
    fake_lab.scripts[""] = lambda request: hung
    search = start_bisection(asked=asked)
    assert [outcome for _, outcome in answers(run(search))] == ["fault"]
    assert "the good revision" in get_bisection(search.pk).problem


def test_a_killed_bisection_goes_on_with_the_very_experiment_it_had_begun(
    fake_lab: FakeLab, line: list[str], asked: BisectionRequest
) -> None:
    behave(fake_lab, line, lambda number: 1250.0 if number >= 6 else 1000.0)
    search = start_bisection(asked=asked)
    step = take_step(search.pk)
    assert step is not None
    # Killed after the submission, before it was noted: the same description finds it.
    begun = local.take_up(step_spec(step), say=print)
    local.build_all(begun)
    local.boot_next(begun)
    assert start_bisection(asked=asked).pk == search.pk
    assert next(run(search)).experiment_id == begun
    assert Experiment.objects.filter(name__contains="step 1:").count() == 1
    assert get_bisection(search.pk).suspects == [line[6]]
    assert take_step(search.pk) is None
    done = get_bisection(search.pk).steps.get(number=1)
    assert conclude_step(done.pk).outcome == "bad"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"metric": "ns_per_opn"}, 'did you mean "ns_per_open"'),
        ({"workload": "showgid"}, 'did you mean "showgids"'),
        ({"bad": "nowhere"}, 'no revision "nowhere"'),
        ({"tree": "nowhere"}, 'no tree "nowhere"'),
        ({"target": "nowhere"}, 'no target "nowhere"'),
    ],
)
def test_a_wrong_question_names_what_is_wrong(
    change: dict[str, str], said: str, asked: BisectionRequest
) -> None:
    with pytest.raises(LabError) as caught:
        start_bisection(asked=replace(asked, **change))  # type: ignore[arg-type]
    assert said in str(caught.value)
    assert not Bisection.objects.exists()


def test_a_range_the_wrong_way_round_is_refused(asked: BisectionRequest) -> None:
    with pytest.raises(LabError, match="name the older one first"):
        start_bisection(asked=replace(asked, good=asked.bad, bad=asked.good))


@pytest.mark.django_db
def test_an_unknown_bisection_is_said_to_be_none() -> None:
    with pytest.raises(UnknownRow, match="no bisection 7"):
        bisection.work_through(7, SILENT, print)
