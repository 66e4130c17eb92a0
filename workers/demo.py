# SPDX-License-Identifier: GPL-2.0-or-later
"""`make demo`: replays the mails on real kernels and shows the results.

STORY names one of docs/stories/, or all; CLOCK=wall takes those of docs/stories/wall/. Interrupted or killed, the same
command continues where it stopped; run again, it builds nothing and measures again.
"""

from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from rich.text import Text

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.experiments.spec import read_spec
from lab.figures import duration
from workers import local
from workers.ctl import progressbar, servectl, terminal, watchctl
from workers.ctl.clients.choose import local_client
from workers.ctl.options import EXIT_LAB, out
from workers.ctl.program import run_program
from workers.serve import serve as serve_pages

CLOCKS = ("contention", "wall")
STORIES = Path(__file__).parents[1] / "docs" / "stories"
cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def stories(name: str, clock: str = CLOCKS[0]) -> list[Path]:
    """Return the descriptions of a story: NAME.toml, then NAME-*.toml. Raises BadParameter with the valid names."""
    if clock not in CLOCKS:
        raise typer.BadParameter(f'there is no clock "{clock}" for stories; there are {", ".join(CLOCKS)}')
    folder = STORIES / "wall" if clock == "wall" else STORIES
    paths = sorted(folder.glob("*.toml"), key=lambda path: path.stem)
    names = [path.stem for path in paths if "-" not in path.stem]
    if name != "all" and name not in names:
        raise typer.BadParameter(
            f'there is no story "{name}" for the clock {clock}; there are {", ".join([*names, "all"])}'
        )
    return [path for path in paths if name == "all" or path.stem.partition("-")[0] == name]


def replay(description: Path) -> tuple[int, int]:
    """Run one story from description to comparison; return the experiment's number and its exit code."""
    spec = read_spec(description.read_bytes(), description.parent)
    out.rule(Text(spec.name, style="bold"))
    with terminal.narration(out) as say:
        experiment_id = local.take_up(spec, say=say)
    started = monotonic()
    client = local_client()
    with progressbar.beside(out, client, experiment_id):
        local.work_through(experiment_id)
    out.print()
    experiment = client.experiment(experiment_id)
    watchctl.show_end(client, experiment)
    out.print(Text(f"{spec.name}: {duration(monotonic() - started)}", style="dim"))
    return experiment_id, watchctl.code(experiment)


@cli.command()
def demo(
    story: Annotated[str, typer.Option(help="kernfs, inode, buffer, factorial or all")] = "kernfs",
    clock: Annotated[str, typer.Option(help=" or ".join(CLOCKS))] = CLOCKS[0],
    serve: Annotated[int, typer.Option(help="0 ends instead of serving the pages")] = 1,
    port: Annotated[int, typer.Option(help="port on the loopback address")] = 8000,
) -> None:
    """Replay a story, print its tables, and serve its pages; without the pages, exit with 3 where a story failed."""
    chosen = stories(story, clock)
    if clock == "wall":
        out.print(
            "By the wall clock, two emulated CPUs hardly ever meet at a lock: expect inconclusive verdicts here."
        )
    local.prepare()
    for line in local.sweep():
        out.print(Text(f"removed what a killed process left: {line}", style="dim"))
    done = [replay(description) for description in chosen]
    if not serve:
        out.print("the pages: labctl serve --local")
        if EXIT_LAB in [code for _, code in done]:
            raise typer.Exit(EXIT_LAB)
        return
    for experiment_id, _ in done:
        out.print(Text(f"http://127.0.0.1:{port}/experiments/{experiment_id}/comparison/", style="bold"))
    servectl.say("serving until Ctrl-C, and running what is submitted there")
    raise typer.Exit(serve_pages(port, say=servectl.say))


def main() -> None:
    """Run the demo; an expected error is one line, its detail below."""
    run_program(cli, "demo")


if __name__ == "__main__":
    main()
