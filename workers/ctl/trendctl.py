# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl trend` and `labctl bisect`."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.bisections.from_trend import request_of
from lab.bisections.pages import bisection_page
from lab.bisections.start import BisectionRequest, start_bisection
from lab.errors import SpecError
from lab.models import BisectionStep
from lab.submission.tree_history import RevisionRange, measurements
from lab.trends.page import trend_list, trend_page
from workers import bisection
from workers.ctl import progressbar, terminal, trend_tables
from workers.ctl import submitted_files as handed
from workers.ctl.clients.choose import local_client
from workers.ctl.clients.local import api_here
from workers.ctl.options import JSON, TABLE, Format, Local, err, on_this_machine, out, print_json
from workloads.instruction_clock import CLOCKS, Clock

# Of `bisect`: found, nothing to find, inconclusive, the lab failed.
EXIT_FOUND, EXIT_NO_STEP, EXIT_UNTOLD, EXIT_LAB = 0, 1, 2, 3

# Options of `trend` that only a measurement has, and those of `bisect` that a trend answers.
_MEASURES = {"case", "boots", "every", "clock", "target"}
_OF_TREND = {
    *("good", "bad", "series", "tree", "workload", "preset", "metric", "clock", "improvement", "target"),
}

ClockOption = Annotated[str, typer.Option("--clock", help="wall or instructions")]
Target = Annotated[str, typer.Option(help="the machine to boot on")]
SCREEN = bisection.Screen(
    narrate=lambda: terminal.narration(err),
    bar=lambda experiment_id: progressbar.beside(err, local_client(), experiment_id),
)


def _clock(name: str) -> Clock:
    for clock in CLOCKS:
        if clock == name:
            return clock
    raise SpecError(f'clock: there is no clock "{name}"; there are {", ".join(CLOCKS)}')


def _refuse_given(context: typer.Context, names: Collection[str], why: str) -> None:
    """Raise BadParameter if one of these options was given, be it with its default value."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"{parameter.opts[0]}: {why}")


def trend(  # noqa: PLR0913  an argument is an option
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="show this trend (a key from the list)")] = "",
    tree: Annotated[str, typer.Option(help="measure revisions of this tree: a name, URL or path")] = "",
    revisions: Annotated[str, typer.Option(help="range of revisions: older..newer")] = "",
    case: Annotated[str, typer.Option(help="workload:preset")] = "showgids:smoke",
    boots: Annotated[int, typer.Option(min=1, help="rounds; each round boots every revision twice")] = 5,
    every: Annotated[int, typer.Option(min=1, help="measure every Nth revision")] = 1,
    clock: ClockOption = "wall",
    target: Target = "guest",
    form: Format = TABLE,
    is_local: Local = False,
) -> None:
    """List the trends, show one, or measure revisions for them."""
    on_this_machine(is_local)
    if bool(tree) != bool(revisions):
        raise typer.BadParameter("give --tree and --revisions, or neither")
    if tree and key:
        raise typer.BadParameter("give a trend to show, or --tree and --revisions to measure, not both")
    if not tree:
        _refuse_given(context, _MEASURES, "leave it out, or give --tree and --revisions to measure")
    if tree:
        workload, _, preset = case.partition(":")
        wanted = RevisionRange(
            tree=tree,
            revisions=revisions,
            workload=workload,
            preset=preset or "smoke",
            clock=clock,
            boots=boots,
            every=every,
            target=target,
        )
        _measure(wanted, form)
    elif key and form == JSON:
        print_json(api_here().document(f"trends/{trend_page(key).line.key}/"))
    elif key:
        trend_tables.show_trend(out, trend_page(key))
    elif form == JSON:
        print_json(api_here().rows("trends/"))
    else:
        trend_tables.show_trends(out, trend_list())


def bisect(  # noqa: PLR0913
    context: typer.Context,
    good: Annotated[
        str,
        typer.Option(
            help="a good revision before the step; with --series, the revision that the series applies to"
        ),
    ] = "",
    bad: Annotated[str, typer.Option(help="a bad revision after the step")] = "",
    series: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="bisect these patches: an mbox, - for standard input"),
    ] = None,
    tree: Annotated[str, typer.Option(help="a registered name, or a git URL or path")] = "",
    workload: Annotated[str, typer.Option(help="workload to run")] = "showgids",
    preset: Annotated[str, typer.Option(help="its parameters")] = "smoke",
    metric: Annotated[str, typer.Option(help="metric to compare; default: the primary metric")] = "",
    clock: ClockOption = "wall",
    boots: Annotated[int, typer.Option(min=0, help="boots of each comparison; 0 for as many as needed")] = 0,
    most_boots: Annotated[int, typer.Option(min=0, help="maximum boots of an inconclusive comparison")] = 80,
    improvement: Annotated[bool, typer.Option(help="search for an improvement")] = False,
    step_of: Annotated[str, typer.Option("--trend", help="bisect the last step of this trend")] = "",
    target: Target = "guest",
    is_local: Local = False,
) -> None:
    """Find the commit that changed a metric; the same command after a crash continues where it stopped."""
    on_this_machine(is_local)
    if step_of:
        _refuse_given(context, _OF_TREND, "leave it out: --trend names it")
        asked = _step_of(step_of, boots, most_boots)
    else:
        text, base = _series(series)
        good = good or base
        if not (tree and good and bool(bad) != bool(text)):
            raise typer.BadParameter("give --tree, --good and --bad (or instead --series), or only --trend")
        asked = BisectionRequest(
            tree=tree,
            good=good,
            bad=bad,
            series=text,
            workload=workload,
            preset=preset,
            metric=metric,
            clock=_clock(clock),
            boots=boots,
            most_boots=most_boots,
            verdict="improvement" if improvement else "regression",
            target=target,
        )
    raise typer.Exit(_bisect(asked))


def _series(source: Path | None) -> tuple[str, str]:
    """A series' text and the base it names, empty if it names none. Raises SpecError."""
    if source is None:
        return "", ""
    data = handed.read_handed(source)
    if not handed.is_series(data):
        raise SpecError(f"{source} contains neither mails nor a diff")
    submission = handed.handed_series(data, source)
    return submission.text, submission.series.base_commit if submission.series else ""


