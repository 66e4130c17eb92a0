# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles the plugin for QEMU; the same sources and compiler are not compiled again."""

from __future__ import annotations

from pathlib import Path

from workers.errors import PluginUnusable
from workloads.compile import HARNESS
from workloads.compile_once import Product, compile_once

NATIVE = Path(__file__).parent / "native"
_FLAGS = (
    "-shared", "-fPIC", "-fvisibility=hidden", "-std=gnu11", "-pthread", "-Wall", "-Wextra", "-Werror", "-g0",
    # QEMU calls the plugin for each block: optimise across files, and call QEMU's functions without the linker's table.
    "-O3", "-flto", "-fno-plt", "-Wl,--build-id=none",
)  # fmt: skip


def compile_plugin(root: Path) -> Path:
    """Return the plugin's shared object, kept below root under the hash of its sources and compiler.

    QEMU's own user must be able to read it. Raises PluginUnusable, ProgramDiskFull.
    """
    product = Product(
        what="QEMU's plugin",
        file="microscope.so",
        flags=(*_FLAGS, "-I", str(HARNESS)),
        files=(*sorted(NATIVE.glob("*.[ch]")), HARNESS / "mark.h"),
        error=PluginUnusable,
    )
    return compile_once(product, root)
