# SPDX-License-Identifier: GPL-2.0-or-later
"""From what a guest sent to what is recorded of its profile."""

from __future__ import annotations

import dataclasses
import json
import lzma
import shutil
import struct
from pathlib import Path

import pytest

from kernels.artifacts.elf import read_build_id
from kernels.artifacts.store import Artifact
from kernels.artifacts.tests.test_store import METADATA
from kernels.errors import ArtifactCorrupt
from lab.storage.raw_profiles import raw_path
from workers.collect.fromguest import Collected, Sent, read_guest
from workers.collect.transcript import recording_name
from workers.errors import ProfileUnreadable
from workers.tests.test_perfdata import GOLDEN
from workers.tests.test_waits import WINDOWS
from workloads.guest.records import Record, encode_record
from workloads.passes import NOTES, PERF_DATA, RECORDERS
from workloads.shared_lines import REPORT, WHY

RELEASE = "6.1.192-ke3b61b3e121b"
WHOLE = lzma.decompress((GOLDEN / "perf.data.xz").read_bytes())


PROFILED = GOLDEN.parent / "profiled"


def artifact(directory: Path, symbols: Path = GOLDEN, release: str = RELEASE) -> Artifact:
    directory.mkdir()
    lines = {
        line for golden in {GOLDEN, symbols} for line in (golden / "System.map").read_text().splitlines()
    }
    (directory / "System.map").write_text("\n".join(sorted(lines)) + "\n")
    # Any ELF file will do: this perf.data tells no build id to hold against it.
    shutil.copy("/usr/bin/true", directory / "vmlinux")
    return Artifact("ab" * 32, directory, dataclasses.replace(METADATA, release=release))


def sent(data: bytes) -> tuple[Record, ...]:
    """In pieces, as the agent does, and with an empty one at the end."""
    pieces = [data[at : at + 32768] for at in range(0, len(data), 32768)] + [b""]
    return tuple(Record(seq, "file", PERF_DATA, piece) for seq, piece in enumerate(pieces, 1))


def collect(records: tuple[Record, ...], kernel: Artifact, home: Path, run: Path) -> Collected:
    """As a run does it: recordings into files of their own, everything as it came, and all of it read apart."""
    (run / "records.bin").write_bytes(
        b"".join(encode_record(dataclasses.replace(record, seq=seq)) for seq, record in enumerate(records, 1))
    )
    for recorder in RECORDERS.values():
        data = b"".join(record.payload for record in records if record.name == recorder.data)
        place = run / recording_name(recorder.kind)
        place.unlink(missing_ok=True)
        if data:
            place.write_bytes(data)
    return read_guest(Sent(run, purpose="profiled"), kernel, home).collected