def _measure(wanted: RevisionRange, form: str) -> None:
    with SCREEN.narrate() as say:
        specs = measurements(wanted=wanted, on_progress=say)
    err.print(f"{len(specs)} revisions to measure")
    measured = set(bisection.measure(specs, SCREEN))
    fed = [
        page
        for page in trend_list()
        if any(measured.intersection(point.experiments) for point in page.points)
    ]
    if form == JSON:
        api = api_here()
        print_json([api.document(f"trends/{page.line.key}/") for page in fed])
        return
    for page in fed:
        trend_tables.show_trend(out, page)


def _step_of(key: str, boots: int, most_boots: int) -> BisectionRequest:
    """Return the request to bisect a trend's last step. Raises SpecError if it has no step."""
    page = trend_page(key)
    if not page.steps:
        raise SpecError(f"trend {key} has no step to bisect")
    return replace(request_of(page.line, page.steps[-1]), boots=boots, most_boots=most_boots)


def _bisect(asked: BisectionRequest) -> int:
    with SCREEN.narrate() as say:
        row = start_bisection(asked=asked, on_progress=say)
    out.print(f"bisection {row.pk}: {len(row.line) - 1} commits")
    for step in bisection_page(row.pk).steps:
        if step.row.outcome:
            out.print(trend_tables.bisection_step(step), soft_wrap=True)

    def show_step(step: BisectionStep) -> None:
        view = bisection_page(row.pk).steps[step.number - 1]
        out.print(trend_tables.bisection_step(view), soft_wrap=True)

    bisection.work_through(row.pk, SCREEN, show_step)
    page = bisection_page(row.pk)
    trend_tables.show_answer(out, page)
    if page.row.state == "failed":
        return EXIT_LAB
    return {"commit": EXIT_FOUND, "no-step": EXIT_NO_STEP}.get(page.row.answer, EXIT_UNTOLD)
