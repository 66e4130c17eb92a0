# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact profiles in an experiment: asked for, booted under the microscope, stored, and every way that can fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.errors import SpecError
from lab.models import Experiment, Profile
from lab.profiles.analysis.frame_tree import stacks_of, unpack
from lab.profiles.analysis.source_lines import merged_lines
from workers.drivers.base import BootRequest
from workers.drivers.calls import bring_home
from workers.drivers.fake import Script
from workers.drivers.libvirt import plugin_refused
from workers.errors import BootDiscarded, DomainRefused, PluginUnusable
from workers.tests.conftest import FakeLab
from workers.tests.fakeexact import INTERRUPTS, PROGRAM, Row, call_tree, exact

MEASURE = {
    "boots": 2,
    "iterations": 2,
    "warmup": 1,
    "clock": "instructions",
    "profile": "exact",
    "profile_boots": 2,
}
# entry_SYSCALL_64 stands below the program, and the kernel's functions below it.
ROWS: list[Row] = [
    ("entry_SYSCALL_64", PROGRAM, 2_000, 200),
    ("find_inode_fast", 4, 1_000, 200),
    ("find_inode_fast", INTERRUPTS, 70, 7),
]


@pytest.fixture
def slower(fake_lab: FakeLab) -> str:
    return fake_lab.diff("fs/inode.c", "\tWARN_HERE();\n", "")


def look(fake_lab: FakeLab, patch: str, script: Callable[[BootRequest], Script]) -> Experiment:
    fake_lab.scripts[""] = script
    return fake_lab.run(fake_lab.spec({"slower": patch}, measure=MEASURE))


def outcomes(experiment: Experiment) -> set[tuple[str, str, str]]:
    runs = experiment.runs.filter(purpose="profiled")
    return set(runs.values_list("outcome", "blame", "problem"))


def test_an_exact_profile_is_stored_with_calls_and_operations(fake_lab: FakeLab, slower: str) -> None:
    experiment = look(fake_lab, slower, lambda request: exact(request, ROWS))
    assert outcomes(experiment) == {("finished", "", "")}
    profiles = Profile.objects.filter(run__experiment=experiment)
    # The base, the base once more and the patch, twice each.
    assert profiles.count() == 6
    for profile in profiles:
        assert (profile.kind, profile.samples, profile.operations) == ("exact", 3_070, 200)
        assert dict(stacks_of(unpack(bytes(profile.tree)))) == {
            ("entry_SYSCALL_64",): 2_000,
            ("entry_SYSCALL_64", "find_inode_fast"): 1_000,
            ("[interrupts]", "find_inode_fast"): 70,
        }
        assert dict(stacks_of(unpack(bytes(profile.calls or b"")))) == {
            ("entry_SYSCALL_64",): 200,
            ("entry_SYSCALL_64", "find_inode_fast"): 200,
            ("[interrupts]", "find_inode_fast"): 7,
        }
        lines = merged_lines([profile.lines])
        assert {name: line.partition(":")[0] for name, line in lines.items()} == {
            "entry_SYSCALL_64": "fs/inode.c", "find_inode_fast": "fs/inode.c",
        }  # fmt: skip
    assert not experiment.runs.filter(purpose="profiled", samples__isnull=False).exists()


