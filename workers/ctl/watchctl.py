# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl watch`, `show`, `list`, `log` and `notes`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.text import Text

from lab.comparisons.exports.formats import OF_DATA
from lab.statistics.verdict_words import VERDICTS, counted_verdicts
from workers.ctl import complete, notice, progressbar, terminal
from workers.ctl.clients.base import Json
from workers.ctl.clients.client import Client
from workers.ctl.options import (
    EXIT_LAB,
    JSON,
    PRIORITIES,
    TABLE,
    ExperimentId,
    Format,
    err,
    format_option,
    out,
    print_json,
    through_client,
    write_out,
)
from workers.ctl.plaintext import plain_line, plain_text
from workers.ctl.table_style import plain_rows, prose

STATES = ("queued", "running", "done", "failed", "cancelled")
FOLLOW_S = 1.0
END_WORDS = {0: "no regression", 1: "a regression", 2: "inconclusive", 3: "the lab failed"}


def same(client: Client) -> str:
    """Return the option that selects the same client, for the commands that we suggest."""
    return " --local" if client.local else ""


def stay(client: Client, experiment_id: int, form: str = TABLE) -> int:
    """Follow an experiment that others carry out to its end; returns its exit code."""
    from workers.ctl import reportctl

    with _interrupted_says(
        f"experiment {experiment_id} continues on {client.where}; to follow it: labctl watch {experiment_id}{same(client)}"
    ):
        experiment = progressbar.follow(err, client, experiment_id)
    if form == TABLE:
        show_end(client, experiment)
    else:
        reportctl.write_form(reportctl.comparison(client, experiment_id), form)
    return code(experiment)


def carry_out(client: Client, experiment_id: int) -> int:
    """Do the open work of an experiment in this process, or follow a server's workers; returns its exit code."""
    if not client.local:
        return stay(client, experiment_id)
    from workers import local

    with (
        _interrupted_says("stopped; the same command continues from here"),
        progressbar.beside(err, client, experiment_id),
    ):
        local.work_through(experiment_id)
    experiment = client.experiment(experiment_id)
    show_end(client, experiment)
    return code(experiment)


@contextmanager
def _interrupted_says(line: str) -> Iterator[None]:
    """Print a line if the block is interrupted; typer then ends the command with 130."""
    try:
        yield
    except KeyboardInterrupt:
        err.print(Text(f"\n{line}"), soft_wrap=True)
        raise


def code(experiment: Json) -> int:
    """Return the exit code of an experiment that is over."""
    exit_code = experiment.get("exit_code")
    return EXIT_LAB if exit_code is None else int(exit_code)


def show_end(client: Client, experiment: Json) -> None:
    """Print an experiment: what it is, what went wrong, and its comparison."""
    from workers.ctl import comparison_tables, reportctl

    number = int(experiment["id"])
    terminal.show_head(out, experiment, client.where)
    terminal.show_outcomes(out, experiment, client.builds(number), client.runs(number), same(client))
    if any(experiment.get("verdicts", {}).values()) or experiment["progress"]["finished"]:
        comparison_tables.show_comparison(out, reportctl.comparison(client, number))
    # Of each case's usual kind; the contention clock takes profiles without a request for them.
    if profiled := client.profile(number, (), ""):
        from workers.ctl import profile_tables

        profile_tables.show_profiles(out, profiled)


@through_client
def watch(
    client: Client,
    experiment_id: ExperimentId,
    notify: Annotated[
        bool,
        typer.Option("--notify", help="show a desktop notification at the end, or ring the terminal's bell"),
    ] = False,
    form: Annotated[str, format_option(TABLE, *OF_DATA)] = TABLE,
) -> None:
    """Follow an experiment to its end, print its comparison, and exit with the verdict.

    0 no regression, 1 a regression, 2 inconclusive, 3 the lab failed.
    """
    exit_code = stay(client, experiment_id, form)
    if notify:
        notice.show(
            f"Experiment {experiment_id}: {END_WORDS.get(exit_code, 'over')}",
            _headline(client, experiment_id),
        )
    raise typer.Exit(exit_code)


def _headline(client: Client, experiment_id: int) -> str:
    from workers.ctl import reportctl

    conclusion = reportctl.comparison(client, experiment_id).get("conclusion")
    return str(conclusion["headline"]) if conclusion else ""


