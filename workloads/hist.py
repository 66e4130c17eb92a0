# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the `hist` files of kernel event triggers (Documentation/trace/histogram.rst)."""

import re
from dataclasses import dataclass

from workloads.errors import OutputUnreadable

_ROW = re.compile(r"^\{ (?P<keys>.*?)\s\} hitcount:\s*(?P<count>\d+)", re.MULTILINE | re.DOTALL)
_INFO = re.compile(
    r"^# trigger info: (?P<trigger>.*?)(?: if (?P<filter>.*?))? \[(?:active|paused)\]$", re.MULTILINE
)
_TOTAL = re.compile(r"^\s+(Hits|Dropped): (\d+)$", re.MULTILINE)
_FRAME = re.compile(r"^(?P<symbol>[^+\s]+)\+0x(?P<offset>[0-9a-f]+)/0x[0-9a-f]+(?: \[\S+\])?$")
# The return probe's own frames: the innermost ones, up to the function that was returned to.
_PROBE = re.compile(r"rethook|kretprobe")


@dataclass(frozen=True, slots=True)
class Histogram:
    """One trigger's counts: the texts of the keys, each with its number of hits."""

    filter: str
    rows: tuple[tuple[str, int], ...]
    dropped: int

    @property
    def hits(self) -> int:
        """Return the number of counted events."""
        return sum(count for _keys, count in self.rows)


def parse_hist(text: str) -> list[Histogram]:
    """The histograms of one or several hist files in a row. Raises OutputUnreadable."""
    histograms = []
    for part in text.split("# event histogram\n")[1:]:
        info = _INFO.search(part)
        totals = {name: int(number) for name, number in _TOTAL.findall(part)}
        rows = tuple((row["keys"].strip(), int(row["count"])) for row in _ROW.finditer(part))
        if not info or sum(count for _keys, count in rows) + totals.get("Dropped", 0) < totals.get(
            "Hits", -1
        ):
            raise OutputUnreadable("a histogram of the kernel's is incomplete", text)
        histograms.append(Histogram(info["filter"] or "", rows, totals.get("Dropped", 0)))
    if text.strip() and not histograms:
        raise OutputUnreadable("this is not a histogram of the kernel's", text)
    return histograms


def read_stack(keys: str) -> list[str]:
    """A stack key's frames, innermost first, as bpftrace writes them: `iget_locked+252`."""
    # The key is called common_stacktrace since 6.3.
    keys = keys.removeprefix("common_").removeprefix("stacktrace:")
    lines = [line.strip() for line in keys.splitlines() if line.strip()]
    probe = max((index for index, line in enumerate(lines) if _PROBE.search(line)), default=-1)
    return [_frame(line) for line in lines[probe + 1 :]]


def read_number(keys: str, name: str) -> int:
    """The value of a single numeric key. Raises OutputUnreadable."""
    match = re.fullmatch(rf"{name}:\s*(\d+)", keys)
    if not match:
        raise OutputUnreadable(f"a histogram's key is not {name}: {keys!r}")
    return int(match[1])


def _frame(line: str) -> str:
    match = _FRAME.match(line)
    return f"{match['symbol']}+{int(match['offset'], 16)}" if match else line
