# SPDX-License-Identifier: GPL-2.0-or-later
"""Recorded accesses, machine models and results that are cut short, garbled or too large."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kernels.processes.environment import minimal
from kernels.tests.kept import kept
from workers.errors import ReplayFailed, TraceUnreadable
from workers.microscope.contention import read_contention
from workers.microscope.replay import SOURCES, Trace, replay
from workers.tests.tracewriter import (
    ATOMIC,
    BEGIN,
    END,
    HEAP,
    LOAD,
    NODE,
    ROLES,
    STORE,
    Recorder,
    bare,
    call_tree,
    varint,
    write_trace,
)  # fmt: skip
from workloads.compile_once import Product, compile_once
from workloads.errors import MachineModelInvalid
from workloads.machines import LATENCIES, machine_model, machine_names, own_machine

pytestmark = [pytest.mark.hostile, pytest.mark.process]


CHECKED = (
    "-std=c++17",
    "-O1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-Wall",
    "-Wextra",
)


@pytest.fixture(scope="module")
def program() -> Path:
    """The replay program with the compiler's checks of addresses and of undefined behaviour."""
    product = Product(
        what="the checked replay program",
        file="replay",
        flags=(*CHECKED, "-Werror"),
        files=tuple(sorted([*SOURCES.glob("*.cc"), *SOURCES.glob("*.h")])),
        compiler="g++",
        error=ReplayFailed,
    )
    return compile_once(product, kept("programs"))


def recorder(cpu: int = 0) -> Recorder:
    made = Recorder(cpu)
    for at in range(40):
        made.access(ATOMIC, HEAP + 64 * (at % 3), 4, after=30)
        made.access(LOAD, HEAP + 8 * at, after=3)
        made.access(STORE, HEAP + 64 * (at % 3), 1, after=3)
    return made


class Files:
    """A trace of two CPUs, to be damaged, and how the program ends with it."""

    def __init__(self, program: Path, directory: Path) -> None:
        self.program, self.directory = program, directory
        self.trace = write_trace(directory, [recorder(0), recorder(1)])
        self.roles, self.machine = directory / "roles", directory / "machine"
        self.roles.write_text(ROLES)
        self.machine.write_text(bare().numbers.lines())

    def run(self) -> tuple[int, str]:
        done = subprocess.run(
            [self.program, self.trace.calls, self.roles, self.machine, *self.trace.accesses],
            capture_output=True, text=True, timeout=60, env=minimal(),
        )  # fmt: skip
        return done.returncode, done.stderr.strip()


@pytest.fixture
def files(program: Path, tmp_path: Path) -> Files:
    return Files(program, tmp_path / "trace")


def test_a_whole_trace_is_replayed(files: Files) -> None:
    assert files.run() == (0, "")


def test_a_file_cut_short_anywhere_is_refused(files: Files) -> None:
    whole = files.trace.accesses[1].read_bytes()
    for length in [*range(60), *range(60, len(whole), 7), len(whole) - 1]:
        files.trace.accesses[1].write_bytes(whole[:length])
        code, said = files.run()
        assert (code, said.startswith("replay: accesses.0.1 is cut short")) == (1, True), (length, said)


def record(op: int, *numbers: int) -> bytes:
    return bytes([op]) + b"".join(varint(number) for number in numbers)


def trace_of(*records: bytes, **changed: object) -> bytes:
    made = Recorder()
    made._body = bytearray(b"".join(records))
    made.records, made.instructions = len(records), 1000
    return made.bytes(**changed)


