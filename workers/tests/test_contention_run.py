# SPDX-License-Identifier: GPL-2.0-or-later
"""The contention clock in an experiment: asked for, recorded, replayed, stored, and every way that can fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernels.artifacts.store import Artifact
from lab.errors import SpecError
from lab.models import Experiment, Profile, Sample
from lab.profiles.exports.data import profile_file
from lab.profiles.page import profile_page
from workers.drivers.base import BootRequest, Session
from workers.drivers.fake import Script, played, sent
from workers.errors import PluginUnusable, ProfileUnreadable
from workers.microscope.accesses import check_cpus
from workers.microscope.slab_pages import SlabPages, read_slab_pages
from workers.tests.conftest import FakeLab
from workers.tests.fakeexact import PROGRAM, call_tree
from workers.tests.guestmemory import MEMORY_MIB, PAGE_OFFSET, GuestMemory
from workers.tests.guestmemory import SYSTEM_MAP as SLAB_SYMBOLS
from workers.tests.tracewriter import ATOMIC, HEAP, Recorder
from workloads.contention import MACHINE
from workloads.errors import BadParam
from workloads.machines import machine_names
from workloads.passes import MODULE_SYMBOLS

pytestmark = pytest.mark.process

CPUS = (1, 2, 4)
CASE = {"workload": "showgids", "preset": "smoke", "params": {"cpus": list(CPUS)}}
MEASURE = {"clock": "contention", "boots": 2, "iterations": 2, "warmup": 1}
OPENS = 100
NODE = 4


def recorder(cpu: int, shared: bool, node: int = NODE) -> Recorder:
    """Two intervals of so many opens each, in which a counter is counted up: all CPUs' own, or each one's."""
    recording = Recorder(cpu, node)
    for interval in range(2):
        for _ in range(OPENS):
            recording.access(ATOMIC, HEAP if shared else HEAP + 4096 * cpu, after=50)
        recording.end(50)
        if interval == 0:
            recording.begin()
    return recording


def write(request: BootRequest, *, shared: bool, cpus: int = max(CPUS), **changed: Any) -> None:
    for cpu in range(cpus):
        recording = recorder(cpu, shared)
        size = len(recording.bytes())
        (request.directory / f"accesses.0.{cpu}").write_bytes(
            recording.bytes(**{"why": size << 32} | changed)
        )


def calls(request: BootRequest) -> bytes:
    rows = (line.split() for line in request.kernel.with_name("System.map").read_text().splitlines())
    function = next(int(address, 16) for address, _, name in rows if name == "find_inode_fast")
    return call_tree([(function, PROGRAM, 1000, 1)])


def printed(*call_trees: bytes) -> Script:
    operations = OPENS * max(CPUS)
    lines = [
        json.dumps({"iteration": at, "warmup": at == 0, "values": {"elapsed": 1}, "operations": operations})
        + "\n"
        for at in range(3)
    ]
    return Script(records=played("soft-roce", "") + played("open", "".join(lines)), call_trees=call_trees)


def contending(*, shared: bool, **changed: Any) -> Callable[[BootRequest], Script]:
    def script(request: BootRequest) -> Script:
        write(request, shared=shared, **changed)
        return printed(calls(request))

    return script


@pytest.fixture(autouse=True)
def locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pretend kernel has no locks."""
    monkeypatch.setattr(
        "workers.collect.contended.lock_function_lines", lambda system_map: "ffffffff81000200 w\n"
    )


@pytest.fixture
def patch(fake_lab: FakeLab) -> str:
    return fake_lab.diff("fs/inode.c", "\tWARN_HERE();\n", "")


def run(fake_lab: FakeLab, patch: str = "", **more: Any) -> Experiment:
    """Run an experiment of the base alone, or of a patch beside it."""
    return fake_lab.run(
        fake_lab.spec({"apart": patch} if patch else {}, **{"cases": [CASE], "measure": MEASURE} | more)
    )


def outcomes(experiment: Experiment) -> set[tuple[str, str, str]]:
    """Of what was booted: an experiment gives up on a kernel that fails again and again."""
    booted = experiment.runs.exclude(outcome="")
    return set(booted.values_list("outcome", "blame", "problem"))


