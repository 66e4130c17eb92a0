# SPDX-License-Identifier: GPL-2.0-or-later
"""The reader of a recorded boot's call tree, as it runs apart: names of the chains that wait, and the tree of waiting.

What the plugin wrote follows from what a guest executed, so it is read like all that a guest sends (kernels/sandbox/reader.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernels.artifacts.elf_sections import Readable
from kernels.errors import ArtifactCorrupt
from lab.profiles.analysis.frame_tree import FrameTree, TreeDamaged, build_tree, pack
from workers.collect.kernelsymbols import KernelSymbols
from workers.collect.reading import records_in
from workers.errors import ProfileUnreadable
from workers.microscope.calltree import CallTree, ProgramSymbols, read_call_tree
from workloads.errors import RecordCorrupt
from workloads.passes import MODULE_SYMBOLS
from workloads.readings import files_of

MOST_CHAIN = 4
"""Functions of a chain that are kept: the innermost, and those that called it."""
MOST_FUNCTIONS = 20
"""Functions whose waiting is kept, as many as people look at."""
REFUSALS = (ArtifactCorrupt, ProfileUnreadable, RecordCorrupt)

Result = tuple[Any, Sequence[bytes]]


def prepare(request: Mapping[str, Any]) -> Callable[[Sequence[Readable]], Result]:
    """Return the function that reads.

    request: chains, the nodes of the call tree whose chains of functions are wanted; operations, what all CPUs did in the
    recorded intervals. Files: the call tree, System.map, what `nm` prints of the workload's program, the cycles waited by
    each node, little-endian int64, and the guest's records, which say where its modules are.
    """

    def read(files: Sequence[Readable]) -> Result:
        calls, system_map, program_map, waited, records = files
        try:
            program = ProgramSymbols(program_map.read_bytes().decode(errors="replace"))
            kernel = KernelSymbols(system_map, files_of(list(records_in(records))).get(MODULE_SYMBOLS, b""))
            tree = read_call_tree(calls.read_bytes(), kernel, program)
            cycles = np.frombuffer(waited.read_bytes(), "<i8")
            if len(cycles) != len(tree.names):
                raise ProfileUnreadable("the call tree changed while its accesses were replayed")
            whole = build_tree(tree.stacks(cycles))
            packed = _packed(whole, int(request["operations"]))
        except REFUSALS as exc:
            return {"refused": {"class": type(exc).__name__, "message": str(exc), "detail": exc.detail}}, ()
        chains = [chain(tree, int(node)) for node in request["chains"]]
        return {"chains": chains, "functions": _functions(whole)}, [packed]

    return read


def chain(tree: CallTree, node: int) -> list[str]:
    """Return the function of a node and those that called it, innermost first."""
    names: list[str] = []
    while node >= 0 and len(names) < MOST_CHAIN:
        names.append(tree.names[node])
        node = int(tree.parent[node])
    return [name for name in names if name]


def _functions(whole: FrameTree) -> dict[str, int]:
    """Return the cycles waited in each function, over all its nodes; the most first, at most MOST_FUNCTIONS."""
    cycles = np.zeros(len(whole.names), np.int64)
    np.add.at(cycles, whole.name, whole.own)
    largest = np.argsort(-cycles, kind="stable")[:MOST_FUNCTIONS].tolist()
    return {whole.names[at]: int(cycles[at]) for at in largest if cycles[at]}


def _packed(whole: FrameTree, operations: int) -> bytes:
    """Return the packed tree of cycles waited per operation. Raises ProfileUnreadable."""
    # Rounding the running sum keeps every subtree right to one cycle, however many small frames it has.
    running = np.rint(np.cumsum(whole.own) / max(operations, 1)).astype(np.int64)
    try:
        return pack(replace(whole, own=np.diff(running, prepend=0)))
    except TreeDamaged as exc:
        raise ProfileUnreadable(f"the tree of waiting cannot be kept: {exc}") from exc
