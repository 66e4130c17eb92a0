# SPDX-License-Identifier: GPL-2.0-or-later
"""Output of the command line while it works: preparation, live progress, the end of an experiment.

Everything a submission or a guest may have named is printed as plain text (rich's `Text`),
never as markup.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from rich.console import Console
from rich.text import Text

from lab.figures import counted, duration
from workers.ctl.clients.base import Json
from workers.ctl.plaintext import plain_line

_COMMIT = re.compile(r"[0-9a-f]{40,64}")


@contextmanager
def narration(console: Console) -> Iterator[Callable[[str], None]]:
    """Print what is being prepared: one changing line on a terminal, elsewhere each step once.

    Lines such as `thing: 40%` are progress of one step.
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
            console.print(Text(f"  {thing}", style="dim"), soft_wrap=True)

    yield say


def show_head(console: Console, experiment: Json, where: str) -> None:
    """Print an experiment's name and state, in two lines."""
    title = Text(f"experiment {experiment['id']}  ", style="dim").append(
        plain_line(experiment["name"]), style="not dim bold"
    )
    console.print(title.append(f"  {experiment['state']}"), soft_wrap=True)
    parts = [str(experiment.get(key) or "") for key in ("tree", "base_name", "target", "design")]
    # A base may have been named by its whole commit.
    parts[1] = parts[1][:12] if _COMMIT.fullmatch(parts[1]) else parts[1]
    console.print(
        Text("  " + ", ".join(plain_line(part) for part in parts if part) + f", on {where}", style="dim"),
        soft_wrap=True,
    )
    if experiment.get("priority", "normal") != "normal":
        console.print(Text(f"  priority {plain_line(experiment['priority'])}", style="dim"))
    if experiment.get("problem"):
        console.print(Text(plain_line(experiment["problem"]), style="red"), soft_wrap=True)
    if stalled := stalled_line(experiment["progress"]):
        console.print(Text(stalled, style="yellow"), soft_wrap=True)
    for line in doing_lines(experiment["progress"]):
        console.print(Text(f"  {line}"), soft_wrap=True)


def stalled_line(progress: Json) -> str:
    """Return why nothing works on an experiment and what helps, "" while something does; older servers do not say."""
    why = plain_line(progress.get("stalled") or "")
    return f"stalled: {why} {plain_line(progress.get('way_out') or '')}".rstrip() if why else ""


def doing_lines(progress: Json) -> list[str]:
    """Return what is being built and booted, or the place in the queue; older servers say less."""
    lines = [_doing(now) for now in progress["now"]]
    if (queue := progress.get("queue")) and not lines:
        starts = f"; about {duration(queue['starts_s'])}" if queue["starts_s"] else ""
        return [f"queued: {plain_line(queue['text'])}{starts}"]
    return lines


def _doing(now: Json) -> str:
    verb = "building" if now["kind"] == "build" else "booting"
    share = "" if now.get("percent") is None else f", {now['percent']} %"
    left = "" if now.get("left_s") is None else f", about {duration(now['left_s'])} left"
    return f"{verb} {plain_line(now['label'])}{share}{left}"


def show_outcomes(
    console: Console, experiment: Json, builds: Sequence[Json], runs: Sequence[Json], options: str
) -> None:
    """Print what was built and what went wrong: one line each, where to read more behind it.

    options: what a command that shows more needs, such as " --local".
    """
    built = [build for build in builds if build["state"] == "built"]
    reused = sum(_found_built(build, experiment) for build in built)
    now, parts = experiment["progress"], experiment["parts"]
    left_out = sum(bool(run["invalid"]) for run in runs)
    variants = sum(part["state"] != "pruned" for part in parts)
    console.print(
        Text(
            f"{counted(variants, 'variant')}, {counted(len(built) - reused, 'kernel')} built, {reused} found built; "
            f"{now['boots_done'] - left_out} of {counted(now['boots_total'], 'boot')} counted"
            + (f", {left_out} left out" if left_out else "")
        ),
        soft_wrap=True,
    )
    for build in builds:
        if build["problem"]:
            names = ", ".join(part["name"] for part in parts if part["build"] == build["id"])
            _went_wrong(
                console, f"{names}: {build['problem']}", f"log: labctl log --build {build['id']}{options}"
            )
    for run in runs:
        if run["problem"] and run["state"] == "failed":
            line = f"{run['variant_name']}, {run['workload']}, boot {run['block'] + 1}: {run['problem']}"
            _went_wrong(console, line, f"console: labctl log --run {run['id']}{options}")
    cancelled = Counter(run["problem"] for run in runs if run["state"] == "cancelled")
    for problem, number in cancelled.items():
        line = f"{counted(number, 'boot')} not made: {problem}"
        console.print(Text(plain_line(line), style="yellow"), soft_wrap=True)


def _found_built(build: Json, experiment: Json) -> bool:
    """Return whether nothing was compiled for this experiment: the artifact existed, or another experiment built it."""
    if build.get("cached") or build.get("reused"):
        return True
    over = build["finished_at"]
    return over is not None and datetime.fromisoformat(over) <= datetime.fromisoformat(
        experiment["created_at"]
    )


def _went_wrong(console: Console, line: str, more: str) -> None:
    console.print(Text(plain_line(line), style="red"), soft_wrap=True)
    console.print(Text(f"  {more}", style="dim"), soft_wrap=True)
