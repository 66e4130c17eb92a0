# SPDX-License-Identifier: GPL-2.0-or-later
from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from kernels.artifacts.store import ArtifactMetadata
from workers import accelerator
from workers.accelerator import find_choice, is_trusted
from workers.drivers.base import BootRequest
from workers.drivers.fake import FakeDriver, Script
from workers.errors import BootFailed, TargetLost
from workloads.guest.initramfs import Initramfs

CRAWLS = Script(problem=BootFailed("the kernel did not reach its user space within 20 s"), boots=False)
REFUSED = Script(problem=TargetLost("libvirt would not start the guest: no such MSR"), boots=False)


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A host with a /dev/kvm, and guests without a real user space."""
    (tmp_path / "kvm").touch()
    (tmp_path / "empty.cpio").touch()
    made = Initramfs(tmp_path / "empty.cpio", "", tmp_path / "empty.cpio")
    monkeypatch.setattr(accelerator, "KVM_DEVICE", tmp_path / "kvm")
    monkeypatch.setattr(accelerator, "build_initramfs", lambda _root, _programs: made)
    return tmp_path


def under(**scripts: Script) -> FakeDriver:
    return FakeDriver(lambda request: scripts[request.machine.accelerator])


def never() -> FakeDriver:
    raise AssertionError("probed again")


def test_kvm_is_chosen_where_a_kernel_boots_under_it(host: Path) -> None:
    driver = under(kvm=Script())
    assert find_choice(host, host / "vmlinux", lambda: driver, trusted=True).accelerator == "kvm"
    assert driver.open_guests == 0


@pytest.mark.parametrize("script", [CRAWLS, REFUSED])
def test_a_kvm_that_boots_nothing_falls_back_with_one_warning(
    host: Path, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    driver = under(kvm=script, tcg=Script())
    with caplog.at_level(logging.WARNING):
        choice = find_choice(host, host / "vmlinux", lambda: driver, trusted=True)
        find_choice(host, host / "vmlinux", never, trusted=True)
    assert choice.accelerator == "tcg"
    assert str(script.problem) in choice.reason
    assert len(caplog.records) == 1


def test_without_a_device_nothing_is_booted(host: Path) -> None:
    (host / "kvm").unlink()
    assert find_choice(host, host / "vmlinux", never, trusted=True).accelerator == "tcg"


def test_a_choice_is_remembered(host: Path) -> None:
    first = find_choice(host, host / "vmlinux", lambda: under(kvm=Script()), trusted=True)
    assert find_choice(host, host / "vmlinux", never, trusted=True) == first


def test_another_device_is_probed_anew(host: Path) -> None:
    find_choice(host, host / "vmlinux", lambda: under(kvm=CRAWLS, tcg=Script()), trusted=True)
    (host / "kvm").chmod(0o600)
    assert find_choice(host, host / "vmlinux", lambda: under(kvm=Script()), trusted=True).accelerator == "kvm"


def test_a_kernel_that_boots_nowhere_decides_nothing(host: Path) -> None:
    assert (
        find_choice(host, host / "vmlinux", lambda: under(kvm=CRAWLS, tcg=CRAWLS), trusted=True).accelerator
        == "tcg"
    )
    assert find_choice(host, host / "other", lambda: under(kvm=Script()), trusted=True).accelerator == "kvm"


@pytest.mark.parametrize("damage", ["", "{", '{"accelerator": "kvm"}', "[1]"])
def test_a_damaged_memory_is_no_memory(host: Path, damage: str) -> None:
    (host / "accelerator.json").write_text(damage)
    assert find_choice(host, host / "vmlinux", lambda: under(kvm=Script()), trusted=True).accelerator == "kvm"
    assert json.loads((host / "accelerator.json").read_text())["accelerator"] == "kvm"


def test_the_probe_leaves_no_files(host: Path) -> None:
    seen: list[Path] = []

    def script_for(request: BootRequest) -> Script:
        seen.append(request.directory)
        return Script()

    make: Callable[[], FakeDriver] = lambda: FakeDriver(script_for)  # noqa: E731
    find_choice(host, host / "vmlinux", make, trusted=True)
    assert seen
    assert not any(path.exists() for path in seen)


@pytest.mark.hostile
def test_a_strangers_kernel_that_boots_under_emulation_alone_decides_for_itself_only(host: Path) -> None:
    (host / "vmlinux").write_bytes(b"stranger")
    (host / "other").write_bytes(b"other")
    against_kvm: Callable[[], FakeDriver] = lambda: under(kvm=CRAWLS, tcg=Script())  # noqa: E731
    assert find_choice(host, host / "vmlinux", against_kvm, trusted=False).accelerator == "tcg"
    assert find_choice(host, host / "vmlinux", never, trusted=False).accelerator == "tcg"
    assert find_choice(host, host / "other", lambda: under(kvm=Script()), trusted=False).accelerator == "kvm"
    assert find_choice(host, host / "vmlinux", never, trusted=False).accelerator == "kvm"


def test_kernels_that_boot_in_turns_are_each_probed_once(host: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a kernel of the lab's own nothing is decided for all, and a probe waits for its deadline."""
    kernels = [host / name for name in ("base", "patched")]
    for kernel in kernels:
        kernel.touch()
        find_choice(host, kernel, lambda: under(kvm=CRAWLS, tcg=Script()), trusted=False)
    for kernel in kernels * 2:
        assert find_choice(host, kernel, never, trusted=False).accelerator == "tcg"
    monkeypatch.setattr(accelerator, "host_fingerprint", lambda: "of the next boot")
    find_choice(host, kernels[0], lambda: under(kvm=CRAWLS, tcg=Script()), trusted=False)
    assert len(list((host / "accelerators").iterdir())) == 1


@pytest.mark.hostile
def test_a_kernel_of_the_lab_is_asked_where_only_strangers_were(host: Path) -> None:
    against_kvm: Callable[[], FakeDriver] = lambda: under(kvm=CRAWLS, tcg=Script())  # noqa: E731
    find_choice(host, host / "vmlinux", against_kvm, trusted=False)
    assert find_choice(host, host / "vmlinux", lambda: under(kvm=Script()), trusted=True).accelerator == "kvm"


@pytest.mark.parametrize(
    ("tree", "revision", "trusted"),
    [
        ("debian-6.1", "b", True),
        ("debian-6.1", "c", False),
        ("linux", "b", False),
        ("debian-6.1-mine", "b", False),
    ],
)
def test_a_kernel_is_trusted_where_it_is_a_tree_of_the_lab_without_patches(
    tree: str, revision: str, trusted: bool
) -> None:
    metadata = ArtifactMetadata("", tree, revision, "t", "b", "", "", "", "", 0.0, 0.0, "", "")
    assert is_trusted(metadata) is trusted