def test_a_profile_is_read_with_the_artifacts_symbols_and_its_file_kept(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (taken,) = collect(sent(WHOLE), artifact(tmp_path / "artifact"), tmp_path, run).profiles
    assert taken.tree.samples == 787
    assert raw_path(tmp_path, taken.perf_data_sha256).read_bytes() == WHOLE
    assert raw_path(tmp_path, taken.perf_data_sha256).samefile(run / "perf.data")


def test_a_second_attempt_leaves_the_first_ones_file_as_it_is(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    kernel = artifact(tmp_path / "artifact")
    (first,) = collect(sent(WHOLE), kernel, tmp_path, run).profiles
    (second,) = collect(sent(WHOLE[:-20000]), kernel, tmp_path, run).profiles
    assert "ends" in second.truncated
    assert raw_path(tmp_path, first.perf_data_sha256).read_bytes() == WHOLE


def test_a_profile_of_another_kernel_is_unreadable_and_its_file_kept(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with pytest.raises(ProfileUnreadable, match="of another kernel: its release is"):
        collect(sent(WHOLE), artifact(tmp_path / "artifact", release="6.1.1"), tmp_path, run)
    assert len(list((tmp_path / "profiles").glob("*/*"))) == 1


def test_a_guest_that_sent_no_perf_data_has_no_cpu_profile(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with pytest.raises(ProfileUnreadable, match="there is no CPU profile: perf left no data"):
        collect((), artifact(tmp_path / "artifact"), tmp_path, run)


def test_a_build_id_is_read_from_an_elf_files_notes(tmp_path: Path) -> None:
    assert len(read_build_id(Path("/usr/bin/true"))) == 40
    (tmp_path / "vmlinux").write_bytes(b"none")
    with pytest.raises(ArtifactCorrupt):
        read_build_id(tmp_path / "vmlinux")


def test_the_kernel_that_runs_is_told_by_its_build_id(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    kernel = artifact(tmp_path / "artifact")
    own = bytes.fromhex(read_build_id(kernel.vmlinux))
    notes = struct.pack("<III4s", 4, len(own), 3, b"GNU\0") + own
    collected = collect((*sent(WHOLE), Record(90, "file", NOTES, notes)), kernel, tmp_path, run)
    assert collected.profiles[0].kernel_build_id == own.hex()
    with pytest.raises(ProfileUnreadable, match="of another kernel: its build id is"):
        collect((*sent(WHOLE), Record(90, "file", NOTES, notes[:-1] + b"\1")), kernel, tmp_path, run)


def test_a_guest_that_does_not_tell_its_build_id_is_said_to(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    missing = collect(sent(WHOLE), artifact(tmp_path / "artifact"), tmp_path, run).unavailable
    assert {"what": "the kernel's build id", "why": f"the guest did not send {NOTES}"} in missing


def passes(*, why: bytes = b"") -> tuple[Record, ...]:
    """Return one guest's passes under `perf record`: the golden recordings of another boot of that kernel."""
    cpu = json.dumps({"recorded": False, "values": {"elapsed": 2.0}}) + "\n"
    cpu += json.dumps({"recorded": True, "values": {"elapsed": 2.5}, "window": [0, 100]}) + "\n"
    records = [("out", "open:cpu", cpu.encode()), ("exit", "open:cpu", b"{}"), ("file", PERF_DATA, WHOLE)]
    for kind in ("lock", "off-cpu"):
        data = RECORDERS[kind].data
        windows = [
            {"recorded": True, "values": {"elapsed": 1.0}, "window": list(window)} for window in WINDOWS[kind]
        ]
        records += [("out", f"open:{kind}", "\n".join(map(json.dumps, windows)).encode())]
        records += [("exit", f"open:{kind}", b"{}"), ("file", f"{data}.why", why)]
        records += [("file", data, lzma.decompress((PROFILED / f"{kind}.data.xz").read_bytes()))]
    return tuple(Record(seq, *fields) for seq, fields in enumerate(records, 1))


def test_each_recorder_leaves_a_profile_of_its_kind(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    collected = collect(passes(), artifact(tmp_path / "artifact", PROFILED), tmp_path, run)
    cpu, lock, off_cpu = collected.profiles
    assert (cpu.kind, lock.kind, off_cpu.kind) == ("cpu", "lock", "off-cpu")
    assert cpu.overhead == pytest.approx(0.25)
    assert (lock.waits, lock.tree.samples, lock.overhead) == (4, 54_458_928, 0.0)
    assert raw_path(tmp_path, lock.perf_data_sha256).samefile(run / "perf.lock.data")
    assert collected.extras["half_waits"] == {"lock": 0, "off-cpu": 19}
    left_out = [row["what"] for row in collected.unavailable if "went on" in row["why"]]
    assert left_out == ["waits off the CPUs: those without an end"]


def test_a_recorder_that_a_kernel_cannot_run_is_told_and_the_others_stay(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    why = b"this kernel has no tracepoint lock:contention_begin\n"
    collected = collect(passes(why=why), artifact(tmp_path / "artifact", PROFILED), tmp_path, run)
    assert [profile.kind for profile in collected.profiles] == ["cpu"]
    assert {
        "what": "waits for locks, waits off the CPUs",
        "why": why.decode().strip(),
    } in collected.unavailable


@pytest.mark.parametrize(
    ("report", "why", "kept", "told"),
    [
        (b"", b"failed: memory events not supported\n", None, "failed: memory events not supported"),
        (b"Shared Data Cache Line Table\n", b"", "Shared Data Cache Line Table\n", ""),
    ],
)
def test_what_perf_c2c_reported_or_why_it_could_not_comes_with_the_profiles(
    tmp_path: Path, report: bytes, why: bytes, kept: str | None, told: str
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    files = (Record(91, "file", REPORT, report), Record(92, "file", WHY, why))
    collected = collect((*sent(WHOLE), *files), artifact(tmp_path / "artifact"), tmp_path, run)
    assert [profile.kind for profile in collected.profiles] == ["cpu"]
    assert collected.extras.get("shared_lines") == kept
    said = [row["why"] for row in collected.unavailable if "perf c2c" in row["what"]]
    assert said == ([told] if told else [])
