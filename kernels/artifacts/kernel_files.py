# SPDX-License-Identifier: GPL-2.0-or-later
"""Read facts from the files of a build in a process of its own, since a stranger's tree made them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernels.artifacts.elf import code_hash, read_release
from kernels.artifacts.elf_sections import Readable
from kernels.artifacts.elf_segments import loaded_hash
from kernels.errors import ArtifactCorrupt, ReadingStopped
from kernels.sandbox.reader import ReaderLimits, opened, read_apart

READER = "kernels.artifacts.kernel_files:prepare"
# Several times the size of a vmlinux with line tables (some 100 MiB) and the copies of its sections.
LIMITS = ReaderLimits(seconds=120, memory=4 << 30, answer=1 << 20)
MOST_MODULES = 8
_RELEASE = re.compile(r"[!-~]{1,128}")
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """The kernel's release, as `uname -r` prints it, and the hash of its code (see kernels/artifacts/elf.py)."""

    release: str
    code_hash: str


def kernel_facts(vmlinux: Path, boots: Path, modules: Iterable[Path]) -> KernelFacts:
    """Return the facts of a kernel and its modules. boots: the file that guests boot, which must load exactly the same.

    Raises ReadingStopped, ReaderUnavailable.
    If a file is not a kernel, the tree that made it is to blame, not the lab.
    """
    paths = [vmlinux, boots, *sorted(modules)]
    if len(paths) - 1 > MOST_MODULES:
        raise ReadingStopped(f"this build has {len(paths) - 2} modules, at most {MOST_MODULES - 1} are read")
    with opened(*paths) as files:
        request = {"files": [path.name for path in paths]}
        value = read_apart(READER, request, files, what="the built kernel", limits=LIMITS).value
    if not isinstance(value, dict):
        raise ReadingStopped("the built kernel could not be read: the answer of its reader is malformed")
    if "corrupt" in value:
        raise ReadingStopped(f"the build did not make a kernel: {str(value['corrupt'])[:1000]}")
    release, digest = str(value.get("release")), str(value.get("code_hash"))
    if not _RELEASE.fullmatch(release) or not _HASH.fullmatch(digest):
        raise ReadingStopped("the built kernel could not be read: the answer of its reader is malformed")
    return KernelFacts(release, digest)


def prepare(_request: Mapping[str, Any]) -> Callable[[Sequence[Readable]], tuple[Any, Sequence[bytes]]]:
    """Return the reader of a vmlinux and its modules (see kernels/sandbox/reader.py)."""

    def read(files: Sequence[Readable]) -> tuple[Any, Sequence[bytes]]:
        vmlinux, boots, *modules = files
        try:
            if loaded_hash(boots) != loaded_hash(vmlinux):
                return {"corrupt": f"{boots.name} does not load what {vmlinux.name} does"}, ()
            release = read_release(vmlinux)
            return {"release": release, "code_hash": code_hash(vmlinux, modules, release)}, ()
        except ArtifactCorrupt as exc:
            return {"corrupt": str(exc)}, ()

    return read
