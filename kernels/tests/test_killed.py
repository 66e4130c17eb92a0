# SPDX-License-Identifier: GPL-2.0-or-later
"""A program of a build that somebody kills: the lab's to try again, and no word about the kernel."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kernels import cgroup
from kernels.build import Builder, Limits
from kernels.cgroup import memory_group
from kernels.ending import lab_lacked
from kernels.errors import BuildKilled, BuildOutOfMemory
from kernels.sandbox import Ended
from kernels.tests.pretend import PretendKernel
from kernels.tree import Revision

FAILED = Ended(2, "", 0.0, 0.0)


Process = tuple[int, list[str]]


def chains(pid: int, above: tuple[Process, ...] = ()) -> Iterator[tuple[Process, ...]]:
    """The processes that one started, each with those above it, the outermost first, and their command lines.

    Those that end meanwhile may lack.
    """
    for child in children(pid):
        chain = (*above, (child, read(Path(f"/proc/{child}/cmdline")).split("\0")))
        yield chain
        yield from chains(child, chain)


def children(pid: int) -> list[int]:
    # Listing the threads of a process that ends just then fails too, not only reading of them.
    with suppress(FileNotFoundError, ProcessLookupError):
        return [
            int(one) for task in Path(f"/proc/{pid}/task").glob("*/children") for one in read(task).split()
        ]
    return []


def read(path: Path) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return path.read_text()
    return ""


def killer(victim: str, *, innermost: bool = False, number: int = signal.SIGKILL) -> Callable[[], None]:
    """Ends the process of a name among those that wait for one that hangs; another make may run beside them."""
    done: list[int] = []

    def kill() -> None:
        hangs = [chain for chain in chains(os.getpid()) if chain[-1][1][:2] == ["sleep", "1000"]]
        if done or not hangs:
            return
        named = [pid for pid, line in hangs[0] if Path(line[0]).name == victim]
        done.append(named[-1 if innermost else 0])
        os.kill(done[0], number)

    return kill


VICTIMS = [
    ("make", False, signal.SIGKILL),
    ("make", True, signal.SIGKILL),
    ("sleep", True, signal.SIGKILL),
    ("bwrap", False, signal.SIGKILL),
    ("make", False, signal.SIGTERM),
]


@pytest.mark.parametrize(("victim", "innermost", "number"), VICTIMS)
def test_a_build_whose_program_is_killed_from_outside_is_tried_again(
    builder: Builder, pretend: PretendKernel, victim: str, innermost: bool, number: int
) -> None:
    builder.build(pretend.request())
    kill = killer(victim, innermost=innermost, number=number)
    request = pretend.request(pretend.variant({"trouble": "hang"}))
    with pytest.raises(BuildKilled, match="was killed") as caught:
        builder.build(request, on_progress=lambda done, expected: kill())
    assert (caught.value.blame, caught.value.retry) == ("lab", True)
    assert caught.value.log is not None
    assert "now hanging" in caught.value.log.read_text()


def configuring(pretend: PretendKernel, first: str) -> Revision:
    """A variant whose Kconfig does something else first."""
    rule = "\nolddefconfig: FORCE\n\t@"
    return pretend.edited("Makefile", f"{rule}$(srctree)", f"{rule}{first} && $(srctree)")


@pytest.mark.parametrize(("victim", "innermost", "number"), VICTIMS)
def test_a_config_whose_make_is_killed_from_outside_is_no_fault_of_the_description(
    builder: Builder, pretend: PretendKernel, victim: str, innermost: bool, number: int
) -> None:
    revision = configuring(pretend, "sleep 1000")
    kill = killer(victim, innermost=innermost, number=number)
    with pytest.raises(BuildKilled, match="was killed") as caught:
        builder.key(pretend.request(revision), on_wait=kill)
    assert (caught.value.blame, caught.value.retry) == ("lab", True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a control group")
def test_a_config_that_meets_the_memory_limit_of_all_is_out_of_memory(
    builder: Builder, pretend: PretendKernel
) -> None:
    revision = configuring(pretend, "python3 -c 'bytes(1) * (400 << 20)'")
    limited = Builder(builder.home, Limits(seconds=30, cores=2, total_memory=128 << 20))
    with pytest.raises(BuildOutOfMemory, match="128 MiB for all") as caught:
        limited.key(pretend.request(revision))
    assert (caught.value.blame, caught.value.retry) == ("lab", False)


@pytest.mark.parametrize(
    "line",
    [
        "gcc: fatal error: Killed signal terminated program cc1",
        "clang: error: unable to execute command: Killed",
        "make[2]: *** [/build/linux/scripts/Makefile.build:250: fs/inode.o] Killed",
        "make: *** [Makefile:12: all] Terminated",
        "make[1]: *** [Makefile:12: modules] Error 137",
    ],
)
def test_what_make_and_the_compiler_say_of_a_killed_program_is_known(line: str) -> None:
    assert lab_lacked(FAILED, ["  CC      fs/inode.o", line]) == "life"
    # Only the counter of the group tells who killed it.
    assert lab_lacked(Ended(2, "", 0.0, 0.0, out_of_memory=True), [line]) == "memory"


def test_a_status_tells_of_a_signal_unless_we_sent_it() -> None:
    assert [lab_lacked(Ended(status, "", 0.0, 0.0), []) for status in (137, -9, 143, 2, 1, -11, 139)] == [
        *["life"] * 3,
        *[""] * 4,
    ]
    assert lab_lacked(Ended(-9, "time", 0.0, 0.0), []) == ""
    assert lab_lacked(Ended(137, "", 0.0, 0.0, out_of_memory=True), []) == "memory"


def test_a_compiler_that_crashes_was_not_killed_by_anybody() -> None:
    crashed = "gcc: internal compiler error: Segmentation fault signal terminated program cc1"
    assert lab_lacked(FAILED, [crashed, "make: *** [Makefile:12: fs/inode.o] Error 4"]) == ""
    assert lab_lacked(FAILED, ["make[1]: *** [Makefile:12: fs/inode.o] Segmentation fault"]) == ""


def test_without_a_control_group_the_machines_own_counter_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "vmstat"
    monkeypatch.setattr(cgroup, "_VMSTAT", machine)
    for before, after, short in ((3, 3, False), (3, 4, True)):
        machine.write_text(f"nr_free_pages 1\noom_kill {before}\n")
        with memory_group(1 << 30, tmp_path / "no groups") as group:
            machine.write_text(f"nr_free_pages 1\noom_kill {after}\n")
            assert group.out_of_memory() is short
    machine.unlink()
    with memory_group(1 << 30, tmp_path / "no groups") as group:
        assert not group.out_of_memory()