BEGUN = record(BEGIN, 0)
ENDED = record(END, 0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is cut short"),
        (trace_of(BEGUN, ENDED, magic=b"KPMB"), "was not written by this version"),
        (trace_of(BEGUN, ENDED, version=2), "was not written by this version"),
        (trace_of(BEGUN, ENDED, whole=0), "is not whole"),
        (trace_of(BEGUN, ENDED, whole=2), "is not whole"),
        (trace_of(BEGUN, ENDED, records=1 << 60), "is cut short"),
        (trace_of(BEGUN, ENDED, records=1), "more follows than its header says"),
        (trace_of(BEGUN, ENDED, instructions=1 << 46), "more instructions than any boot has"),
        (trace_of(BEGUN, record(END, 1001)), "more instructions than its header says at record 1"),
        (trace_of(BEGUN, record(LOAD, 1 << 63, 0), ENDED), "more instructions than its header says"),
        (trace_of(BEGUN, record(6, 0), ENDED), "an unknown sort of record at record 1"),
        (trace_of(BEGUN, record(7, 0), ENDED), "an unknown sort of record at record 1"),
        (trace_of(BEGUN, record(NODE | 0x40, 0, 5), ENDED), "an unknown sort of record at record 1"),
        (trace_of(BEGUN, record(NODE, 0, 1 << 40), ENDED), "a function that the call tree does not have"),
        (trace_of(BEGUN, record(NODE, 0, 17), ENDED), "a function that the call tree does not have"),
        (trace_of(BEGUN, BEGUN, ENDED), "a measured interval inside another at record 1"),
        (trace_of(ENDED), "it is outside a measured interval at record 0"),
        (trace_of(record(LOAD, 0, 0), BEGUN, ENDED), "it is outside a measured interval at record 0"),
        (trace_of(BEGUN), "a measured interval never ends"),
        (trace_of(BEGUN, bytes([LOAD]) + b"\xff" * 9 + b"\x02", ENDED), "a number of more than 64 bits"),
        (trace_of(BEGUN, bytes([LOAD]) + b"\x80" * 30, ENDED), "a number of more than 64 bits"),
    ],
)
def test_garbled_accesses_are_refused_by_name(files: Files, data: bytes, reason: str) -> None:
    files.trace.accesses[0].write_bytes(data)
    code, said = files.run()
    assert code == 1
    assert said.startswith("replay: accesses.0.0 ")
    assert reason in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        (b"", "the call tree is cut short"),
        (call_tree()[:-1], "the call tree is cut short"),
        (b"KPMX" + call_tree()[4:], "the call tree was not written by this version"),
        (call_tree()[:-24] + b"\xff" * 24, "a function stands before its caller"),
    ],
)
def test_a_garbled_call_tree_is_refused(files: Files, calls: bytes, reason: str) -> None:
    files.trace.calls.write_bytes(calls)
    code, said = files.run()
    assert (code, reason in said) == (1, True), said


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("sockets=1", "sockets=0", "sockets is out of bounds"),
        ("sockets=1", "sockets=1.5", "sockets is not a whole number"),
        ("sockets=1", "sockets=nan", "sockets is out of bounds"),
        ("sockets=1", "sockets=", "a line that is not a number"),
        ("sockets=1", "sockets", 'a line without "="'),
        ("sockets=1\n", "", "has no sockets"),
        ("sockets=1", "sockets=1\nsockets=1", "twice the same name"),
        ("sockets=1", "sockets=1\nspoons=1", "a name that is not known"),
        ("transfer_cycles=100", "transfer_cycles=-1", "transfer_cycles is out of bounds"),
        ("transfer_cycles=100", "transfer_cycles=1e300", "transfer_cycles is out of bounds"),
        ("l1_bytes=32768", "l1_bytes=33000", "no power of two"),
        ("l1_ways=8", "l1_ways=7", "no power of two"),
    ],
)
def test_the_program_checks_its_machine(files: Files, old: str, new: str, reason: str) -> None:
    text = files.machine.read_text()
    assert old in text
    files.machine.write_text(text.replace(old, new, 1))
    code, said = files.run()
    assert (code, reason in said) == (1, True), said


def test_two_files_of_one_cpu_are_refused(files: Files) -> None:
    files.trace.accesses[1].write_bytes(files.trace.accesses[0].read_bytes())
    assert files.run() == (1, "replay: accesses.0.1 is of the same CPU as accesses.0.0")


def test_a_link_in_place_of_a_file_is_refused(files: Files) -> None:
    files.trace.accesses[1].unlink()
    files.trace.accesses[1].symlink_to("/etc/passwd")
    code, said = files.run()
    assert (code, "cannot read" in said) == (1, True)


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bits_end_in_a_result_or_a_refusal(files: Files, seed: int) -> None:
    dice = random.Random(seed)
    for path in (*files.trace.accesses, files.trace.calls):
        data = bytearray(path.read_bytes())
        for _ in range(dice.randrange(4)):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
    code, said = files.run()
    assert code in (0, 1)
    assert said.startswith("replay: ") == bool(code), said


