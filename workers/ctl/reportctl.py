# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl compare`, `reply` and `export N`: a comparison on the terminal, and in the forms that others read."""

import subprocess
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.text import Text

from kernels.processes.environment import passing
from lab.comparisons.exports.formats import OF_DATA, REPORT_FORMS
from lab.comparisons.reply.reply import ReplyOptions, write_reply
from lab.comparisons.shape import FORMAT, ComparisonData
from lab.errors import SpecError
from workers.ctl import complete
from workers.ctl.clients.client import Client
from workers.ctl.clients.errors import ServerStrange
from workers.ctl.options import (
    TABLE,
    ExperimentId,
    err,
    format_option,
    out,
    through_client,
    write_file,
    write_out,
)
from workers.ctl.preferences import OF_GIT

Link = Annotated[
    str,
    typer.Option(
        envvar="KPERFLAB_URL",
        help="with --local: the lab's own address, for links: https://lab.example",
    ),
]
Form = Annotated[str, format_option(TABLE, *OF_DATA)]
ReportForm = Annotated[
    str,
    typer.Option("--format", help=", ".join(REPORT_FORMS), autocompletion=complete.one_of(*REPORT_FORMS)),
]


@through_client
def compare(client: Client, experiment_id: ExperimentId, form: Form = TABLE, link: Link = "") -> None:
    """Print the comparison; the exit code is the verdict.

    0 no regression, 1 a regression, 2 inconclusive, 3 the lab failed.
    """
    data = comparison(client, experiment_id, link)
    if form == TABLE:
        from workers.ctl import comparison_tables

        comparison_tables.show_comparison(out, data)
        if data["experiment"]["clock"] == "instructions":
            _show_exact(client, experiment_id)
    else:
        write_form(data, form)
    raise typer.Exit(data["exit_code"])


def write_form(data: ComparisonData, form: str) -> None:
    """Write a comparison in a form that others read."""
    write_out(REPORT_FORMS[form].render(data))


def _show_exact(client: Client, experiment_id: int) -> None:
    """Print where the instructions of each change went, if boots were profiled exactly."""
    from workers.ctl.profile_tables import as_attributes, show_exact

    cases = [case["profile"] for case in client.profile(experiment_id, [], "exact")]
    changes = [change for case in cases for change in case["changes"]]
    if changes:
        show_exact(out, as_attributes(changes), brief=True)
        out.print(f"  all functions: labctl profile {experiment_id} --kind exact", style="dim", markup=False)


@through_client
def reply(
    client: Client,
    experiment_id: ExperimentId,
    patch: Annotated[str, typer.Option("--for", help="only about this switch")] = "",
    sign: Annotated[
        str,
        typer.Option(
            metavar='"NAME <ADDRESS>"',
            help="end with a Tested-by of this person; `me` is git's user.name and user.email",
        ),
    ] = "",
    link: Link = "",
) -> None:
    """Print a reply to the mailing list: the conclusion, the tables, method and environment.

    A Tested-by is written only if the kernels built and booted and nothing got worse; otherwise it says why not.
    """
    options = ReplyOptions(patch=patch, signer=_committer() if sign == "me" else sign)
    mail = write_reply(comparison(client, experiment_id, link), options)
    write_out(mail.text)
    if mail.unsigned:
        err.print(Text(mail.unsigned, style="yellow"))


def _committer() -> str:
    """Name and address that git knows. Raises SpecError where it knows none."""
    known = []
    for key in ("user.name", "user.email"):
        command = ["git", "config", key]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10, check=False, env=passing(*OF_GIT)
        )
        known.append(done.stdout.strip())
    if not all(known):
        raise SpecError('sign: git knows no user.name and user.email here; give --sign "Name <address>"')
    return f"{known[0]} <{known[1]}>"


def comparison(client: Client, experiment_id: int, link: str = "") -> ComparisonData:
    """Return the comparison of an experiment. Raises ServerStrange where a newer lab sends it in another form."""
    data = client.comparison(experiment_id, link=link)
    if data.get("format") != FORMAT:
        raise ServerStrange(
            f"{client.where} writes comparisons of format {data.get('format')}, this labctl reads {FORMAT}: update the older of the two"
        )
    return cast("ComparisonData", data)


@through_client
def export_report(
    client: Client,
    experiment_id: ExperimentId,
    form: ReportForm,
    file: Annotated[Path, typer.Option("--out", help="output file; - is standard output")] = Path("-"),
    origin: Annotated[str, typer.Option(help="origin, as registered with KCIDB")] = "",
    link: Link = "",
) -> None:
    """Write an experiment's comparison or reproducer in an export format."""
    if client.local:
        _check_form(form, tuple(REPORT_FORMS))
    elif origin:
        raise typer.BadParameter(f"--origin is for --local: {client.where} reports under its own name")
    fields = {key: value for key, value in (("origin", origin), ("link", link)) if value}
    write_file(file, client.export(experiment_id, form, fields))


def _check_form(form: str, valid: tuple[str, ...]) -> None:
    if form not in valid:
        from lab.validation_messages import nearest

        raise SpecError(f'format: there is no format "{form}"; {nearest(form, valid)}')
