# SPDX-License-Identifier: GPL-2.0-or-later
"""Previews for a terminal.

Everything a submission or a guest may have named is printed as plain text (rich's `Text`),
never as markup.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from workers.ctl.doors.base import Json
from workers.ctl.plaintext import plain_line
from workers.ctl.table_style import plain_table
from workers.ctl.terminal import count, duration


def show_preview(console: Console, preview: Json) -> None:
    """Print what an experiment would be made of, what it takes, and the smallest change it would find."""
    table = plain_table("variants")
    for head in ("", "kernel", ""):
        table.add_column(head)
    for variant in preview["variants"]:
        table.add_row(*(Text(plain_line(variant[key])) for key in ("name", "state", "reason")))
    console.print(table)
    boots = f"{preview['boots']:,} boots"
    if preview["fewest"] != preview["boots"]:
        boots = f"{preview['fewest']:,} to {boots}"
    took = "nobody knows how long: it is the first of its kind here"
    if preview["seconds"] is not None:
        took = f"at most about {duration(preview['seconds'])}"
    console.print(Text(f"{count(preview['builds'], 'kernel')} to build, {boots}, {took}"), soft_wrap=True)
    for one in preview["detectable"]:
        found = "no history on this target yet"
        if one["change"] is not None:
            found = f"a change of {100 * one['change']:.1f} % would be found four times in five"
        told = plain_line(f"{one['case']} {one['metric']}: {found}")
        console.print(Text(f"  {told}", style="dim"), soft_wrap=True)
