# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles the workloads' programs: static, so that they run in a guest without libraries."""

import sys
from collections.abc import Iterable
from pathlib import Path

from workloads.catalog import PROGRAMS, Workload, load_catalog
from workloads.compile_once import Product, compile_once

HARNESS = Path(__file__).parent / "harness"
_FLAGS = (
    "-static", "-O2", "-std=gnu11", "-pthread", "-Wall", "-Wextra", "-Werror", "-I", str(HARNESS),
    # The same bytes wherever the checkout lies.
    "-g0", "-Wl,--build-id=none",
)  # fmt: skip


def compile_programs(root: Path, workloads: Iterable[Workload] | None = None) -> dict[str, Path]:
    """Return static programs by name, as they are called in the guest's /programs.

    root: the folder that keeps them, under the hash of their sources and compiler; an unchanged
    program is not compiled again. Raises GuestNotMade, ProgramDiskFull.
    """
    chosen = load_catalog().values() if workloads is None else workloads
    return {workload.definition.program: _compiled(root, workload) for workload in chosen}


def _compiled(root: Path, workload: Workload) -> Path:
    name, folder = workload.definition.program, PROGRAMS / workload.name
    # A -module.c is a kernel module: it is built against each variant's tree.
    own = [path for path in sorted(folder.glob("*.[ch]")) if not path.stem.endswith("-module")]
    files = (*sorted(HARNESS.glob("*.[ch]")), *own)
    return compile_once(Product(name, name, _FLAGS, files, libraries=("-lm",)), root)


if __name__ == "__main__":
    print(*compile_programs(Path(sys.argv[1])).values(), sep="\n")
