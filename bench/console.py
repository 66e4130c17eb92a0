# SPDX-License-Identifier: GPL-2.0-or-later
"""Crashes on labelled consoles that our rules and LAVA's find, false reports, and reading speed.

Two corpora: consoles that our own guests printed when they were made to fail (workers/tests/golden/consoles/corpus),
and syzkaller's pkg/report/testdata/linux/report or a part of it, which is not part of the project. A file's header
lines up to the first empty one say what a detector must find; without a TITLE it must find nothing. `half` says
what holds for each half of a corpus, split by a hash of the names, so that rules tuned on one show it.

    python -m bench.console [DIRECTORY...]
"""

import hashlib
import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench.command import run
from workers.collect.console_rules import FORMS
from workers.collect.dmesg import Finding, scan_console

ROOT = Path(__file__).resolve().parents[1]
FOREIGN = Path(os.environ.get("CONSOLE_LOGS", ROOT.parent / "shared" / "data" / "console-logs"))
OWN = ROOT / "workers" / "tests" / "golden" / "consoles" / "corpus"
# What syzkaller's own programs say when they fail.
NOT_OF_THE_KERNEL = {"SYZ_FAILURE"}
HEADER_LINE = re.compile(r"#.*|[A-Z][A-Z ]*:.*")
NAMES_FUNCTION = re.compile(r" in ([A-Za-z_]\w*)$")
# LAVA's patterns, as a peer: lava_dispatcher/utils/messages.py at 02493d77. It waits for any of these while a board boots.
LAVA_STARTS = (
    rb"-\[ cut here \]",
    rb"Unhandled fault",
    rb"BUG: KCSAN:",
    rb"BUG: KASAN:",
    rb"BUG: KFENCE:",
    rb"Oops(?: -|:)",
    rb"WARNING:",
    rb"(kernel BUG at|BUG:)",
    rb"invalid opcode:",
    rb"Kernel panic - not syncing",
    rb"U-Boot SPL 20[0-9][0-9]",
)
LAVA = re.compile(b"|".join(LAVA_STARTS))