@through_client
def show(client: Client, experiment_id: ExperimentId, form: Format = TABLE) -> None:
    """Show the progress of an experiment, or its result."""
    if form == JSON:
        print_json(client.document(f"experiments/{experiment_id}/"))
    else:
        show_end(client, client.experiment(experiment_id))


@through_client
def list_experiments(  # noqa: PLR0913  an argument is an option
    client: Client,
    state: Annotated[str, typer.Option(help=", ".join(STATES), autocompletion=complete.one_of(*STATES))] = "",
    tree: Annotated[str, typer.Option(help="only of this tree", autocompletion=complete.trees)] = "",
    verdict: Annotated[
        str, typer.Option(help=", ".join(VERDICTS), autocompletion=complete.one_of(*VERDICTS))
    ] = "",
    submitter: Annotated[str, typer.Option(help="only of this person")] = "",
    priority: Annotated[
        str, typer.Option(help=", ".join(PRIORITIES), autocompletion=complete.one_of(*PRIORITIES))
    ] = "",
    search: Annotated[
        str, typer.Option(help="only where name, tree, base or submitter contains this text")
    ] = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="maximum number of rows")] = 30,
    form: Format = TABLE,
) -> None:
    """List experiments, newest first."""
    _one_of("state", state, STATES)
    _one_of("verdict", verdict, tuple(VERDICTS))
    _one_of("priority", priority, PRIORITIES)
    filters = {"state": state, "tree": tree, "verdict": verdict, "submitter": submitter}
    filters |= {"priority": priority, "search": search}
    lines = client.experiments(filters, limit)
    if form == JSON:
        print_json(lines)
        return
    if not lines:
        err.print(Text(f"no experiment{' like that' if any(filters.values()) else ' yet'} on {client.where}"))
        return
    table = plain_rows("no", "state", "boots", "name", "answer")
    for line in lines:
        table.add_row(*(Text(cell) for cell in _cells(line)))
    out.print(table)


def _cells(line: Json) -> tuple[str, str, str, str, str]:
    # An older server sends no headline, nor is there one for experiments that ended there.
    counted = ", ".join(count for _, count in counted_verdicts(line["verdicts"]))
    answer = prose(line.get("headline") or counted)
    boots = f"{line['boots_over']}/{line['boots_total']}"
    return str(line["id"]), str(line["state"]), boots, plain_line(line["name"]), plain_line(answer)


def _one_of(option: str, value: str, valid: tuple[str, ...]) -> None:
    if value and value not in valid:
        from lab.validation_messages import nearest

        raise typer.BadParameter(f'--{option}: there is no {option} "{value}"; {nearest(value, valid)}')


@through_client
def log(
    client: Client,
    build: Annotated[int, typer.Option(help="print this build's log")] = 0,
    run_number: Annotated[int, typer.Option("--run", help="print this run's console")] = 0,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="follow until it ends")] = False,
) -> None:
    """Print a build's log or a run's console."""
    from time import sleep

    if bool(build) == bool(run_number):
        raise typer.BadParameter("give either --build or --run")
    offset = 0
    while True:
        part = client.log("builds" if build else "runs", build or run_number, offset)
        # What a guest wrote must not command the terminal.
        if not write_out(plain_text(part.text)):
            return
        offset = part.end
        if part.complete or (not part.text and not follow):
            if not offset:
                what = f"build {build}" if build else f"run {run_number}"
                err.print(f"{what} has no log: it has not begun, or its kernel was already built")
            return
        if not part.text:
            sleep(FOLLOW_S)


@through_client
def notes(
    client: Client,
    experiment_id: ExperimentId,
    add: Annotated[str, typer.Option(help="add this note")] = "",
    form: Format = TABLE,
) -> None:
    """Show the notes on an experiment, or add one."""
    if add:
        client.write_note(experiment_id, add)
    said = client.notes(experiment_id)
    if form == JSON:
        print_json(said)
        return
    if not said:
        client.experiment(experiment_id)  # refuses the number of no experiment
        err.print(f"experiment {experiment_id} has no notes yet")
    for note in said:
        head = (
            f"{plain_line(note.get('author') or 'somebody')}, {plain_line(note.get('created_at', ''))[:16]}"
        )
        out.print(Text(head.replace("T", " "), style="dim"))
        out.print(Text(plain_text(str(note.get("text", "")))))
