# SPDX-License-Identifier: GPL-2.0-or-later
"""Find where a console begins again although nothing was reported: a reset, a triple fault, a watchdog outside."""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from workers.collect.console_lines import STAMP, begins_message, message_start

BANNER = b"Linux version "
BOOT_PAIRS = {
    BANNER: b"x ",
    # What machines print before a kernel does; each only at the beginning of a line.
    b"SeaBIOS (version": b"aB",
    b"early console in ": b"rl",
    b"iPXE initialising": b"PX",
    b"U-Boot SPL ": b"-B",
    b"Decompressing Linux...": b"x.",
}
"""The words that a boot begins with, and the two rarest bytes of each."""
MAX_BOOTS = 50
# A kernel that prints one of these restarts on purpose.
DELIBERATE = re.compile(
    rb"reboot: (?:Restarting|machine restart|Power down|System halted)|Restarting system|Starting new kernel"
    rb"|kexec(?:_core)?: (?:Starting|Bye)|Rebooting in \d+ seconds|Emergency Restart|sysrq: Resetting"
)
KERNEL_LINE = re.compile(rb"Linux version |\[ {0,5}\d{1,6}\.\d{6}\]")
BEFORE = 16 << 10
"""Bytes before a beginning in which a deliberate restart announces itself."""
REPLAY_BYTES = 4096
REPLAY_LINES = 3
TITLE = "the machine began to boot again without a report"


def begins_boot(text: bytes, literal: bytes, at: int) -> int | None:
    """Return the offset of the line if the words at an offset are the beginning of a boot, else None."""
    line = text.rfind(b"\n", max(0, at - 256), at) + 1
    before = text[line:at]
    rest = before[message_start(before) :].strip()
    if not rest or (literal == BANNER and STAMP.search(before) and begins_message(rest)):
        return line
    return None


def reboots(text: bytes, starts: Iterable[int], fatal: Sequence[int]) -> Iterator[int]:
    """Yield the offset of each beginning of a boot that neither a report nor a farewell explains.

    starts: the offsets from begins_boot. fatal: those of reports that end a kernel, in order. A log that a program
    prints again is not a boot.
    """
    for before, at in pairwise(_boots(text, starts)):
        explained = bisect(fatal, at) > bisect(fatal, before)
        if explained or DELIBERATE.search(text, max(before, at - BEFORE), at) or _is_replay(text, before, at):
            continue
        yield at


def _boots(text: bytes, starts: Iterable[int]) -> list[int]:
    """Return the starts, except those with no kernel output since the last one: firmware, then its kernel."""
    boots = [0]
    for start in sorted(set(starts)):
        if KERNEL_LINE.search(text, boots[-1], start):
            boots.append(start)
    return boots[:MAX_BOOTS]


def _is_replay(text: bytes, before: int, at: int) -> bool:
    """Return whether the lines behind a banner repeat lines of the boot before it, stamps included."""
    same = 0
    for line in text[at : at + REPLAY_BYTES].split(b"\n")[:-1]:
        match = STAMP.match(line)
        if match and not match[0].startswith((b"[    0.000000]", b"[0.000000]")):
            same += text.find(line.rstrip(b"\r"), before, at) >= 0
            if same >= REPLAY_LINES:
                return True
    return False
