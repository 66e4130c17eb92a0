# SPDX-License-Identifier: GPL-2.0-or-later
"""The instruction clock: a guest whose clock counts the instructions it has executed.

QEMU runs such a guest with `-icount shift=4`: its clock advances by 2**4 = 16 ns with each instruction, and stands still
for everything else. So the nanoseconds that a program in it measures are a number of instructions. docs/instruction-clock.md
explains what this clock can and cannot show.
"""

from typing import Literal

Clock = Literal["wall", "instructions", "contention"]
"""contention: accesses to memory are recorded, and replayed as if all CPUs ran at once (docs/design/contention.md)."""
CLOCKS: tuple[Clock, ...] = ("wall", "instructions", "contention")

SHIFT = 4
"""The shift of QEMU's -icount. With 0 the kernel's delay loops, which wait for a time, would take 16 times as many instructions."""
NS_PER_INSTRUCTION = 1 << SHIFT
UNIT = "instructions"
FLOOR = 0.002
"""Default margin of a metric: the difference between kernels that are only linked differently. See docs/instruction-clock.md."""
GUEST_SECONDS = 4
"""Seconds of the guest's clock for each second of a step's deadline. In a busy guest the clock runs some ten times as fast as
the host's (800 M instructions a second on a quiet host, at 62.5 M a second of the guest); a busy host may be several times
slower, and the guest should notice its own deadline before the host's deadline expires."""
_NS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
TIMES = frozenset(_NS)
"""The units of time that have an equivalent in instructions."""


def instructions(value: float, unit: str) -> float:
    """Return the instructions that a time of the guest's clock stands for; unit: one of TIMES. Whole numbers stay whole.

    The clock advances by 16 whole nanoseconds per instruction, so fractions only come from programs' divisions; digits
    beyond a millionth of an instruction are rounding errors of dividing seconds.
    """
    return round(value * _NS[unit] / NS_PER_INSTRUCTION, 6)
