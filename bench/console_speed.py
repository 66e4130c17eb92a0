# SPDX-License-Identifier: GPL-2.0-or-later
"""Measure how fast consoles are read, in turns with LAVA's patterns, and the slowest input known."""

import random
import re
import time
from collections.abc import Callable

from workers.collect.console_rules import FORMS
from workers.collect.dmesg import scan_console

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
