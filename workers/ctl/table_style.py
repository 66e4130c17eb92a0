# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers and tables in the house's style for a terminal."""

import re

from rich import box
from rich.table import Table
from rich.text import Text

from lab import figures


def number(value: float | None) -> str:
    """Write a value with four significant digits: 0.01235, 3.771, 890.9, 41,250."""
    return _typographic(figures.number(value))


def percent(value: float | None, *, fine: bool = False) -> str:
    """Write a change with its sign, small ones finer: +1.3, −53.0, +0.51; `fine` gives all two digits."""
    return _typographic(figures.percent(value, fine=fine))


def prose(text: str) -> str:
    """Return a sentence with typographic minus signs before its numbers."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)


def _typographic(text: str) -> str:
    return "–" if text == figures.NONE else re.sub("^-", "−", text)


def placed(function: str, line: str, style: str = "") -> Text:
    """Return a function's name and below it the file and line where its code begins, if that is known."""
    return Text.assemble((function, style), (f"\n  {line}" if line else "", "dim"))


def plain_table(title: str) -> Table:
    """Return an empty table in the house's style."""
    return Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
    )


def plain_rows(*heads: str) -> Table:
    """Return an empty list with quiet heads, the first column never folded."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), collapse_padding=True, header_style="dim")
    for index, head in enumerate(heads):
        table.add_column(head, no_wrap=not index, overflow="fold")
    return table
