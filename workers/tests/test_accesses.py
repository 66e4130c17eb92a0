# SPDX-License-Identifier: GPL-2.0-or-later
"""The microscope's records of memory accesses, and reading them from a stranger's directory."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from workers.drivers import calls
from workers.drivers.base import BootRequest, Machine, Microscope
from workers.drivers.calls import bring_home
from workers.drivers.domain_xml import QEMU_NAMESPACE, Wiring, domain_xml
from workers.errors import BootDiscarded, ProfileUnreadable
from workers.microscope.accesses import read_recordings
from workers.microscope.plugin import NATIVE

HEADER = struct.Struct("<4sIIIQQII")
LIMIT = 1 << 20
KINDS = {0: "load", 1: "store", 2: "atomic", 3: "node", 4: "begin", 5: "end"}


@pytest.fixture(scope="module", params=["address,undefined", "thread"])
def program(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    compiled = tmp_path_factory.mktemp("trace") / "trace"
    own = Path(__file__).parent / "trace_native.c"
    sources = [path for path in NATIVE.glob("*.c") if path.name not in ("plugin.c", "report.c")]
    command = [
        "gcc",
        "-std=gnu11",
        "-O1",
        "-g",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
        f"-fsanitize={request.param}",
    ]
    subprocess.run(
        [*command, f"-DMOST_BYTES={LIMIT}u", "-I", NATIVE, "-o", compiled, own, *sources], check=True
    )
    return compiled


def run(program: Path, scenario: str, directory: Path) -> list[str]:
    """Run a scenario and return its output."""
    command = [str(program), scenario, str(directory / "accesses")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ended.returncode, ended.stderr.replace("microscope: cannot write", "")) == (0, "")
    (directory / "calls.0").touch()
    return ended.stdout.splitlines()


def varint(data: Iterator[int]) -> int:
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return number


def decoded(path: Path) -> list[tuple[int, int, str, int, int]]:
    """Rows of (time, node, kind, shift, address), written down from the document of the format."""
    data, rows = iter(path.read_bytes()[HEADER.size :]), []
    time = node = 0
    last = [0, 0, 0, 0]
    for operation in data:
        time += varint(data)
        kind = KINDS[operation & 7]
        if kind == "node":
            node = varint(data)
        elif kind in ("begin", "end"):
            rows.append((time, node, kind, 0, 0))
        else:
            moved, region = varint(data), operation >> 6
            last[region] = (last[region] + (moved >> 1 ^ -(moved & 1))) % (1 << 64)
            rows.append((time, node, kind, operation >> 3 & 7, last[region]))
    return rows


@pytest.mark.process
def test_what_is_recorded_is_read_as_it_was(program: Path, tmp_path: Path) -> None:
    *lines, ended = run(program, "round-trip", tmp_path)
    written = [tuple(map(int, line.split())) for line in lines]
    begin, *rows, end = decoded(tmp_path / "accesses.0.3")
    assert ended == "whole"
    assert [(time, node, kind, shift, address) for time, node, kind, shift, address in rows] == [
        (time, node, KINDS[kind], shift, address) for time, node, kind, shift, address in written
    ]
    assert (begin[0], begin[2], end[2]) == (5, "begin", "end")


@pytest.mark.process
def test_only_what_is_sure_to_hit_is_left_out(program: Path, tmp_path: Path) -> None:
    run(program, "filter", tmp_path)
    rows = [(time, kind) for time, _, kind, _, _ in decoded(tmp_path / "accesses.0.0")]
    assert rows == [
        (0, "begin"), (10, "load"), (21, "load"), (22, "store"), (86, "store"), (90, "atomic"), (91, "atomic"),
        (92, "store"), (93, "store"), (100, "store"), (1200, "store"), (1201, "load"), (1202, "load"), (2000, "end"),
        (2000, "begin"), (2001, "load"), (2010, "end"),
    ]  # fmt: skip


@pytest.mark.process
def test_a_recording_says_how_much_there_is(program: Path, tmp_path: Path) -> None:
    run(program, "threads", tmp_path)
    (recording,) = read_recordings(tmp_path, 8)
    assert recording.instructions == tuple(range(1000, 1008))
    assert recording.stored == sum(path.stat().st_size for path in recording.accesses)
    assert [path.name for path in recording.accesses] == [f"accesses.0.{cpu}" for cpu in range(8)]


@pytest.mark.process
@pytest.mark.parametrize(
    ("scenario", "cpus", "error", "said"),
    [
        ("too-much", 2, ProfileUnreadable, "with CPU 0 it outgrew 256 MiB; measure fewer operations"),
        (
            "full-disk",
            1,
            BootDiscarded,
            "accesses of CPU 0 could not be written: is the disk of the state root full",
        ),
        ("open", 3, ProfileUnreadable, "a measured thread of CPU 2 outlived its program's last interval"),
    ],
)
def test_what_is_not_whole_is_said_and_is_no_result(
    program: Path, tmp_path: Path, scenario: str, cpus: int, error: type[Exception], said: str
) -> None:
    assert run(program, scenario, tmp_path)[-1] == "not whole"
    assert sum(path.stat().st_size for path in tmp_path.glob("accesses.*")) <= LIMIT
    with pytest.raises(error, match=said):
        read_recordings(tmp_path, cpus)


def recorded(directory: Path, changed: Mapping[str, Any], cpus: int = 2) -> None:
    """Recordings of some CPUs, the last one's header or bytes changed."""
    (directory / "calls.0").touch()
    body = bytes((4, 0, 5, 9))
    for cpu in range(cpus):
        fields: dict[str, object] = {
            "magic": b"KPMA", "version": 1, "cpu": cpu, "whole": 1, "instructions": 9, "records": 2, "lack": 0,
            "size": HEADER.size + len(body),
        }  # fmt: skip
        fields |= {name: value for name, value in changed.items() if cpu == cpus - 1 and name in fields}
        data = HEADER.pack(*fields.values()) + body
        (directory / f"accesses.0.{cpu}").write_bytes(data[: changed.get("bytes", len(data))])


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"magic": b"KPMT"}, "was not written by this version"),
        ({"version": 2}, "was not written by this version"),
        ({"cpu": 7}, "garbled"),
        ({"cpu": 0}, "garbled"),
        ({"whole": 0}, "of CPU 1 is not whole"),
        ({"whole": 0, "lack": 1}, "outgrew 256 MiB"),
        ({"whole": 0, "lack": 3}, "outlived"),
        ({"whole": 1, "lack": 1}, "outgrew"),
        ({"whole": 1, "lack": 0xFFFFFFFF}, "not whole"),
        ({"instructions": 1 << 60}, "garbled"),
        ({"records": 1 << 60}, "garbled"),
        ({"size": 0}, "cut short"),
        ({"size": 0xFFFFFFFF}, "cut short"),
        ({"bytes": 0}, "cut short"),
        ({"bytes": 39}, "cut short"),
        ({"bytes": 43}, "cut short"),
    ],
)
def test_a_header_that_contradicts_its_file_is_refused(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    recorded(tmp_path, changed)
    with pytest.raises(ProfileUnreadable, match=said):
        read_recordings(tmp_path, 2)


@pytest.mark.hostile
def test_cpus_are_those_that_were_to_measure(tmp_path: Path) -> None:
    with pytest.raises(ProfileUnreadable, match="never entered its measured interval"):
        read_recordings(tmp_path, 2)
    recorded(tmp_path, {})
    assert read_recordings(tmp_path, 2)[0].records == 4
    with pytest.raises(ProfileUnreadable, match="3 CPUs were to measure, and CPU 2 left nothing"):
        read_recordings(tmp_path, 3)
    with pytest.raises(ProfileUnreadable, match="1 CPUs were to measure, and CPU 1 measured too"):
        read_recordings(tmp_path, 1)


def link(path: Path) -> None:
    path.symlink_to("/etc/shadow")


def grow(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(calls._MOST_BYTES + 1)


@pytest.mark.hostile
@pytest.mark.parametrize("name", ["calls.0", "accesses.0.0", "accesses.63.63"])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (link, "cannot be read"),
        (os.mkfifo, "is not a file"),
        (Path.mkdir, "is not a file"),
        (grow, "more than 320 MiB"),
    ],
)
def test_what_is_no_file_of_the_plugins_does_not_come_home(
    tmp_path: Path, name: str, make: Callable[[Path], None], said: str
) -> None:
    written, home = tmp_path / "written", tmp_path / "home"
    written.mkdir()
    home.mkdir()
    make(written / name)
    with pytest.raises(ProfileUnreadable, match=said):
        bring_home(written, home)
    assert [path.stat().st_size for path in home.iterdir()] in ([], [0])