SPEED_BYTES = 64 << 20
TRIES = 5
# What costs most to read, of all that was tried (workers/tests/test_console_hostile.py): by name, what repeats.
WORST = {
    "nothing but BUG lines": b"BUG: x y z\n",
    "nothing but reports": b"[    1.000000] kernel BUG at fs/inode.c:632!\n",
    "every word a report has, one a line": b"\n".join(FORMS) + b"\n",
    "lines that are almost reports": b"".join(b'x[1]: "' + word + b'"\n' for word in FORMS),
    "ordinary lines": b"[    1.000000] pci 0000:00:01.0: [8086:7000] type 00 class 0x060100\n",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One labelled console; the title is empty where nothing is wrong."""

    name: str
    title: str
    type: str
    corrupted: bool
    console: bytes

    @property
    def function(self) -> str:
        """Return the function that the title names, or nothing."""
        match = NAMES_FUNCTION.search(self.title)
        return match[1] if match and match[1] != "corrupted" else ""

    @property
    def half(self) -> int:
        """Return 0 or 1, whatever the console says."""
        return hashlib.sha256(self.name.encode()).digest()[0] & 1


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of one detector over one set of consoles."""

    crashes: int
    seen: int
    clean: int
    flagged: int

    def __str__(self) -> str:
        return f"{self.seen:4}/{self.crashes:<4} {self.seen / max(1, self.crashes):6.1%}  {self.flagged:3}/{self.clean}"


def main(
    directories: Annotated[list[Path] | None, typer.Argument()] = None,
    show: Annotated[bool, typer.Option("--show", help="print each miss")] = False,
) -> None:
    """Print detection, imagination and speed of both; the misses by name."""
    everything: list[Sample] = []
    for directory in directories or [FOREIGN, OWN]:
        if not directory.is_dir():
            print(f"no corpus in {directory.name}: nothing measured")
            continue
        samples = [read_sample(path) for path in sorted(directory.glob("*.txt"))]
        everything += samples
        report(directory.name, samples, show)
    if everything:
        lines = (line for sample in everything for line in sample.console.split(b"\n"))
        print_speeds([line for line in lines if not scan_console(line)])


def report(name: str, samples: list[Sample], show: bool) -> None:
    """Print the table of one corpus."""
    findings = {sample.name: scan_console(sample.console) for sample in samples}
    print(f"{name:24} {'detected':>18}  flagged clean")
    for part, chosen in (
        ("all", samples),
        ("half 0", [sample for sample in samples if not sample.half]),
        ("half 1", [sample for sample in samples if sample.half]),
    ):
        ours = score(chosen, lambda sample: bool(findings[sample.name]))
        print(f"  {part:8} ours           {ours}")
        print(
            f"  {part:8} LAVA's         {score(chosen, lambda sample: LAVA.search(sample.console) is not None)}"
        )
    named = [sample for sample in samples if sample.function and findings[sample.name]]
    right = [
        sample
        for sample in named
        if any(finding.frame == sample.function for finding in findings[sample.name])
    ]
    print(f"  function that the label names is a finding's frame: {len(right)}/{len(named)}")
    whole = [sample for sample in samples if sample.title and findings[sample.name]]
    agree = [sample for sample in whole if findings[sample.name][0].corrupted == sample.corrupted]
    print(f"  marked as cut off or mixed as the label says: {len(agree)}/{len(whole)}")
    if show:
        for sample in samples:
            if _is_crash(sample) != bool(findings[sample.name]) and sample.type not in NOT_OF_THE_KERNEL:
                _show(sample, findings[sample.name])


def score(samples: list[Sample], sees: Callable[[Sample], bool]) -> Score:
    """Return how one detector does on some consoles."""
    crashes = [sample for sample in samples if _is_crash(sample)]
    clean = [sample for sample in samples if not sample.title]
    return Score(len(crashes), sum(map(sees, crashes)), len(clean), sum(map(sees, clean)))


def read_sample(path: Path) -> Sample:
    """Return header and console of one file; a file may lack the header."""
    text = path.read_bytes()
    header: dict[str, str] = {}
    lines = text.split(b"\n")
    for number, line in enumerate(lines):
        words = line.decode(errors="replace")
        if not HEADER_LINE.fullmatch(words):
            text = b"\n".join(lines[number:])
            break
        key, _, value = words.partition(":")
        header.setdefault(key, value.strip())
    return Sample(
        path.name, header.get("TITLE", ""), header.get("TYPE", ""), header.get("CORRUPTED", "") == "Y", text
    )


def _is_crash(sample: Sample) -> bool:
    return bool(sample.title) and sample.type not in NOT_OF_THE_KERNEL


def _show(sample: Sample, findings: list[Finding]) -> None:
    imagined = "; ".join(f"{finding.kind}: {finding.title}" for finding in findings)
    print(f"{'missed' if sample.title else 'imagined'} {sample.name}: {sample.title or imagined}")


def print_speeds(ordinary: list[bytes]) -> None:
    """Print bytes a second on a long console of ordinary lines with ten panics in it, and on the worst consoles."""
    text = long_console(ordinary)
    readers: dict[str, Callable[[bytes], object]] = {
        "ours": scan_console,
        "LAVA's": lambda text: sum(1 for _ in LAVA.finditer(text)),
    }
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in readers}
    for _ in range(TRIES):
        # In turn: whatever else this machine does slows down both.
        for name, read in readers.items():
            took[name].append(_seconds(read, text))
    for name, tries in took.items():
        cpu, wall = (len(text) / min(column) / 1e6 for column in zip(*tries, strict=True))
        print(f"{name:7} reads {cpu:4.0f} MB/s of CPU time, {wall:4.0f} MB/s by the clock")
    ratios = sorted(lava[1] / ours[1] for ours, lava in zip(*took.values(), strict=True))
    print(
        f"by the clock, ours is {ratios[len(ratios) // 2]:.1f} times as fast (median of {TRIES} tries in turn)"
    )
    for name, line in WORST.items():
        hostile = line * (SPEED_BYTES // len(line))
        cpu = _seconds(scan_console, hostile)[0]
        print(f"64 MiB of {name}: {cpu:.1f} s of CPU time")


def long_console(ordinary: list[bytes]) -> bytes:
    """Return one long console of ordinary lines with few crashes in it."""
    lines = random.Random(1).choices(ordinary, k=SPEED_BYTES // 80)
    every = len(lines) // 10
    lines[::every] = [b"[    1.0] Kernel panic - not syncing: bench"] * len(lines[::every])
    return b"\n".join(lines)


def _seconds(read: Callable[[bytes], object], text: bytes) -> tuple[float, float]:
    """Return seconds of CPU time and of the clock that reading took."""
    cpu, wall = time.process_time(), time.monotonic()
    read(text)
    return time.process_time() - cpu, time.monotonic() - wall


if __name__ == "__main__":
    run(main)