def test_accesses_at_the_ends_of_memory_do_no_harm(files: Files) -> None:
    made = Recorder()
    for address in (0, (1 << 64) - 1, (1 << 64) - 64, 1 << 63, (1 << 63) - 1, 1):
        made.access(STORE, address, 128)
        made.access(ATOMIC, address, 8)
    write_trace(files.directory, [made])
    assert files.run() == (0, "")


def test_more_cpus_than_can_be_replayed_are_refused(files: Files) -> None:
    files.trace = write_trace(files.directory, [Recorder(cpu) for cpu in range(65)])
    assert files.run() == (1, "replay: more than 64 CPUs")


@pytest.mark.parametrize("cpus", [0, 3])
def test_no_more_cpus_are_replayed_than_recorded(files: Files, cpus: int) -> None:
    with pytest.raises(TraceUnreadable, match=f"2 virtual CPUs recorded accesses, not {cpus}"):
        files.trace.first(cpus)


def test_a_refusal_of_the_program_is_the_traces_fault_and_a_crash_is_ours(
    files: Files, tmp_path: Path
) -> None:
    files.trace.accesses[0].write_bytes(b"KPMA")
    crash = tmp_path / "crash"
    crash.write_text("#!/bin/sh\nkill -SEGV $$\n")
    crash.chmod(0o755)
    refuse = tmp_path / "refuse"
    refuse.write_text("#!/bin/sh\necho 'replay: accesses.0.0 is cut short' >&2\nexit 1\n")
    refuse.chmod(0o755)
    with pytest.raises(TraceUnreadable, match=r"cannot be replayed: accesses\.0\.0 is cut short"):
        replay(refuse, files.trace, ROLES, bare())
    with pytest.raises(ReplayFailed, match="ended with -11"):
        replay(crash, files.trace, ROLES, bare())
    with pytest.raises(ReplayFailed, match="ended with 127"):
        replay(tmp_path / "none", files.trace, ROLES, bare())


def test_a_trace_without_its_call_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceUnreadable, match="missing or cut short"):
        replay(Path("/bin/true"), Trace(tmp_path / "calls.0", ()), ROLES, bare())


CYCLES = {"instructions": 1, "accesses": 1, "work": 1, "cache": 0, "transfer": 0, "lock": 0}
RESULT: dict[str, Any] = {
    "version": 1, "total": CYCLES, "cpus": [CYCLES], "windows": [CYCLES | {"longest": 1}], "nodes": [[4, 1, 1, 0, 0]],
    "lines": [{
        "address": "ffff888000000000", "cycles": 1, "transfers": 1, "apart": 0, "cpus": 2, "writers": 1,
        "false_sharing": False, "nodes": [[4, 1, 1]], "bytes": [[0, 1], [63, 5]], "written": "ff",
    }],
    "locks": [{
        "address": "ffff888000000000", "kind": "mutex", "cycles": 1, "acquisitions": 1, "contended": 1, "nodes": [],
    }],
    "left_out": 0, "lines_touched": 1, "forced": 0,
}  # fmt: skip


