# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl`: the lab from a terminal.

With `--local` (or LABCTL_LOCAL=1) everything happens in this one process, over SQLite.
Exit codes of `submit`, `watch` and `compare`: 0 no regression, 1 a regression, 2 the data cannot
tell, 3 the lab failed; 64 the input was wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.preview import preview_experiment
from lab.queries.comparison import comparison_page
from lab.queries.executions import build_page, run_page
from lab.queries.experiments import experiment_list
from lab.spec import ExperimentSpec, read_spec
from workers import local, profile_tables, profilectl, tables, terminal, trendctl

EXIT_OK, EXIT_REGRESSION, EXIT_UNKNOWN, EXIT_LAB, EXIT_USAGE = 0, 1, 2, 3, 64

cli = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Patches to verdicts on real kernels.",
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

Local = Annotated[bool, typer.Option("--local", envvar="LABCTL_LOCAL", help="work in this process alone")]
ExperimentId = Annotated[int, typer.Argument(help="the experiment's number, as `labctl list` shows it")]


def _need_local(given: bool) -> None:
    if not given:
        err.print(Text(local.NOT_LOCAL))
        raise typer.Exit(EXIT_USAGE)
    local.prepare()


def exit_code(experiment_id: int) -> int:
    """Turn an experiment's end into the exit code a pipeline reads."""
    page = comparison_page(experiment_id)
    if page.state in {"failed", "cancelled"}:
        return EXIT_LAB
    if page.verdicts.get("regression"):
        return EXIT_REGRESSION
    return EXIT_UNKNOWN if page.verdicts.get("inconclusive") or not page.verdicts else EXIT_OK


@cli.command()
def submit(
    description: Annotated[Path, typer.Argument(help="the experiment's TOML file")],
    is_local: Local = False,
    wait: Annotated[bool, typer.Option(help="build, boot and compare before returning")] = True,
) -> None:
    """Submit an experiment; the same command after a crash goes on where it stopped."""
    _need_local(is_local)
    spec = _read(description)
    with terminal.narration(err) as say:
        experiment_id = local.take_up(spec, say=say)
    if not wait:
        out.print(f"experiment {experiment_id} is queued; run it: labctl run {experiment_id} --local")
        return
    run(experiment_id, is_local=True)


def _read(description: Path) -> ExperimentSpec:
    try:
        data = description.read_bytes()
    except OSError as exc:
        raise typer.BadParameter(f'cannot read "{description}": {exc.strerror}') from exc
    return read_spec(data, description.parent)


@cli.command()
def preview(
    description: Annotated[Path, typer.Argument(help="the experiment's TOML file")], is_local: Local = False
) -> None:
    """Show what an experiment would build, boot, take and be able to tell; queue nothing."""
    _need_local(is_local)
    spec = _read(description)
    with terminal.narration(err) as say:
        found = preview_experiment(spec=spec, on_progress=say)
    tables.show_preview(out, found)


@cli.command()
def run(experiment_id: ExperimentId, is_local: Local = False) -> None:
    """Build, boot and compare what is still open of an experiment."""
    _need_local(is_local)
    with terminal.live_bar(out, experiment_id, local.latest_build_line):
        local.work_through(experiment_id)
    _show(experiment_id)
    raise typer.Exit(exit_code(experiment_id))


def _show(experiment_id: int) -> None:
    terminal.show_outcomes(out, experiment_id)
    tables.show_comparison(out, experiment_id)
    profile_tables.show_profiles(out, experiment_id)


@cli.command("list")
def list_experiments(is_local: Local = False) -> None:
    """List experiments, newest first."""
    _need_local(is_local)
    for line in experiment_list():
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in line.verdicts.items())
        boots = f"{line.boots_over}/{line.boots_total} boots"
        out.print(Text(f"{line.id:>5}  {line.state:<9}  {boots:<14}  {line.name}  {verdicts}".rstrip()))


@cli.command()
def show(experiment_id: ExperimentId, is_local: Local = False) -> None:
    """Show how an experiment stands, or how it ended."""
    _need_local(is_local)
    _show(experiment_id)


@cli.command()
def compare(experiment_id: ExperimentId, is_local: Local = False) -> None:
    """Print the comparison; the exit code is the verdict."""
    _need_local(is_local)
    tables.show_comparison(out, experiment_id)
    raise typer.Exit(exit_code(experiment_id))


@cli.command()
def log(
    build: Annotated[int, typer.Option(help="print this build's log")] = 0,
    run_number: Annotated[int, typer.Option("--run", help="print this run's console")] = 0,
    is_local: Local = False,
) -> None:
    """Print a build's log or a run's console, whole."""
    _need_local(is_local)
    if bool(build) == bool(run_number):
        raise typer.BadParameter("give --build or --run")
    path = build_page(build).log if build else run_page(run_number).console
    try:
        text = Path(path or "").read_text(errors="replace")
    except OSError as exc:
        raise typer.BadParameter(f"its log is gone ({exc.strerror}): {path or 'none was kept'}") from exc
    # Control characters of an untrusted console must not reach the terminal.
    out.print(
        Text("".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text))
    )


@cli.command()
def cancel(experiment_id: ExperimentId, is_local: Local = False) -> None:
    """Cancel what is still open of an experiment; what is measured stays."""
    _need_local(is_local)
    local.cancel(experiment_id)
    out.print(f"experiment {experiment_id} is cancelled")


@cli.command()
def targets(is_local: Local = False) -> None:
    """List the machines kernels can boot on."""
    _need_local(is_local)
    for target in local.targets():
        out.print(Text(target))


@cli.command()
def serve(
    port: Annotated[int, typer.Option(help="port on the loopback address")] = 8000, is_local: Local = False
) -> None:
    """Serve the pages on this machine until interrupted."""
    _need_local(is_local)
    local.serve(port)


trendctl.register(cli)
profilectl.register(cli)


def main() -> None:
    """Run the command line; an expected error is one line, its detail below."""
    try:
        # Not standalone: typer would exit with 2 for a wrong call, which means "cannot tell" here.
        sys.exit(cli(standalone_mode=False) or EXIT_OK)
    except (KeyboardInterrupt, typer.Abort):
        err.print("\nstopped; the same command goes on from here")
        sys.exit(EXIT_LAB)
    except Exception as exc:
        sys.exit(_explain(exc))


def _explain(exc: Exception) -> int:
    """Print an error somebody expected; returns the exit code. Raises any other again."""
    # Typer keeps its click to itself: what a wrong call raises is known by how it formats itself.
    format_message = getattr(exc, "format_message", None)
    blame = getattr(exc, "blame", None)
    if format_message is None and blame is None:
        raise exc
    err.print(Text(f"labctl: {format_message() if format_message else exc}", style="red"))
    if detail := getattr(exc, "detail", ""):
        err.print(Text(detail, style="dim"))
    return EXIT_LAB if blame in {"lab", "kernel"} else EXIT_USAGE


if __name__ == "__main__":
    main()
