# SPDX-License-Identifier: GPL-2.0-or-later
"""Trends and bisections for a terminal. Names and subjects are strangers': printed as plain text, never as markup."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.bisections.pages import BisectionPage, BisectionStepView
from lab.models import BisectionStep
from lab.statistics.verdict_words import shown_verdict
from lab.trends.page import RevisionView, StepView, TrendPage
from lab.trends.told_apart import told_apart
from workers.ctl.table_style import number, percent

OUTCOME_STYLE = {
    "bad": "red",
    "good": "green",
    "skipped": "yellow",
    "ambiguous": "yellow",
    "fault": "magenta",
}
BARS = "▁▂▃▄▅▆▇█"
SUBJECT = 48


def show_trends(console: Console, pages: Sequence[TrendPage]) -> None:
    """Print a line for each trend: its course, the latest value and the last step."""
    if not pages:
        console.print("no trend yet: one begins once a second revision of a tree is measured")
    apart = told_apart(page.line for page in pages)
    for page in pages:
        line = page.line
        latest = page.points[-1]
        where = ", ".join(filter(None, (line.place, line.target, line.clock, apart[line.key])))
        value = f"{number(latest.median)} {line.unit} at {short(latest.revision)}"
        console.print(
            Text.assemble((f"{line.key}  ", "dim"), (line.title, "bold"), f"  {where}"), soft_wrap=True
        )
        console.print(Text(f"  {spark([point.median for point in page.points])}  {value}"), soft_wrap=True)
        if page.steps:
            console.print(Text("  last step: ").append_text(_step_line(page.steps[-1])), soft_wrap=True)


def show_trend(console: Console, page: TrendPage) -> None:
    """Print the points of a trend with its steps between them."""
    line = page.line
    title = f"{line.title} [{line.unit}], {line.place}, {line.target}, {line.clock} clock"
    table = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    ranges = [f"{number(point.low)} … {number(point.high)}" for point in page.points]
    medians = [number(point.median) for point in page.points]
    fixed = 12 + max(map(len, [*medians, "median"])) + max(map(len, [*ranges, "range"])) + len("boots")
    # Only the subject is shortened on a narrow terminal.
    width = max(8, min(SUBJECT, console.width - fixed - 18))
    for head in ("revision", "subject"):
        table.add_column(head, no_wrap=True)
    for head in ("median", "range", "boots"):
        table.add_column(head, justify="right", no_wrap=True)
    steps = {step.index: step for step in page.steps}
    for index, point in enumerate(page.points):
        if index in steps:
            step = steps[index]
            change = _change(step)
            change.truncate(width, overflow="ellipsis")
            table.add_row(Text("step", style="bold"), change)
        table.add_row(
            Text(point.revision.commit[:12]),
            Text(point.revision.subject[:width]),
            Text(medians[index]),
            Text(ranges[index]),
            Text(str(point.boots)),
        )
    console.print(table)
    for step in page.steps:
        _show_step(console, step)
    _show_remarks(console, page)


def _show_remarks(console: Console, page: TrendPage) -> None:
    remarks = []
    if page.shared:
        they = "revision is" if page.shared == 1 else f"{page.shared} revisions are"
        remarks.append(f"the first {they} of the default branch, before this branch forked off")
    if page.unplaced:
        remarks.append(f"{page.unplaced} more revisions were measured before the lab recorded their place")
    for remark in remarks:
        console.print(Text(remark, style="dim"))


def _show_step(console: Console, step: StepView) -> None:
    console.print(_step_line(step), soft_wrap=True)
    if step.pending:
        console.print(Text(f"  {step.why}", style="dim"), soft_wrap=True)
    if step.p_value is None:
        return
    if step.earliest != step.latest:
        console.print(
            Text(f"  it lies between {short(step.earliest)} and {short(step.latest)} (95 %)", style="dim")
        )
    for revision in step.suspects:
        console.print(Text(f"  {short(revision)}  {revision.author}"), soft_wrap=True)
    if step.unlisted:
        console.print(Text(f"  and {step.unlisted} more", style="dim"))


def _step_line(step: StepView) -> Text:
    where = f" with {short(step.bad)}" if len(step.suspects) == 1 else f" after {short(step.good)}"
    return _change(step).append(where)


def _change(step: StepView) -> Text:
    word = f"pending {step.verdict}" if step.pending else step.verdict
    text = Text(word, style=shown_verdict(step.verdict).style)
    if step.ratio is not None:
        text.append(f" {percent(100 * (step.ratio - 1))} %")
    if step.low is not None and step.high is not None:
        text.append(f" ({percent(100 * (step.low - 1))} … {percent(100 * (step.high - 1))})")
    return text


def spark(values: Sequence[float], width: int = 60) -> str:
    """Draw a course in one line of text; only the last `width` values."""
    shown = list(values)[-width:]
    low, high = min(shown), max(shown)
    reach = (high - low) or 1.0
    return "".join(BARS[round((value - low) / reach * (len(BARS) - 1))] for value in shown)


def short(revision: RevisionView) -> str:
    """Return a revision in a line."""
    return f"{revision.commit[:12]} {revision.subject[:SUBJECT]}".rstrip()


def bisection_step(step: BisectionStepView) -> Text:
    """Return one step as one line."""
    row = step.row
    text = Text(f"{row.number:>3}  {short(step.revision):<61}  ")
    text.append(f"{row.outcome or 'open':<9}", style=OUTCOME_STYLE.get(row.outcome, ""))
    if row.ratio is not None:
        text.append(f"  {percent(100 * (row.ratio - 1))} %")
    if row.outcome in {"skipped", "ambiguous", "fault", "again"} and row.reason:
        text.append(f"  {row.reason.splitlines()[0][:120]}", style="dim")
    if row.experiment_id:
        text.append(f"  (experiment {row.experiment_id})", style="dim")
    return text


def show_answer(console: Console, page: BisectionPage) -> None:
    """Print how a bisection ended."""
    if page.row.state == "failed":
        console.print(Text(f"stopped without an answer: {page.row.problem}", style="magenta"))
    elif page.row.answer == "no-step":
        console.print(Text(f"{short(page.bad)} does not show the step: there is nothing to search for"))
    elif page.row.answer == "untold":
        console.print(
            Text(f"{short(page.bad)} cannot be compared: {page.steps[-1].row.reason}", style="yellow")
        )
    elif page.shift:
        many = f"one of {len(page.suspects)} commits" if len(page.suspects) > 1 else "the commit"
        console.print(Text(f"{many} that changed {page.row.metric}:", style="bold"))
        for revision in page.suspects:
            console.print(Text(f"  {short(revision)}  {revision.author}"), soft_wrap=True)
        console.print(Text("  ").append_text(_shift(page.shift)), soft_wrap=True)
        if page.before and page.before.row.ratio is not None:
            before = f"  before it: {percent(100 * (page.before.row.ratio - 1))} %, at {short(page.before.revision)}"
            console.print(Text(before, style="dim"), soft_wrap=True)


def _shift(step: BisectionStep) -> Text:
    if step.ratio is None or step.low is None or step.high is None:
        return Text(step.verdict)
    interval = f"{percent(100 * (step.low - 1))} … {percent(100 * (step.high - 1))}"
    return Text(
        f"{step.verdict} of {percent(100 * (step.ratio - 1))} % ({interval}) against the good revision"
    )
