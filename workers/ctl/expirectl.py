# SPDX-License-Identifier: GPL-2.0-or-later
"""`labctl lab expire`: the retention policy, shown or carried out."""

from collections.abc import Iterable
from typing import Annotated

import typer
from django.conf import settings
from rich.table import Table
from rich.text import Text

import workers.app  # noqa: F401  makes Django ready before lab is imported
from lab.operations.retention import Expiry, expire, plan_expiry
from lab.storage.inventory import KINDS, InventoryItem
from workers.ctl.options import out

_CALLED = {
    "artifact": "kernels",
    "run": "files of boots",
    "profile": "raw profiles",
    "source": "sources",
    "log": "logs of failed builds",
    "compiled": "compiled files",
}
_MIB = 1 << 20


def show_or_expire(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show what would be removed, and its size; remove nothing")
    ] = False,
) -> None:
    """Delete run files and kernels of old experiments that nothing needs; numbers and verdicts stay."""
    plan = plan_expiry()
    if plan.before is None:
        out.print("KPERFLAB_KEEP_DAYS is 0: nothing is ever removed", soft_wrap=True)
        return
    went = plan.going if dry_run else expire(plan)
    _show(plan, went)
    verb = "would be removed" if dry_run else "removed"
    out.print(
        Text(
            f"{len(went)} items {verb}, {_size(went)}: no longer needed, of experiments that ended before {plan.before:%Y-%m-%d} "
            f"(more than {settings.KEEP_DAYS:g} days ago)"
        ),
        soft_wrap=True,
    )
    if in_use := len(plan.going) - len(went):
        out.print(
            f"{in_use} more are in use now, or were just requested again: they are removed later",
            soft_wrap=True,
        )


def _show(plan: Expiry, went: tuple[InventoryItem, ...]) -> None:
    gone = {(holding.kind, holding.name) for holding in went}
    stays = [holding for holding in (*plan.going, *plan.staying) if (holding.kind, holding.name) not in gone]
    table = Table("", "go", "from here", "from the store", "stay", "size", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for kind in KINDS:
        going = [holding for holding in went if holding.kind == kind]
        staying = [stay for stay in stays if stay.kind == kind]
        if going or staying:
            here, stored = sum(holding.here for holding in going), sum(holding.stored for holding in going)
            table.add_row(
                _CALLED[kind],
                str(len(going)),
                f"{here / _MIB:,.1f} MiB",
                f"{stored / _MIB:,.1f} MiB",
                str(len(staying)),
                _size(staying),
            )
    if table.row_count:
        out.print(table)


def _size(items: Iterable[InventoryItem]) -> str:
    return f"{sum(holding.here + holding.stored for holding in items) / _MIB:,.1f} MiB"