def test_a_result_is_read() -> None:
    read = read_contention(json.dumps(RESULT).encode(), bare(), 5)
    assert (read.lines[0].bytes, read.lines[0].written) == (((63, 5), (0, 1)), 0xFF)
    assert (read.total.work, read.lines[0].address, read.locks[0].kind) == (1, HEAP, "mutex")
    assert read.weights(5).tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    "changed",
    [
        {"version": 2}, {"total": {}}, {"total": None}, {"total": CYCLES | {"work": -1}}, {"total": CYCLES | {"work": 1 << 60}},
        {"total": CYCLES | {"work": 1.5}}, {"total": CYCLES | {"work": True}}, {"cpus": 3}, {"cpus": [3]}, {"windows": [CYCLES]},
        {"nodes": [[5, 1, 1, 0, 0]]}, {"nodes": [[-1, 1, 1, 0, 0]]}, {"nodes": [[]]}, {"nodes": [[4, 1]]}, {"nodes": [4]},
        {"lines": [{}]}, {"lines": [RESULT["lines"][0] | {"address": 5}]}, {"lines": [RESULT["lines"][0] | {"address": "x"}]},
        {"lines": [RESULT["lines"][0] | {"address": "f" * 17}]}, {"lines": [RESULT["lines"][0] | {"nodes": [[5, 1, 1]]}]},
        {"lines": [RESULT["lines"][0] | {"written": "1" * 17}]}, {"lines": [RESULT["lines"][0] | {"written": "-1"}]},
        {"lines": [RESULT["lines"][0] | {"written": 5}]}, {"lines": [RESULT["lines"][0] | {"bytes": [[64, 1]]}]},
        {"lines": [RESULT["lines"][0] | {"bytes": [[-1, 1]]}]}, {"lines": [RESULT["lines"][0] | {"bytes": [[1, -1]]}]},
        {"lines": [RESULT["lines"][0] | {"nodes": [[4, 1]]}]}, {"locks": [RESULT["locks"][0] | {"kind": "<script>"}]},
        {"locks": [RESULT["locks"][0] | {"cycles": None}]}, {"forced": "1"}, {"left_out": []},
    ],
)  # fmt: skip
def test_a_garbled_result_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(TraceUnreadable, match="the replay's result"):
        read_contention(json.dumps(RESULT | changed).encode(), bare(), 5)


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b'{"version":NaN}', b"\xff", b"[" * 100000])
def test_a_result_that_is_no_object_of_json_is_refused(text: bytes) -> None:
    with pytest.raises(TraceUnreadable, match="the replay's result"):
        read_contention(text, bare(), 5)


@pytest.mark.parametrize("name", machine_names())
def test_each_number_of_a_machine_has_its_source(name: str) -> None:
    model = machine_model(name)
    numbers = {line.split("=")[0] for line in model.numbers.lines().splitlines()}
    assert set(model.sources) == numbers
    assert all(model.sources.values())


def test_one_and_two_sockets_are_known() -> None:
    assert machine_names() == ("one-socket", "two-socket")


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ({"spoons": 1}, "has no such number"), ({"sockets": 0}, "sockets must be from 1 to 8"),
        ({"sockets": 1.5}, "sockets must be a whole number"), ({"sockets": True}, "sockets must be a number"),
        ({"overlap": 1.01}, "overlap must be from 0 to 1"), ({"overlap": float("nan")}, "overlap must be a number"),
        ({"overlap": "1"}, "overlap must be a number"), ({"transfer_cycles": -1}, "transfer_cycles must be from 0"),
        ({"transfer_cycles": float("inf")}, "transfer_cycles must be a number"), ({"l1_bytes": 1000}, "no power of two of sets"),
        ({"l1_ways": 3}, "no power of two of sets"), ({"ghz": 0}, "ghz must be from 0.1 to 100"), ({"ghz": None}, "ghz must be a number"),
        ({"cycles_per_instruction": 0}, "cycles_per_instruction must be from"),
    ],
)  # fmt: skip
def test_own_numbers_out_of_bounds_are_refused(numbers: dict[str, object], reason: str) -> None:
    with pytest.raises(MachineModelInvalid, match=reason):
        own_machine(numbers)


@pytest.mark.parametrize(
    "name", ["", "three-socket", "../plugin", "one-socket.toml", "one-socket\n", "\x1b[2J"]
)
def test_an_unknown_machine_is_refused_without_its_name(name: str) -> None:
    with pytest.raises(MachineModelInvalid, match="known are one-socket, two-socket") as caught:
        machine_model(name)
    assert not name.strip() or name not in str(caught.value).replace("one-socket, two-socket", "")


def test_other_numbers_are_another_machine() -> None:
    base = machine_model("one-socket")
    keys = {
        base.key,
        base.scaled(2).key,
        base.scaled(0.5).key,
        own_machine({"ghz": 3}).key,
        machine_model("two-socket").key,
    }
    assert len(keys) == 5
    assert own_machine({"transfer_cycles": 134}).key == base.key
    assert all(getattr(base.scaled(2).numbers, name) == 2 * getattr(base.numbers, name) for name in LATENCIES)
