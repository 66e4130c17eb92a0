# SPDX-License-Identifier: GPL-2.0-or-later
"""Previews for a terminal.

Everything a submission or a guest may have named is printed as plain text (rich's `Text`),
never as markup.
"""

from rich.console import Console
from rich.text import Text

from lab.figures import counted, duration
from workers.ctl.clients.base import Json
from workers.ctl.plaintext import plain_line
from workers.ctl.table_style import plain_table


def show_preview(console: Console, preview: Json) -> None:
    """Print what an experiment would be made of, what it takes, and the smallest change it would find."""
    table = plain_table("variants")
    for head in ("", "kernel", ""):
        table.add_column(head)
    for variant in preview["variants"]:
        table.add_row(*(Text(plain_line(variant[key])) for key in ("name", "state", "reason")))
    console.print(table)
    for switch in preview.get("switches", ()):
        _show_switch(console, switch)
    boots = f"{preview['boots']:,} boots"
    if preview["fewest"] != preview["boots"]:
        boots = f"{preview['fewest']:,} to {boots}"
    line = f"{counted(preview['builds'], 'kernel')} to build, {boots}, {_time(preview)}"
    console.print(Text(plain_line(line)), soft_wrap=True)
    for detectable in preview["detectable"]:
        # A lab of an older version does not say why.
        remark = detectable.get("why") or "no history on this target yet"
        if detectable["change"] is not None:
            remark = f"a change of {100 * detectable['change']:.1f} % would be found four times in five{_mark(detectable)}"
        text = plain_line(f"{detectable['case']} {detectable['metric']}: {remark}")
        console.print(Text(f"  {text}", style="dim"), soft_wrap=True)


def _time(preview: Json) -> str:
    if preview["seconds"] is None:
        return "duration unknown: the first of its kind here"
    bound = "about" if preview.get("estimate") else "at most about"
    if preview.get("at_least"):
        bound = "at least about"
    return f"{bound} {duration(preview['seconds'])}{_mark(preview)}"


def _mark(part: Json) -> str:
    """Return the words that mark a figure as an estimate, in brackets; nothing for a lab of an older version."""
    return f" ({part['estimate']})" if part.get("estimate") else ""


def _show_switch(console: Console, switch: Json) -> None:
    """Print the patches of a switch by number and title, and what was repaired or left out."""
    patches = switch["patches"]
    if switch["kind"] != "patch":
        return
    many = "1 patch" if len(patches) == 1 else f"{len(patches)} patches"
    console.print(Text(plain_line(f"{switch['name']}: {many}")), soft_wrap=True)
    for place, patch in enumerate(patches, 1):
        of = f"{patch['number']}/{patch['total']}" if patch["total"] else str(place)
        version = f"v{patch['version']} " if patch["version"] > 1 else ""
        console.print(Text(plain_line(f"  {version}{of} {patch['title']}")), soft_wrap=True)
    for head, lines in (("", switch["notes"]), ("repaired: ", switch["report"])):
        for line in lines:
            console.print(Text(plain_line(f"  {head}{line}"), style="dim"), soft_wrap=True)