def test_only_exact_boots_run_under_the_microscope_each_with_a_shift_of_its_own(
    fake_lab: FakeLab, slower: str
) -> None:
    looked: dict[str, list[str]] = {}

    def script(request: BootRequest) -> Script:
        assert request.machine.clock == "instructions"
        if request.microscope:
            assert request.microscope.plugin.is_file()
            assert "s" in request.microscope.functions.read_text()
            said = exact(request, ROWS)
            printed = next(payload for kind, step, payload in said.records if (kind, step) == ("out", "open"))
            looked.setdefault(request.name.partition(":")[0], []).append(str(printed.count(b"true")))
            return said
        return exact(request, ROWS)

    look(fake_lab, slower, script)
    # The plan's warm-up; base-again in between, as its own control; two more in the second block.
    assert {name: sorted(counts) for name, counts in looked.items()} == {
        "base": ["1", "3"], "slower": ["1", "3"], "base-again": ["2", "4"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("measure", "cases", "says"),
    [
        ({"profile": "exact"}, {}, r'^measure\.profile: an exact profile counts instructions.*set measure\.clock'),
        ({}, {"profile": "exact"}, r'^cases\[0\]\.profile: an exact profile counts instructions'),
        ({"profile": "exactly"}, {}, r'^measure\.profile: "exactly" is neither true, false nor "exact"$'),
        ({"profile": 1}, {}, r'^measure\.profile: 1 is neither true, false nor "exact"$'),
        (
            {"profile": "exact", "clock": "instructions", "off_cpu": True}, {},
            r'^measure\.off_cpu: waits are recorded in profiled boots, and no case is profiled by samples',
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_profiled_exactly_is_refused_in_words(
    fake_lab: FakeLab, measure: dict[str, Any], cases: dict[str, Any], says: str
) -> None:
    case = {"workload": "showgids", "preset": "smoke"} | cases
    with pytest.raises(SpecError, match=says):
        fake_lab.spec({}, measure=measure, cases=[case])


@pytest.mark.hostile
def test_a_boot_that_never_measured_is_an_outcome_and_what_was_measured_stands(
    fake_lab: FakeLab, slower: str
) -> None:
    experiment = look(fake_lab, slower, lambda request: Script(records=exact(request, ROWS).records))
    never = "the exact profile is empty: the workload never entered its timed interval"
    assert ("workload-failed", "kernel", never) in outcomes(experiment)
    assert not Profile.objects.filter(run__experiment=experiment).exists()
    assert set(experiment.runs.filter(purpose="measured").values_list("state", flat=True)) == {"done"}
    assert experiment.state == "done"
    assert fake_lab.driver.open_guests == 0


def test_a_disk_that_is_full_when_the_tree_comes_home_is_the_labs_fault(tmp_path: Path) -> None:
    written, home = tmp_path / "written", tmp_path / "home"
    written.mkdir()
    home.mkdir()
    (written / "calls.0").write_bytes(call_tree([]))
    # Each write to it finds no space left.
    (home / "calls.0").symlink_to("/dev/full")
    with pytest.raises(BootDiscarded, match=r"cannot be copied to .*: No space left on device$") as caught:
        bring_home(written, home)
    assert (caught.value.blame, caught.value.retry) == ("lab", True)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        "-plugin /x/microscope.so: plugin interface not enabled in this build",
        "Could not load plugin /x/microscope.so: plugin requires API version 1, but this QEMU supports only 2 to 4",
    ],
)
def test_a_qemu_that_takes_no_plugin_of_ours_says_what_is_needed(words: str) -> None:
    refused = plugin_refused(DomainRefused(f"libvirt would not start the guest: {words}"))
    assert str(refused).endswith(
        "exact profiles and the contention clock need a QEMU built with --enable-plugins, such as Debian's"
    )
    assert words in str(refused)
    assert (type(refused), refused.blame, refused.retry) == (PluginUnusable, "lab", False)
    other = DomainRefused("libvirt would not start the guest: no memory")
    assert plugin_refused(other) is other


def test_a_worker_whose_qemu_takes_no_plugin_loses_exact_boots_alone(fake_lab: FakeLab, slower: str) -> None:
    def script(request: BootRequest) -> Script:
        if request.microscope:
            return Script(problem=PluginUnusable("this QEMU takes no plugin"), boots=False)
        return exact(request, ROWS)

    experiment = look(fake_lab, slower, script)
    assert ("lost", "lab", "this QEMU takes no plugin") in outcomes(experiment)
    assert set(experiment.runs.filter(purpose="measured").values_list("state", flat=True)) == {"done"}
