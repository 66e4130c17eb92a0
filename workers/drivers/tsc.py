# SPDX-License-Identifier: GPL-2.0-or-later
"""The rate of this host's time stamp counter, which is also that of an emulated guest.

A guest that has to find out for itself waits for emulated timers, some 70 ms for each further CPU, more on a busy
host, and its clock runs up to 0.06 % wrong until it has been corrected a second later.
"""

import ctypes
import mmap
import platform
import time
from collections.abc import Callable
from functools import cache

WINDOW_S = 0.2
# rdtsc; shl rdx, 32; or rax, rdx; ret
READ_TSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")


@cache
def tsc_khz() -> int:
    """Return the counter's rate; 0 where there is none, or no way to read it."""
    if platform.machine() != "x86_64":
        return 0
    try:
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except PermissionError:  # a policy against writable code
        return 0
    code.write(READ_TSC)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    ticks, clock = _together(read)
    time.sleep(WINDOW_S)
    later_ticks, later_clock = _together(read)
    return round((later_ticks - ticks) * 1_000_000 / (later_clock - clock))


def _together(read: Callable[[], int]) -> tuple[int, int]:
    """Counter and clock (ns) of one moment: of some tries, the one that was least interrupted."""
    tries = []
    for _ in range(20):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        ticks = read()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        tries.append((after - before, ticks, (before + after) // 2))
    _, ticks, clock = min(tries)
    return ticks, clock
