# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl submit`, `preview`, `rerun`, `cancel`, `run`, and what becomes of an experiment: `priority`, `keep`, `unkeep`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from workers.ctl import complete, terminal, watchctl
from workers.ctl.clients.base import Json
from workers.ctl.clients.client import Client
from workers.ctl.options import (
    EXIT_OK,
    JSON,
    PRIORITIES,
    TABLE,
    ExperimentId,
    Format,
    err,
    out,
    print_json,
    through_client,
    with_options,
)
from workers.ctl.submit_options import MEASURE_OPTIONS, SubmitOptions, description

Source = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="a description in TOML, or a series: an mbox or diff, - for standard input",
        show_default=False,
    ),
]


@through_client
@with_options(SubmitOptions, measure=MEASURE_OPTIONS)
def submit(
    client: Client,
    options: SubmitOptions,
    source: Source = None,
    wait: Annotated[
        bool | None,
        typer.Option(
            "--wait/--no-wait",
            help="wait for the verdict and exit with it; the default with --local",
        ),
    ] = None,
) -> None:
    """Submit an experiment: a file, a series, or a branch.

    With --local the same command after a crash continues where it stopped.
    Exit codes with --wait: 0 no regression, 1 a regression, 2 inconclusive, 3 the lab failed, 64 wrong input.
    """
    asked = description(source, options, client)
    with terminal.narration(err) as say:
        row = client.submit(asked, say)
    _follow(client, row, wait=client.local if wait is None else wait)


def _follow(client: Client, row: Json, *, wait: bool) -> None:
    """Print where a submitted experiment is; with wait, end with its verdict."""
    number, option = row["id"], watchctl.same(client)
    where = f"  {row['page']}" if row.get("page") else ""
    if wait:
        err.print(Text(f"experiment {number}{where}", style="dim"), soft_wrap=True)
        raise typer.Exit(watchctl.carry_out(client, number))
    # Standard output has the number alone, for scripts.
    err.print(Text(f"experiment {number} is {row['state']}{where}"), soft_wrap=True)
    err.print(Text(f"  {'labctl run' if client.local else 'labctl watch'} {number}{option}", style="dim"))
    out.print(str(number))


@through_client
@with_options(SubmitOptions, measure=MEASURE_OPTIONS)
def preview(client: Client, options: SubmitOptions, source: Source = None, form: Format = TABLE) -> None:
    """Show the builds, boots, time and detectable changes of an experiment; queue nothing."""
    from workers.ctl import tables

    asked = description(source, options, client)
    with terminal.narration(err) as say:
        answer = client.preview(asked, say)
    if form == JSON:
        print_json(answer)
        return
    tables.show_preview(out, answer)


@through_client
def rerun(
    client: Client,
    experiment_id: ExperimentId,
    wait: Annotated[bool, typer.Option("--wait", help="wait until it is compared")] = False,
) -> None:
    """Submit an experiment's description again."""
    _follow(client, client.rerun(experiment_id), wait=wait)


@through_client
def cancel(client: Client, experiment_id: ExperimentId) -> None:
    """Cancel the remaining builds and boots of an experiment; its results so far stay."""
    client.cancel(experiment_id)
    out.print(f"experiment {experiment_id} is cancelled")


@through_client
def priority(
    client: Client,
    experiment_id: ExperimentId,
    urgency: Annotated[
        str,
        typer.Argument(
            metavar="|".join(PRIORITIES),
            help="low, normal or high (operators only)",
            autocompletion=complete.one_of(*PRIORITIES),
        ),
    ],
) -> None:
    """Set the priority of an open experiment; higher priorities go first."""
    if urgency not in PRIORITIES:
        from lab.validation_messages import nearest

        raise typer.BadParameter(f'there is no priority "{urgency}"; {nearest(urgency, PRIORITIES)}')
    client.set_priority(experiment_id, urgency)
    out.print(f"experiment {experiment_id} has priority {urgency}")


@through_client
def keep(client: Client, experiment_id: ExperimentId) -> None:
    """Protect an experiment's logs, profiles and kernels from the retention policy."""
    client.keep(experiment_id, kept=True)
    out.print(f"experiment {experiment_id} is kept")


@through_client
def unkeep(client: Client, experiment_id: ExperimentId) -> None:
    """Let the retention policy delete an experiment's logs, profiles and kernels again; numbers and verdicts stay."""
    client.keep(experiment_id, kept=False)
    out.print(f"experiment {experiment_id} is no longer kept")


@through_client
def run(client: Client, experiment_id: ExperimentId) -> None:
    """Run the remaining builds, boots and comparisons of an experiment on this machine."""
    client.experiment(experiment_id)
    if not client.local:
        raise typer.BadParameter(
            f"the workers of {client.where} run it; labctl watch {experiment_id} shows it"
        )
    raise typer.Exit(watchctl.carry_out(client, experiment_id) or EXIT_OK)