def test_cpus_that_meet_in_one_line_are_told_from_those_that_do_not(fake_lab: FakeLab, patch: str) -> None:
    fake_lab.scripts[""] = contending(shared=True)
    fake_lab.scripts["apart"] = contending(shared=False)
    experiment = run(fake_lab, patch)
    assert outcomes(experiment) == {("finished", "", "")}
    sensitive = [run.variant.name for run in experiment.runs.all() if "latencies" in run.extras["contention"]]
    assert sorted(sensitive) == sorted(experiment.variants.values_list("name", flat=True)), "a boot of each"
    samples = Sample.objects.filter(run__experiment=experiment)
    assert set(samples.values_list("metric", flat=True)) == {
        f"{stem}_{count}" for stem in ("cycles_per_open", "slowdown", "waiting") for count in CPUS
    }

    assert set(samples.filter(warmup=True).values_list("iteration", flat=True)) == {1}, (
        "replayed with empty caches"
    )

    def values(variant: str, metric: str) -> set[float]:
        rows = samples.filter(run__variant__name=variant, metric=metric, iteration=2)
        return {round(value, 3) for value in rows.values_list("value", flat=True)}

    for variant in ("base", "apart"):
        assert (values(variant, "slowdown_1"), values(variant, "waiting_1")) == ({1.0}, {0.0})
    assert values("apart", "slowdown_4") == {1.0}
    (two,), (four,) = values("base", "slowdown_2"), values("base", "slowdown_4")
    assert 1 < two < four


def test_a_boot_has_a_cpu_for_each_thread_and_its_recording_is_gone_afterwards(fake_lab: FakeLab) -> None:
    asked: list[BootRequest] = []

    def script(request: BootRequest) -> Script:
        asked.append(request)
        return contending(shared=True)(request)

    fake_lab.scripts[""] = script
    experiment = run(fake_lab)
    for request in asked:
        assert (request.machine.vcpus, request.machine.clock, request.machine.accelerator) == (
            4,
            "contention",
            "tcg",
        )
        assert request.microscope is not None
        assert request.microscope.accesses
        assert not list(request.directory.glob("accesses.*"))
    extras = experiment.runs.filter(outcome="finished").values_list("extras", flat=True)
    for extra in extras:
        assert extra["contention"]["machine"] == "one-socket"
        assert extra["contention"]["lines"][0]["name"] == "kernel memory of find_inode_fast"
        assert extra["contention"]["lines"][0]["callers"][0]["chain"][0] == "find_inode_fast"


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("changed", "blame", "said"),
    [
        ({"cpus": 3}, "kernel", "4 CPUs were to measure, and CPU 3 left nothing"),
        ({"cpus": 5}, "kernel", "4 CPUs were to measure, and CPU 4 measured too"),
        ({"cpus": 0}, "kernel", "4 CPUs were to measure, and CPU 0 left nothing"),
        ({"whole": 0, "why": 1}, "kernel", "it outgrew 256 MiB"),
        ({"whole": 0, "why": 3}, "kernel", "a measured thread of CPU 0 outlived its program"),
        ({"why": 0}, "kernel", "is cut short"),
        ({"magic": b"ELF!"}, "kernel", "not written by this version"),
        ({"records": 7}, "kernel", ""),
    ],
)
def test_a_recording_that_is_not_whole_is_a_named_outcome_and_no_result(
    fake_lab: FakeLab, changed: dict[str, Any], blame: str, said: str
) -> None:
    fake_lab.scripts[""] = contending(shared=True, **changed)
    experiment = run(fake_lab)
    assert {(at, said in problem) for _, at, problem in outcomes(experiment)} == {(blame, True)}
    assert not Sample.objects.filter(run__experiment=experiment).exists()
    assert not [path for request in fake_lab.driver.requests for path in request.directory.glob("accesses.*")]


@pytest.mark.hostile
@pytest.mark.parametrize("intervals", [1, 3, 100])
def test_marks_of_a_guests_own_are_a_named_outcome(fake_lab: FakeLab, intervals: int) -> None:
    def script(request: BootRequest) -> Script:
        for cpu in range(max(CPUS)):
            recording = Recorder(cpu, NODE)
            for interval in range(intervals):
                recording.access(ATOMIC, HEAP, after=50)
                recording.end(50)
                if interval < intervals - 1:
                    recording.begin()
            (request.directory / f"accesses.0.{cpu}").write_bytes(
                recording.bytes(why=len(recording.bytes()) << 32)
            )
        return printed(calls(request))

    fake_lab.scripts[""] = script
    experiment = run(fake_lab)
    assert {(outcome, blame) for outcome, blame, _ in outcomes(experiment)} == {("workload-failed", "kernel")}
    assert {problem for _, _, problem in outcomes(experiment)} == {
        f"{intervals} intervals were recorded, and 2 iterations were timed: something else in the guest executed the "
        "microscope's mark, or the workload ended early"
    }
    assert not Sample.objects.filter(run__experiment=experiment).exists()


