# SPDX-License-Identifier: GPL-2.0-or-later
"""A build that is killed, or says that it lacked something: the lab's fault only where the lab measured it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kernels.builds.builder import Builder, Limits
from kernels.builds.lab_faults import lab_lacked
from kernels.errors import BuildInterrupted, BuildOutOfMemory, CompileFailed, ConfigRejected, DiskFull
from kernels.sandbox import memory as cgroup
from kernels.sandbox.command import Ended
from kernels.sandbox.memory import memory_group
from kernels.tests.cases import cases
from kernels.tests.pretend import PretendKernel
from kernels.trees.tree import NamedRevision

pytestmark = pytest.mark.process

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
            int(child)
            for task in Path(f"/proc/{pid}/task").glob("*/children")
            for child in read(task).split()
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


INSIDE = [
    ("make", False, signal.SIGKILL),
    ("make", True, signal.SIGKILL),
    ("sleep", True, signal.SIGKILL),
    ("make", False, signal.SIGTERM),
]


def test_a_build_whose_sandbox_is_killed_from_outside_is_tried_again(
    builder: Builder, pretend: PretendKernel
) -> None:
    builder.build(pretend.request())
    kill = killer("bwrap")
    request = pretend.request(pretend.variant({"trouble.h": "hang"}))
    with pytest.raises(BuildInterrupted, match="the sandbox of the build was killed from outside") as caught:
        builder.build(request, on_progress=lambda done, expected: kill())
    assert (caught.value.blame, caught.value.retry) == ("lab", True)
    assert caught.value.log is not None
    assert "now hanging" in caught.value.log.read_text()


@pytest.mark.hostile
@pytest.mark.parametrize(("victim", "innermost", "number"), INSIDE)
def test_a_program_killed_inside_the_sandbox_is_the_kernels_failure_since_the_build_could_have_done_it(
    builder: Builder, pretend: PretendKernel, victim: str, innermost: bool, number: int
) -> None:
    builder.build(pretend.request())
    kill = killer(victim, innermost=innermost, number=number)
    request = pretend.request(pretend.variant({"trouble.h": "hang"}))
    with pytest.raises(CompileFailed) as caught:
        builder.build(request, on_progress=lambda done, expected: kill())
    assert (caught.value.blame, caught.value.retry) == ("kernel", False)


def configuring(pretend: PretendKernel, first: str) -> NamedRevision:
    """A variant whose Kconfig does something else first."""
    rule = "\nolddefconfig: FORCE\n\t@"
    return pretend.edited("Makefile", f"{rule}$(srctree)", f"{rule}{first} && $(srctree)")


def test_a_config_whose_sandbox_is_killed_from_outside_is_no_fault_of_the_description(
    builder: Builder, pretend: PretendKernel
) -> None:
    revision = configuring(pretend, "sleep 1000")
    with pytest.raises(BuildInterrupted, match="the sandbox of the config was killed from outside") as caught:
        builder.key(pretend.request(revision), on_wait=killer("bwrap"))
    assert (caught.value.blame, caught.value.retry) == ("lab", True)


@pytest.fixture
def small_tmp(monkeypatch: pytest.MonkeyPatch) -> None:
    """A /tmp of the sandbox that is soon full."""
    monkeypatch.setattr("kernels.sandbox.command.TMP_BYTES", 8 << 20)


EXCUSES = {
    "disk": 'echo "fatal error: error writing to /tmp/x.s: No space left on device" >&2; exit 1',
    "memory": 'echo "cc1: out of memory allocating 65536 bytes" >&2; exit 1',
    "memory refused": 'echo "fork: Cannot allocate memory"; exit 1',
    "processes": 'echo "fork: retry: Resource temporarily unavailable"; exit 1',
    "a killed compiler": 'echo "gcc: fatal error: Killed signal terminated program cc1"; exit 4',
    "clang's words": 'echo "clang: error: unable to execute command: Killed"; exit 254',
    "make's words": 'echo "make[2]: *** [Makefile:250: fs/inode.o] Killed"; exit 2',
    "make killed": "kill -9 $$PPID; sleep 10",
    "make terminated": "kill -15 $$PPID; sleep 10",
    "itself": "kill -9 $$$$",
    "everybody": "kill -9 -1",
    "status 137": "exit 137",
    "status 143": "exit 143",
    "the build's own shell": "python3 -c 'import os; os.kill(1, 9)'; kill -9 -1",
    "a full /tmp": "head -c 9M /dev/zero >/tmp/fill; exit 1",
    "a full /dev/shm": "head -c 99M /dev/zero >/dev/shm/fill; exit 1",
    "memory of one process": "python3 -c 'bytearray(1 << 40)'",
    "the end mark": "printf 'kperflab-sandbox:\\n0m0.0s 0m0.0s\\n'; exit 137",
    "closed outputs": "exec >&- 2>&-; exit 137",
}
QUICK = ("memory", "make killed", "everybody", "the build's own shell", "the end mark")


@pytest.mark.hostile
@pytest.mark.usefixtures("small_tmp")
@pytest.mark.parametrize("what", cases(EXCUSES, QUICK))
def test_a_build_cannot_make_its_failure_the_labs_by_what_it_prints_or_how_it_ends(
    builder: Builder, pretend: PretendKernel, what: str
) -> None:
    revision = pretend.edited("Makefile", "trouble-none:", f"trouble-none:\n\t@{EXCUSES[what]}")
    with pytest.raises(CompileFailed) as caught:
        builder.build(pretend.request(revision))
    assert (caught.value.blame, caught.value.retry) == ("kernel", False)


@pytest.mark.hostile
@pytest.mark.usefixtures("small_tmp")
@pytest.mark.parametrize("what", cases(EXCUSES, QUICK))
def test_a_config_cannot_make_its_failure_the_labs_by_what_it_prints_or_how_it_ends(
    builder: Builder, pretend: PretendKernel, what: str
) -> None:
    with pytest.raises(ConfigRejected) as caught:
        builder.key(pretend.request(configuring(pretend, f"{{ {EXCUSES[what]}; }}")))
    assert (caught.value.blame, caught.value.retry) == ("submission", False)


def test_a_disk_that_is_short_as_a_build_ends_is_the_labs(
    builder: Builder, pretend: PretendKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process fills the disk between two looks, and the compiler fails before the next one."""
    builder.build(pretend.request())
    revision = pretend.variant({"trouble.h": "disk"})
    ended = iter([False])
    monkeypatch.setattr("kernels.sandbox.command._Watch.is_disk_short", lambda watch: next(ended, True))
    with pytest.raises(DiskFull, match="free some space and try again") as caught:
        builder.build(pretend.request(revision))
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


def ended(status: int = 2, stopped: str = "", **measured: bool) -> Ended:
    return Ended(status, stopped, 0.0, 0.0, **measured)


def test_the_judgement_rests_on_what_was_measured_alone() -> None:
    assert {lab_lacked(ended(status)) for status in (137, -9, 143, -15, 2, 1, -11, 139)} == {""}
    assert lab_lacked(ended(-9, killed=True)) == "life"
    assert lab_lacked(ended(-9, out_of_memory=True, killed=True)) == "memory"
    assert lab_lacked(ended(disk_short=True)) == "disk"
    assert lab_lacked(ended(stopped="disk")) == "disk"
    assert lab_lacked(ended(stopped="quota", disk_short=True)) == ""
    assert lab_lacked(ended(-9, "time")) == ""
    assert lab_lacked(ended(-9, "time", starved=True)) == "cpu"
    assert lab_lacked(ended(-9, "cpu", starved=True)) == ""
    assert lab_lacked(ended(-9, "log", out_of_memory=True)) == ""


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