def test_a_call_tree_for_which_the_disk_had_no_room_is_the_labs_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The accesses, written before it, still fitted."""
    written, home = tmp_path / "written", tmp_path / "home"
    written.mkdir()
    home.mkdir()
    (written / "accesses.0.0").write_bytes(b"whole")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=0))
    with pytest.raises(BootDiscarded, match=r"left no call tree, and the disk of .* is full"):
        bring_home(written, home)


@pytest.mark.hostile
def test_other_names_stay_where_they_are(tmp_path: Path) -> None:
    written, home = tmp_path / "written", tmp_path / "home"
    written.mkdir()
    home.mkdir()
    for name in (
        "accesses.0.0.part",
        "accesses.100.0",
        "accesses.0",
        "calls.0.0",
        "console.log",
        "accesses.0.-1",
    ):
        (written / name).write_text("no")
    bring_home(written, home)
    assert list(home.iterdir()) == []


def request(directory: Path, machine: Machine, *, accesses: bool) -> BootRequest:
    scope = Microscope(directory / "a,b.so", directory / "functions", accesses)
    return BootRequest(
        "a test", directory / "kernel", directory / "initrd", "", machine, (), "", directory, 9, 9, microscope=scope
    )  # fmt: skip


@pytest.mark.parametrize("cpus", [1, 20, 64])
def test_a_machine_of_the_contention_clock_has_its_cpus_and_counts_no_instructions(
    tmp_path: Path, cpus: int
) -> None:
    wiring = Wiring("a", tmp_path / "c", tmp_path / "r", (), tmp_path / "calls")
    text = domain_xml(request(tmp_path, Machine(cpus, 2048, "tcg", "contention"), accesses=True), wiring)
    domain = ET.fromstring(text)
    arguments = [element.get("value") for element in domain.iter(f"{{{QEMU_NAMESPACE}}}arg")]
    assert (domain.findtext("vcpu"), domain.get("type")) == (str(cpus), "qemu")
    assert arguments == [
        "-plugin",
        f"{tmp_path}/a,,b.so,functions={tmp_path}/functions,out={tmp_path}/calls,accesses={tmp_path}/accesses",
    ]
    assert [feature.attrib for feature in domain.iter("feature")] == [{"policy": "disable", "name": "erms"}]
    assert "nowatchdog" in (domain.findtext("os/cmdline") or "")


def test_a_machine_of_the_instruction_clock_records_no_accesses_unless_told(tmp_path: Path) -> None:
    wiring = Wiring("a", tmp_path / "c", tmp_path / "r", (), tmp_path / "calls")
    text = domain_xml(request(tmp_path, Machine(1, 512, "tcg", "instructions"), accesses=False), wiring)
    assert "-icount" in text
    assert "accesses=" not in text
