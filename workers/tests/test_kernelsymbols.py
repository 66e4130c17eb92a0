# SPDX-License-Identifier: GPL-2.0-or-later
"""Addresses of a kernel and its modules → names."""

from __future__ import annotations

from pathlib import Path

from workers.collect.perfdata import ExpectedKernel, read_perf_data
from workers.tests import perfwriter as perf
from workers.tests.test_perfdata import KERNEL_TEXT, MAP, OPEN, stacks


def test_functions_of_a_module_are_named_by_the_guests_own_list(tmp_path: Path) -> None:
    (tmp_path / "System.map").write_text(MAP)
    module = 0xFFFFFFFFA0000000
    records = [
        KERNEL_TEXT,
        perf.kernel_mmap(module, 0x2000, "[bh_lookup_module]"),
        perf.comm(7, "load", 0),
        *(perf.sample(7, 1, [perf.IN_KERNEL, module + at, OPEN]) for at in (0x10, 0x1010, 0x2010)),
    ]
    (tmp_path / "perf.data").write_bytes(perf.perf_data(records))
    kallsyms = (
        f"{module:016x} t show\t[bh_lookup_module]\n{module + 0x1000:016x} t other\t[another]\nnonsense\n"
    )
    kernel = ExpectedKernel(tmp_path / "System.map", kallsyms=kallsyms.encode())
    functions = {stack[-1] for stack in stacks(read_perf_data(tmp_path / "perf.data", kernel))}
    assert functions == {"show [bh_lookup_module]", "[bh_lookup_module]", "[unknown]"}
