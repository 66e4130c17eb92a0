# SPDX-License-Identifier: GPL-2.0-or-later
"""What the command line shows while it works: what is being prepared, a live bar, how it ended.

Everything a submission or a guest may have named is printed as plain text (rich's `Text`),
never as markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from django.db import connection
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from lab.queries.experiments import ExperimentPage, experiment_page
from lab.queries.progress import Progress, progress

REFRESH_S = 0.5
PLAIN_REFRESH_S = 20.0


def duration(seconds: float) -> str:
    """Write a span of time: 47 s, 3 min 20 s."""
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60:02d} s"


@contextmanager
def narration(console: Console) -> Iterator[Callable[[str], None]]:
    """Tell what is being prepared: one changing line on a terminal, elsewhere each thing once.

    A line `thing: 40%` is the same thing at another moment.
    """
    if console.is_terminal:
        with console.status(Text("")) as status:
            yield lambda line: status.update(Text(line))
        return
    said: set[str] = set()

    def say(line: str) -> None:
        thing = line.partition(":")[0] if line.endswith("%") else line
        if thing not in said:
            said.add(thing)
            console.print(Text(f"  {thing}", style="dim"))

    yield say


def show_outcomes(console: Console, experiment_id: int) -> None:
    """Print what was built and what went wrong: one line each, where to read more behind it."""
    page = experiment_page(experiment_id)
    built = [build for build in page.builds if build.state == "built"]
    reused = sum(build.reused for build in built)
    line = f"{len(page.variants)} variants, {len(built) - reused} kernels built, {reused} found built"
    console.print(Text(f"{line}; {page.progress.boots_done} of {page.progress.boots_total} boots counted"))
    for build in page.builds:
        if build.problem:
            console.print(Text(f"{', '.join(build.variants)}: {build.problem}", style="red"))
            console.print(Text(f"  log: labctl log --build {build.id} --local", style="dim"))
    for run in page.runs:
        if run.problem and run.state == "failed":
            console.print(
                Text(f"{run.variant}, {run.case}, boot {run.block + 1}: {run.problem}", style="red")
            )
            console.print(Text(f"  console: labctl log --run {run.id} --local", style="dim"))
    left_out = Counter(run.problem for run in page.runs if run.state == "cancelled")
    for problem, count in left_out.items():
        console.print(Text(f"{count} boots left out: {problem}", style="yellow"))


def _bar(now: Progress, page: ExperimentPage, started: float, latest: Callable[[], str]) -> Group:
    """Draw one refresh of the live bar."""
    head = Text.assemble((f"{now.name}  ", "bold"), f"{duration(monotonic() - started)}")
    if now.eta_s is not None:
        head.append(f", about {duration(now.eta_s)} left", style="dim")
    counts = Text(
        f"builds {now.builds_over}/{now.builds_total}  boots {now.boots_over}/{now.boots_total}"
        + (f"  failed {now.boots_failed + now.builds_failed}" if now.boots_failed + now.builds_failed else "")
    )
    doing = [Text(f"{'building' if a.kind == 'build' else 'booting'} {a.label}") for a in now.now]
    if any(a.kind == "build" for a in now.now):
        doing.append(Text(f"  {latest()}"[:100], style="dim", no_wrap=True, overflow="ellipsis"))
    return Group(head, ProgressBar(total=100, completed=now.percent, width=60), counts, *doing)


@contextmanager
def live_bar(console: Console, experiment_id: int, latest: Callable[[], str]) -> Iterator[None]:
    """Show progress from the database while the caller works; plain lines where there is no terminal.

    latest: returns the line a build printed last.
    """
    done = Event()
    follow = _follow_live if console.is_terminal else _follow_plain
    thread = Thread(target=_closing(follow), args=(console, experiment_id, latest, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(timeout=5)


def _closing(follow: Callable[..., None]) -> Callable[..., None]:
    def run(*args: object) -> None:
        try:
            follow(*args)
        finally:
            connection.close()  # each thread has its own

    return run


def _follow_live(console: Console, experiment_id: int, latest: Callable[[], str], done: Event) -> None:
    started = monotonic()
    page = experiment_page(experiment_id)
    with Live(console=console, refresh_per_second=4, transient=False) as live:
        while True:
            last = done.wait(REFRESH_S)
            live.update(_bar(progress(experiment_id), page, started, latest))
            if last:
                return


def _follow_plain(console: Console, experiment_id: int, latest: Callable[[], str], done: Event) -> None:
    """For logs: a line whenever something else is being done, and every 20 seconds."""
    started = monotonic()
    said, said_at = "", 0.0
    while True:
        last = done.wait(REFRESH_S)
        now = progress(experiment_id)
        doing = "; ".join(f"{a.kind} {a.label}" for a in now.now)
        if last or (doing and doing != said) or monotonic() - said_at > PLAIN_REFRESH_S:
            counts = f"builds {now.builds_over}/{now.builds_total}, boots {now.boots_over}/{now.boots_total}"
            said_last = f" ({latest()})" if any(a.kind == "build" for a in now.now) else ""
            line = f"{duration(monotonic() - started):>12}  {counts}  {doing}{said_last}"
            console.print(Text(line.rstrip()), soft_wrap=True)
            said, said_at = doing, monotonic()
        if last:
            return