@pytest.mark.hostile
def test_a_program_that_watches_twice_is_a_named_outcome(fake_lab: FakeLab) -> None:
    def script(request: BootRequest) -> Script:
        write(request, shared=True)
        for cpu in range(max(CPUS)):
            recorded = (request.directory / f"accesses.0.{cpu}").read_bytes()
            (request.directory / f"accesses.1.{cpu}").write_bytes(recorded)
        return printed(calls(request), calls(request))

    fake_lab.scripts[""] = script
    (only,) = outcomes(run(fake_lab))
    assert only[1:] == ("kernel", "2 programs were recorded, where one was to measure")


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("CONFIG_NR_CPUS=3\n", "cpus = 4 cannot be recorded: the kernel's CONFIG_NR_CPUS allows 1 to 3"),
        ("CONFIG_NR_CPUS=1\n", "cpus = 4 cannot be recorded: the kernel's CONFIG_NR_CPUS allows 1 to 1"),
    ],
)
def test_more_cpus_than_the_kernel_has_are_refused_before_the_boot(
    tmp_path: Path, config: str, said: str
) -> None:
    kept = tmp_path / "config"
    kept.write_text(config)
    with pytest.raises(ProfileUnreadable) as refused:
        check_cpus(cast(Artifact, SimpleNamespace(config=kept)), 4)
    assert str(refused.value) == said
    check_cpus(cast(Artifact, SimpleNamespace(config=kept)), 1)


@pytest.mark.hostile
def test_a_qemu_without_plugins_is_the_labs_fault_and_named(fake_lab: FakeLab) -> None:
    problem = "this QEMU takes no plugin; exact profiles and the contention clock need one built with --enable-plugins"
    fake_lab.scripts[""] = lambda request: Script(problem=PluginUnusable(problem), boots=False)
    assert outcomes(run(fake_lab)) == {("lost", "lab", problem)}
    assert not Sample.objects.exists()


@pytest.mark.hostile
def test_a_workload_that_never_enters_its_interval_is_a_named_outcome(fake_lab: FakeLab) -> None:
    fake_lab.scripts[""] = lambda request: printed()
    (only,) = outcomes(run(fake_lab))
    assert only[1:] == ("kernel", "nothing was recorded: the workload never entered its measured interval")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"measure": {**MEASURE, "profile": True}}, "profile: the contention clock records every access"),
        ({"measure": {**MEASURE, "verify": True}}, "verify: the contention clock records every access"),
        ({"cases": [{**CASE, "profile": True}]}, r"cases\[0\].profile: the contention clock"),
        ({"cases": [{**CASE, "params": {"cpus": [65]}}]}, "whole numbers from 1 to 64"),
        ({"cases": [{**CASE, "params": {"machine": "mine"}}]}, "one-socket, two-socket"),
        ({"cases": [{**CASE, "params": {"threads": 3}}]}, "cannot be used with the contention clock"),
        ({"measure": {"boots": 2}}, 'no parameter of showgids is called "cpus"'),
    ],
)
def test_a_description_that_asks_for_what_there_is_not_is_refused(
    fake_lab: FakeLab, more: dict[str, Any], said: str
) -> None:
    with pytest.raises((SpecError, BadParam), match=said):
        run(fake_lab, **more)


def test_machines_that_can_be_asked_for_are_those_that_are_modelled() -> None:
    assert all(MACHINE.read(name) == name for name in machine_names())


