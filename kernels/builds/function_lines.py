# SPDX-License-Identifier: GPL-2.0-or-later
"""File and line of functions, from the line tables of their kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from kernels.artifacts.store import Artifact
from kernels.builds.decode_oops import CodeAddress, file_of, source_lines, symbols_of

# As profiles name functions: "down_read", "rxe_open [rdma_rxe]".
_FUNCTION = re.compile(r"([A-Za-z_][\w.]{0,500})(?: \[([\w-]{1,60})\])?")
# A path in the source. It comes from line tables, which a stranger's makefile may have written.
_PLACE = re.compile(r"[\w.+-][\w.+/-]{0,199}:\d{1,7}")


def function_lines(functions: Iterable[str], artifact: Artifact) -> dict[str, str]:
    """Return where the code of each function begins, such as "fs/kernfs/dir.c:1111".

    A function that is not in the line tables is left out, and so are functions of one name in several files.
    """
    by_file: dict[Path, dict[str, str]] = {}
    for function in functions:
        if match := _FUNCTION.fullmatch(function):
            by_file.setdefault(file_of(match[2] or "", artifact), {})[function] = match[1]
    starts: dict[str, str] = {}
    for file, names in by_file.items():
        if file.is_file():
            starts |= _lines(file, names)
    return starts


def _lines(file: Path, names: dict[str, str]) -> dict[str, str]:
    """Return where functions begin. names: the symbol of each."""
    symbols = symbols_of(file, set(names.values()))
    addresses = {
        name: {CodeAddress(section, value) for section, value, _ in places}
        for name, places in symbols.items()
    }
    lines = source_lines(file, sorted(set().union(*addresses.values())), outermost=True)
    starts = {}
    for function, name in names.items():
        places = {lines.get(address, "") for address in addresses.get(name, ())}
        if len(places) == 1 and _PLACE.fullmatch(place := places.pop()):
            starts[function] = place
    return starts
