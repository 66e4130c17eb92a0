# SPDX-License-Identifier: GPL-2.0-or-later
"""Made-up files of a profiled guest: recordings of the kernel that was to boot, with a wait, counters and their costs."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from workers.drivers.base import BootRequest
from workers.drivers.fake import Script, played, sent
from workers.tests import perfwriter as perf
from workloads.passes import COUNTS, PERF_DATA, PERF_STAT, RECORDERS
from workloads.readings import RECORDER_MARK

_COMMON = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
_LOCK_ADDR = "\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n"
FORMATS = [
    f"name: contention_{what}\nID: {number}\nformat:\n{_COMMON}{_LOCK_ADDR}"
    for what, number in (("begin", 110), ("end", 109))
]
_STAT = "12,,context-switches,1000,100.00,,\n<not supported>,,cycles,0,100.00,,\n"
_COUNTS = "= before /proc/vmstat\npgfault 1\n= after /proc/vmstat\npgfault 8\n= before /proc/slabinfo: No such file or directory\n"


def profiled(request: BootRequest, step: str, out: str, *, wait_ns: int = 500) -> Script:
    """A guest that runs a step's passes: CPU samples and one wait in the kernel's first functions, at 25 % overhead."""
    inner, outer = _functions(request.kernel.with_name("System.map"))
    chain = [perf.IN_KERNEL, inner, outer]
    cpu = perf.perf_data([perf.comm(7, "load", 0), *(perf.sample(7, time, chain) for time in (1, 2, 3))])
    events = [
        perf.event(7, time, chain, struct.pack("<HxxiQ", number, 7, 1 << 63))
        for number, time in ((110, 100), (109, 100 + wait_ns))
    ]
    lock = perf.perf_data(
        [perf.comm(7, "load", 0), *events],
        attrs=((perf.attr(perf.TRACED), (1,)),),
        features={1: perf.tracing(FORMATS)},
    )
    said = "".join(
        json.dumps({"recorded": on, "values": {"elapsed": elapsed}}) + "\n"
        for on, elapsed in ((False, 1.0), (True, 1.25))
    )
    return Script(
        records=(
            *played(step, out),
            *sent(PERF_STAT, _STAT.encode()),
            *sent(COUNTS, _COUNTS.encode()),
            *played(f"{step}{RECORDER_MARK}cpu", said),
            *sent(PERF_DATA, cpu),
            *played(f"{step}{RECORDER_MARK}lock", said),
            *sent(RECORDERS["lock"].data, lock),
        )
    )


def _functions(system_map: Path) -> tuple[int, int]:
    """Addresses inside of the first two functions of a kernel."""
    addresses = {
        int(line.split()[0], 16) + 1
        for line in system_map.read_text().splitlines()
        if line.split()[1] in "Tt"
    }
    first, second, *_ = sorted(addresses)
    return first, second