def test_each_replayed_boot_has_a_profile_of_cycles_waited_per_operation(
    fake_lab: FakeLab, patch: str
) -> None:
    fake_lab.scripts[""] = contending(shared=True)
    fake_lab.scripts["apart"] = contending(shared=False)
    experiment = run(fake_lab, patch)
    case = experiment.cases.get()
    profiles = Profile.objects.filter(run__experiment=experiment)
    assert set(profiles.values_list("kind", "operations")) == {("waiting", 2 * OPENS * max(CPUS))}
    boots = experiment.runs.filter(outcome="finished").count()
    assert profiles.count() == boots
    folded = profile_file(experiment.pk, "folded", kind="waiting", variant="base").decode()
    stack, cycles = folded.split()
    assert stack == "find_inode_fast"
    evidence = experiment.runs.filter(variant__name="base", outcome="finished")[0].extras["contention"]
    assert int(cycles) == round(evidence["waiting"] / (2 * OPENS * max(CPUS)))
    assert profile_file(experiment.pk, "folded", kind="waiting", variant="apart") == b""
    page = profile_page(experiment.pk, case.pk)
    assert (page.kind, page.unit, page.waits) == ("waiting", "cycles", True)
    (row,) = [row for row in page.symbols if row.symbol == "find_inode_fast"]
    sizes = {column.variant: cell.size for column, cell in zip(page.columns, row.own, strict=True)}
    assert sizes["apart"] == 0
    assert round(sizes["base"]) == int(cycles)


def in_a_module(kallsyms: bytes) -> Callable[[BootRequest], Script]:
    """Return a guest whose CPUs meet in a function of a module, and that says so of its modules."""

    def script(request: BootRequest) -> Script:
        write(request, shared=True)
        printout = printed(call_tree([(0xFFFFFFFFC0000014, PROGRAM, 1000, 1)]))
        return replace(
            printout, records=printout.records + played("open:symbols", "") + sent(MODULE_SYMBOLS, kallsyms)
        )

    return script


@pytest.mark.parametrize(
    ("kallsyms", "name"),
    [
        (b"ffffffffc0000010 t look_up\t[bh_lookup]\nffffffffc0000090 t exit\t[bh_lookup]\n", "look_up [bh_lookup]"),
        (b"", "[unknown]"),
        (b"ffffffffc0000000 t <b>\x1b[2J\0\t[evil]\n", "<b>\ufffd[2J\ufffd [evil]"),
    ],
)  # fmt: skip
def test_a_function_of_a_module_is_named_by_the_guests_own_list(
    fake_lab: FakeLab, kallsyms: bytes, name: str
) -> None:
    fake_lab.scripts[""] = in_a_module(kallsyms)
    experiment = run(fake_lab)
    assert outcomes(experiment) == {("finished", "", "")}
    contention = experiment.runs.filter(outcome="finished")[0].extras["contention"]
    assert [row["chain"] for row in contention["functions"]] == [[name]]
    assert profile_file(experiment.pk, "folded", kind="waiting", variant="base").decode().startswith(name)


def test_a_line_in_slab_memory_is_named_by_its_cache(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = GuestMemory([(b"kmalloc-96", 96, HEAP - PAGE_OFFSET >> 12, 1)])

    def read(session: Session, request: BootRequest) -> SlabPages | None:
        with session.memory() as peek:
            assert peek is not None
            return read_slab_pages(peek, SLAB_SYMBOLS, MEMORY_MIB)

    # The pretend kernel has no slab caches.
    monkeypatch.setattr("workers.run.slab_pages", read)
    fake_lab.scripts[""] = lambda request: replace(contending(shared=True)(request), memory=memory.read)
    experiment = run(fake_lab)
    assert outcomes(experiment) == {("finished", "", "")}
    (line,) = experiment.runs.filter(outcome="finished")[0].extras["contention"]["lines"]
    assert line["name"] == "slab kmalloc-96, bytes 0 to 63, of find_inode_fast"


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"magic": b"ELF!"}, "not written by this version of the microscope"),
        ({"version": 2}, "not written by this version of the microscope"),
        ({"whole": 0}, "the exact profile is not whole"),
        ({"instructions": 7}, "do not add up to its total"),
    ],
)
def test_a_garbled_call_tree_is_refused_by_the_reader_apart(
    fake_lab: FakeLab, changed: dict[str, Any], said: str
) -> None:
    def script(request: BootRequest) -> Script:
        write(request, shared=True)
        return printed(call_tree([(0xFFFFFFFF81000200, PROGRAM, 1000, 1)], **changed))

    fake_lab.scripts[""] = script
    experiment = run(fake_lab)
    assert {(at, said in problem) for _, at, problem in outcomes(experiment)} == {("kernel", True)}
    assert not Profile.objects.filter(run__experiment=experiment).exists()
