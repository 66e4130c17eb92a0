# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl profile` and `labctl export profile`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from lab.errors import SpecError, UnknownRow
from lab.exports.forms import DIFFERENCE_FORMS, TREE_FORMS
from lab.queries.difference import caller_text, difference, variant_tree
from lab.queries.experiments import experiment_page
from lab.queries.profile import profile_page
from workers import local, profile_tables

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)
Local = Annotated[bool, typer.Option("--local", envvar="LABCTL_LOCAL", help="work in this process alone")]
ExperimentId = Annotated[int, typer.Argument(help="the experiment's number, as `labctl list` shows it")]
export = typer.Typer(no_args_is_help=True, help="Write what was measured into a file.")


def register(cli: typer.Typer) -> None:
    """Add the commands to labctl."""
    cli.command()(profile)
    export.command("profile")(export_profile)
    cli.add_typer(export, name="export")


def _ready(is_local: bool) -> None:
    if not is_local:
        raise SpecError(local.NOT_LOCAL)
    local.prepare()


def profile(
    experiment_id: ExperimentId,
    symbols: Annotated[str, typer.Option(help='split these by caller, such as "down_read up_read"')] = "",
    mail: Annotated[bool, typer.Option("--mail", help="print text trees as mails quote perf report")] = False,
    is_local: Local = False,
) -> None:
    """Print who calls the symbols a workload watches, and what certainly moved, all variants side by side."""
    _ready(is_local)
    asked = tuple(symbols.replace(",", " ").split())
    if not mail:
        profile_tables.show_profiles(out, experiment_id, asked)
        return
    for case in _profiled_cases(experiment_id):
        # Not by rich, which would fold the lines.
        sys.stdout.write(caller_text(experiment_id, case, variant="", symbols=asked))


def export_profile(
    experiment_id: ExperimentId,
    form: Annotated[
        str, typer.Option(help=f"{', '.join(TREE_FORMS)}; with --base {', '.join(DIFFERENCE_FORMS)}")
    ],
    file: Annotated[Path, typer.Option("--out", help="write here; - is standard output")],
    variant: Annotated[str, typer.Option(help="whose boots, all added up; the base's if not given")] = "",
    base: Annotated[str, typer.Option(help="write how the variant differs from this one")] = "",
    case: Annotated[
        int, typer.Option(help="which case, from 1; the first that is profiled if not given")
    ] = 0,
    is_local: Local = False,
) -> None:
    """Write the profile of a variant, or the difference of two, into a file."""
    _ready(is_local)
    case_id = _case(experiment_id, case)
    forms = DIFFERENCE_FORMS if base else TREE_FORMS
    if form not in forms:
        raise SpecError(f'form: there is no form "{form}" here; there are {", ".join(forms)}')
    body: str | bytes
    if base:
        body = DIFFERENCE_FORMS[form](difference(experiment_id, case_id, base=base, variant=variant))
    else:
        title, tree = variant_tree(experiment_id, case_id, variant=variant)
        body = TREE_FORMS[form](tree, title)
    _write(file, body.encode() if isinstance(body, str) else body)


def _write(file: Path, data: bytes) -> None:
    if str(file) == "-":
        sys.stdout.buffer.write(data)
        return
    try:
        file.write_bytes(data)
    except OSError as exc:
        raise typer.BadParameter(f'cannot write "{file}": {exc.strerror}') from exc
    err.print(Text(f"{len(data):,} bytes in {file}"))


def _profiled_cases(experiment_id: int) -> list[int]:
    cases = experiment_page(experiment_id).cases
    return [case.id for case in cases if profile_page(experiment_id, case.id, rows=0).columns]


def _case(experiment_id: int, number: int) -> int:
    if number:
        cases = experiment_page(experiment_id).cases
        if not 1 <= number <= len(cases):
            raise UnknownRow(f"experiment {experiment_id} has cases 1 to {len(cases)}, not {number}")
        return cases[number - 1].id
    profiled = _profiled_cases(experiment_id)
    if not profiled:
        raise UnknownRow(f"experiment {experiment_id} has no profile")
    return profiled[0]
