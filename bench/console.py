# SPDX-License-Identifier: GPL-2.0-or-later
"""How many crashes on labelled consoles our rules see, how many they imagine, and how quickly they read.

The corpus is not part of the project: syzkaller's pkg/report/testdata/linux/report, or a part of it. A file's
header lines up to the first empty one say what a detector must find; without a TITLE it must find nothing.

    python -m bench.console [DIRECTORY]
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from workers.collect.dmesg import Finding, scan_console

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "data" / "console-logs"
SPEED_BYTES = 64 << 20
# What syzkaller's own programs say when they fail.
NOT_OF_THE_KERNEL = {"SYZ_FAILURE"}
TRIES = 3
HEADER_LINE = re.compile(r"#.*|[A-Z][A-Z ]*:.*")


@dataclass(frozen=True, slots=True)
class Sample:
    """One labelled console; the title is empty where nothing is wrong."""

    name: str
    title: str
    type: str
    console: bytes


def main() -> int:
    """Print detection, imagination and speed; the misses by name."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path, nargs="?", default=CORPUS)
    parser.add_argument("--show", action="store_true", help="print each miss")
    options = parser.parse_args()
    if not options.directory.is_dir():
        print(f"no corpus in {options.directory}: nothing measured")
        return 0
    samples = [read_sample(path) for path in sorted(options.directory.glob("*"))]
    found = {sample.name: scan_console(sample.console) for sample in samples}
    crashes = [sample for sample in samples if sample.title and sample.type not in NOT_OF_THE_KERNEL]
    clean = [sample for sample in samples if not sample.title]
    missed = [sample for sample in crashes if not found[sample.name]]
    imagined = [sample for sample in clean if found[sample.name]]
    print(f"consoles with a crash   {len(crashes):5}   detected {1 - len(missed) / len(crashes):8.1%}")
    print(f"consoles without        {len(clean):5}   flagged  {len(imagined):8}")
    print(f"reads {_speed([sample.console for sample in samples]) / 1e6:.0f} MB/s")
    if options.show:
        _show("missed", missed, found)
        _show("imagined", imagined, found)
    return 0


def read_sample(path: Path) -> Sample:
    """Header and console of one file; a file may lack the header."""
    text = path.read_bytes()
    header: dict[str, str] = {}
    lines = text.split(b"\n")
    for number, line in enumerate(lines):
        told = line.decode(errors="replace")
        if not HEADER_LINE.fullmatch(told):
            text = b"\n".join(lines[number:])
            break
        key, _, value = told.partition(":")
        header.setdefault(key, value.strip())
    return Sample(path.name, header.get("TITLE", ""), header.get("TYPE", ""), text)


def _show(what: str, samples: list[Sample], found: dict[str, list[Finding]]) -> None:
    for sample in samples:
        told = "; ".join(f"{finding.kind}: {finding.title}" for finding in found[sample.name])
        print(f"{what} {sample.name}: {sample.title or told}")


def _speed(consoles: list[bytes]) -> float:
    """Bytes a second, at best, over one long console of ordinary lines, with few crashes in it."""
    generator = random.Random(1)
    ordinary = [line for console in consoles for line in console.split(b"\n") if not scan_console(line)]
    lines = generator.choices(ordinary, k=SPEED_BYTES // 80)
    lines[:: len(lines) // 10] = [b"[    1.0] Kernel panic - not syncing: bench"] * len(
        lines[:: len(lines) // 10]
    )
    text = b"\n".join(lines)
    took = []
    for _ in range(TRIES):
        started = time.perf_counter()
        scan_console(text)
        took.append(time.perf_counter() - started)
    return len(text) / min(took)


if __name__ == "__main__":
    sys.exit(main())
