# SPDX-License-Identifier: GPL-2.0-or-later
"""The call trees that the microscope left of a boot → instructions and calls as two trees of frames.

Runs in a separate process (reading.py): what the plugin wrote follows from what a guest executed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.artifacts.elf import build_id_in, read_build_id
from kernels.artifacts.elf_sections import Readable
from lab.profiles.analysis.frame_alignment import ordered
from lab.profiles.analysis.frame_tree import ROOT, TreeDamaged, pack
from workers.collect.kernelsymbols import KernelSymbols
from workers.errors import ProfileUnreadable
from workers.microscope.calltree import NAMELESS, CallTree, ProgramSymbols, read_call_tree
from workloads.guest.records import Record
from workloads.passes import MODULE_SYMBOLS, NOTES
from workloads.readings import files_of


@dataclass(frozen=True, slots=True)
class Watched:
    """The files of a boot. program_map: what `nm` prints of the workload's program. calls: a file for each program that measured.

    windows: the timed intervals of the plan, one for each iteration and thread.
    """

    system_map: Readable
    vmlinux: Readable
    program_map: Readable
    calls: Sequence[Readable]
    windows: int


def read_exact(records: Sequence[Record], watched: Watched) -> tuple[dict[str, Any], list[bytes]]:
    """Return an exact profile as JSON, and its packed trees: instructions, then calls.

    Raises ProfileUnreadable for a boot that never measured, measured otherwise than planned, or whose trees are damaged;
    ArtifactCorrupt.
    """
    files = files_of(records)
    kernel_id, booted_id = read_build_id(watched.vmlinux), build_id_in(files.get(NOTES, b""))
    if booted_id and kernel_id and booted_id != kernel_id:
        raise ProfileUnreadable("the exact profile is of another kernel: its build id is not the artifact's")
    kernel = KernelSymbols(watched.system_map, files.get(MODULE_SYMBOLS, b""))
    program = ProgramSymbols(watched.program_map.read_bytes().decode(errors="replace"))
    trees = [read_call_tree(file.read_bytes(), kernel, program) for file in watched.calls]
    _check_windows(sum(tree.windows for tree in trees), watched.windows)
    instructions, calls = frame_trees(trees)
    return {"kernel_build_id": booted_id or kernel_id}, [instructions, calls]


def _check_windows(measured: int, planned: int) -> None:
    if not measured:
        raise ProfileUnreadable("the exact profile is empty: the workload never entered its timed interval")
    if measured != planned:
        raise ProfileUnreadable(
            f"the exact profile has {measured:,} timed intervals and the plan {planned:,}: "
            "something else in the guest executed the microscope's mark, or the workload ended early"
        )


def frame_trees(trees: Sequence[CallTree]) -> tuple[bytes, bytes]:
    """Return the instructions of all trees together and the calls, packed. Raises ProfileUnreadable."""
    names, parents, offset = [ROOT], [np.array([-1])], 1
    places = []
    for tree in trees:
        place = np.arange(len(tree.names)) + offset
        # A tree's nameless root becomes the common root.
        place[[at for at, name in enumerate(tree.names[:NAMELESS]) if not name]] = 0
        above = np.where(tree.parent >= 0, place[tree.parent], 0)
        names += [name or ROOT for name in tree.names]
        parents.append(above)
        places.append(place)
        offset += len(tree.names)
    parent = np.concatenate(parents)
    weights = []
    for values in ([tree.instructions for tree in trees], [tree.calls for tree in trees]):
        own = np.zeros(offset, np.int64)
        for place, value in zip(places, values, strict=True):
            np.add.at(own, place, value)
        weights.append(own)
    try:
        instructions, calls = ordered(names, parent, weights)
        return pack(instructions), pack(calls)
    except TreeDamaged as exc:
        raise ProfileUnreadable(f"the exact profile cannot be kept: {exc}") from exc
