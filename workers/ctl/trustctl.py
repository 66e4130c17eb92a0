# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl lab withdraw-trust`: what was compiled of branches that the operator vouched for is no longer used."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.operations.withdrawal import MOST_LISTED, Losses, plan_withdrawal
from lab.operations.withdrawal import withdraw_trust as withdraw
from workers.ctl.options import out

_MIB = 1 << 20


def withdraw_trust(
    tree: Annotated[
        str, typer.Argument(metavar="TREE", help="name or address of the tree that you no longer vouch for")
    ],
    ref: Annotated[
        str,
        typer.Option(
            metavar="REF", help="its branch or tag, as KPERFLAB_VOUCHED named it; default: all of them"
        ),
    ] = "",
    yes: Annotated[
        bool, typer.Option("--yes", help="withdraw trust; without it, only show what that would cost")
    ] = False,
) -> None:
    """Stop using what was compiled before now, on all machines of the lab; kernels are built again when they are needed.

    First take the branch out of KPERFLAB_VOUCHED on every machine, and restart the lab's programs. This affects all
    trees: files compiled from one vouched branch are used in builds of every tree.
    """
    losses = plan_withdrawal(tree, ref)
    _show(losses)
    if not yes:
        _say("Nothing was changed: add --yes to withdraw trust")
        return
    withdrawn = withdraw(losses)
    _say(
        f"Trust is withdrawn: no build that begins from now on uses what was compiled before ({withdrawn.token})"
    )
    if withdrawn.removed:
        _say(f"Packs removed from the store: {withdrawn.removed}")
    if withdrawn.left:
        _say(f"Packs stay in the store, and no builder takes them: {withdrawn.left}")
    _say("Compiled files and layers from before are removed from each builder when it needs the room")
    _next(losses)


def _show(losses: Losses) -> None:
    table = Table("no longer used", "", "size", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, count, size in (
        ("compiled files on this machine", losses.files.count, losses.files.size),
        ("layers on this machine", losses.layers.count, losses.layers.size),
        ("packs in the store", len(losses.packs), losses.packs_size),
    ):
        table.add_row(name, f"{count:,}", f"{size / _MIB:,.1f} MiB")
    table.add_row("built kernels, for new experiments", f"{losses.kernels:,}", "")
    out.print(table)
    if losses.no_store:
        _say(f"The store's packs are not counted: {losses.no_store}")
    if not (losses.files.count or losses.layers.count or losses.packs or losses.kernels):
        _say("Nothing was compiled before: there is nothing to lose here")
    if losses.building:
        _say(
            f"Builds under way, which finish with what they started with: {losses.building}. No later build uses what they compile"
        )


def _next(losses: Losses) -> None:
    if numbers := losses.open_experiments:
        more = ", …" if len(numbers) > MOST_LISTED else ""
        listed = ", ".join(map(str, numbers[:MOST_LISTED]))
        _say(
            f"Open experiments may still boot kernels from before: {listed}{more}. To rebuild them: `labctl cancel N`, then `labctl rerun N`"
        )
    _say(
        "Results from before stay. `labctl rerun N` builds the kernels of experiment N again and measures them"
    )


def _say(line: str) -> None:
    out.print(Text(line), soft_wrap=True)
