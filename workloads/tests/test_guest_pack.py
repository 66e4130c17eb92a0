# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

from workloads.errors import CaseRejected
from workloads.guest.pack import append_plan, pack_plan, read_steps
from workloads.guest.plan import Plan, Step

WALK = Step("walk", ("/programs/stat-walk", "-t", "2"), 30, "measure", ("/tmp/out.json",))


def test_a_plan_is_written_with_every_string_framed() -> None:
    packed = pack_plan(Plan((WALK,)), {})
    assert (
        b"KPLAN 1\nstep 30000 3 1\n7 measure\n4 walk\n19 /programs/stat-walk\n2 -t\n1 2\n13 /tmp/out.json\nend\n"
        in packed
    )


def test_arguments_may_hold_anything_a_command_line_can() -> None:
    script = "echo 'a b'\nexit 3 # ü"
    packed = pack_plan(Plan((Step("sh", ("sh", "-c", script), 1, "setup"),)), {})
    assert b"%d %s\n" % (len(script.encode()), script.encode()) in packed


def test_a_short_deadline_does_not_become_none() -> None:
    assert b"step 1 1 0\n" in pack_plan(Plan((Step("s", ("true",), 0.0001, "setup"),)), {})


def test_files_are_packed_where_steps_look_for_them() -> None:
    packed = pack_plan(Plan(()), {"bh-lookup.ko": b"\x7fELF"})
    assert b"plan/files/bh-lookup.ko\0" in packed


@pytest.mark.parametrize("name", ["../init", "a/b", "", ".", ".."])
def test_a_file_cannot_leave_its_folder(name: str) -> None:
    with pytest.raises(CaseRejected, match="plain name"):
        pack_plan(Plan(()), {name: b""})


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Step("two words", ("true",), 1, "setup"), "two words"),
        (Step("", ("true",), 1, "setup"), "1 to 200 bytes"),
        (Step("x" * 201, ("true",), 1, "setup"), "1 to 200 bytes"),
        (Step("line\nfeed", ("true",), 1, "setup"), "without blanks"),
        (Step("s", ("true",), 1, "setup", ("/tmp/a b",)), "/tmp/a b"),
        (Step("s", (), 1, "setup"), "runs no program"),
        (Step("s", ("",), 1, "setup"), "runs no program"),
        (Step("s", ("true",), 0, "setup"), "no time"),
        (Step("s", ("echo", "\0"), 1, "setup"), "zero byte"),
    ],
)
def test_a_plan_the_agent_cannot_carry_is_refused(step: Step, reason: str) -> None:
    with pytest.raises(CaseRejected, match=reason):
        pack_plan(Plan((step,)), {})


def test_the_plan_follows_the_initramfs_where_the_kernel_looks(tmp_path: Path) -> None:
    base = tmp_path / "base.cpio"
    base.write_bytes(b"12345")
    append_plan(base, b"plan", tmp_path / "initrd")
    assert (tmp_path / "initrd").read_bytes() == b"12345\0\0\0plan"


def test_a_further_archive_comes_before_the_plan(tmp_path: Path) -> None:
    base = tmp_path / "base.cpio"
    base.write_bytes(b"1234")
    append_plan(base, b"plan", tmp_path / "initrd", b"tools!")
    assert (tmp_path / "initrd").read_bytes() == b"1234tools!\0\0plan"


def test_the_steps_of_an_initrd_are_read_back_as_they_were_packed(tmp_path: Path) -> None:
    base, initrd = tmp_path / "base", tmp_path / "initrd"
    base.write_bytes(b"KPLAN 1\nin a compressed file" * 3)
    odd = Step("sh", ("sh", "-c", "echo 'a b'\nend\n7 # ü"), 0.25, "setup")
    append_plan(base, pack_plan(Plan((odd, WALK)), {"a.ko": b"\x7fELF"}), initrd)
    assert read_steps(initrd) == (odd, WALK)


def test_an_initrd_without_a_plan_is_told(tmp_path: Path) -> None:
    (tmp_path / "initrd").write_bytes(b"\x1f\x8b nothing else")
    with pytest.raises(CaseRejected, match="holds no plan"):
        read_steps(tmp_path / "initrd")
