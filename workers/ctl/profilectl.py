# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl profile` and `labctl export profile`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lab.profiles.exports.formats import DIFFERENCE_FORMS, TREE_FORMS
from workers.ctl import complete
from workers.ctl.clients.client import Client
from workers.ctl.options import (
    JSON,
    TABLE,
    ExperimentId,
    Format,
    err,
    out,
    print_json,
    through_client,
    write_file,
    write_out,
)

KINDS = ("cpu", "lock", "off-cpu", "exact", "waiting")
Kind = Annotated[
    str,
    typer.Option(
        help="cpu, lock or off-cpu (recorded waits), exact, or waiting (of the contention clock); default: the first there is",
        autocompletion=complete.one_of(*KINDS),
    ),
]
ProfileForm = Annotated[
    str,
    typer.Option(
        "--format",
        help=f"{', '.join(TREE_FORMS)}; with --base {', '.join(DIFFERENCE_FORMS)}",
        autocompletion=complete.one_of(*dict.fromkeys((*TREE_FORMS, *DIFFERENCE_FORMS))),
    ),
]


@through_client
def profile(
    client: Client,
    experiment_id: ExperimentId,
    symbols: Annotated[str, typer.Option(help='split these by caller, such as "down_read up_read"')] = "",
    mail: Annotated[bool, typer.Option("--mail", help="print call trees as text, as in perf report")] = False,
    kind: Kind = "",
    form: Format = TABLE,
) -> None:
    """Print the callers of the symbols that a workload watches, and significant changes, for all variants."""
    asked = symbols.replace(",", " ").split()
    if mail and form == JSON:
        raise typer.BadParameter("--mail prints text: leave --format out")
    if form == JSON:
        params = {"symbols": ",".join(asked), "kind": kind}
        print_json(client.document(f"experiments/{experiment_id}/profile/", params))
        return
    found: Any = (
        client.callers(experiment_id, asked, kind) if mail else client.profile(experiment_id, asked, kind)
    )
    if not found:
        err.print(f"experiment {experiment_id} has no profile: set measure.profile = true to record one")
    elif mail:
        write_out(found)
    else:
        from workers.ctl import profile_tables

        profile_tables.show_profiles(out, found)


@through_client
def export_profile(  # noqa: PLR0913
    client: Client,
    experiment_id: ExperimentId,
    form: ProfileForm,
    file: Annotated[Path, typer.Option("--out", help="output file; - is standard output")],
    variant: Annotated[str, typer.Option(help="variant whose boots are summed; default: the base")] = "",
    base: Annotated[str, typer.Option(help="write the difference to this variant")] = "",
    case: Annotated[
        int, typer.Option(help="number of the case, from 1; default: the first profiled case")
    ] = 0,
    kind: Kind = "",
    callers: Annotated[str, typer.Option(help="write the callers of this symbol; * for every symbol")] = "",
    callees: Annotated[str, typer.Option(help="write the callees of this symbol")] = "",
) -> None:
    """Write the profile of a variant, or the difference of two, into a file."""
    options = {"variant": variant, "base": base, "kind": kind, "case": str(case) if case else ""}
    options |= {"callers": callers, "callees": callees}
    params = {name: value for name, value in options.items() if value}
    write_file(file, client.profile_file(experiment_id, form, params))
