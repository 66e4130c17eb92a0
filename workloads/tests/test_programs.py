# SPDX-License-Identifier: GPL-2.0-or-later
"""The C programs, run on this machine: what they print, and how they refuse."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from workloads.catalog import load_catalog
from workloads.compile import HARNESS, compile_programs
from workloads.errors import GuestNotMade

pytestmark = pytest.mark.process

DEADLINE_S = 30


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return compile_programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for thread in range(2):
        for directory in range(3):
            place = tmp_path / f"t{thread}" / f"d{directory}"
            place.mkdir(parents=True)
            for file in range(5):
                (place / f"f{file}").touch()
    return tmp_path


def run(*argv: object) -> list[dict[str, Any]]:
    done = subprocess.run([str(part) for part in argv], capture_output=True, text=True, timeout=DEADLINE_S)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def refusal(*argv: object) -> str:
    done = subprocess.run([str(part) for part in argv], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    return done.stderr.strip()


def test_equal_sources_are_compiled_once(programs: dict[str, Path]) -> None:
    root = programs["showgids"].parents[1]
    before = programs["showgids"].stat().st_mtime_ns
    again = compile_programs(root, [load_catalog()["showgids"]])
    assert again["showgids"] == programs["showgids"]
    assert again["showgids"].stat().st_mtime_ns == before


def test_a_compiled_program_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Since it is compiled once, one that a power cut left empty would fail in every later boot."""
    synced = set()
    sync = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr("os.fsync", noted)
    made = compile_programs(tmp_path, [load_catalog()["showgids"]])["showgids"]
    assert made.stat().st_ino in synced


def test_programs_need_no_library(programs: dict[str, Path]) -> None:
    for path in programs.values():
        assert b"/lib64/ld-linux" not in path.read_bytes()


def test_a_walk_prints_an_object_per_iteration_warm_ups_first(programs: dict[str, Path], tree: Path) -> None:
    objects = run(
        programs["stat-walk"],
        f"root={tree}",
        "threads=2",
        "dirs=3",
        "files=5",
        "cache=warm",
        "iterations=2",
        "warmup=1",
    )
    assert [(item["iteration"], item["warmup"]) for item in objects] == [(0, True), (1, False), (2, False)]
    for item in objects:
        assert item["stats"] == 30
        values = item["values"]
        assert values["files_per_second"] == pytest.approx(30 / values["elapsed"], rel=1e-6)
        assert values["ns_per_stat"] == pytest.approx(values["elapsed"] * 2 / 30 * 1e9, rel=1e-6)


def test_a_missing_file_ends_the_walk_by_its_name(programs: dict[str, Path], tree: Path) -> None:
    said = refusal(programs["stat-walk"], f"root={tree}", "threads=2", "dirs=3", "files=6", "cache=warm")
    assert said == f"stat-walk: cannot stat {tree}/t0/d0/f5: No such file or directory"


def test_a_tree_too_small_to_thrash_is_refused_with_the_size_it_takes(
    programs: dict[str, Path], tree: Path
) -> None:
    said = refusal(programs["stat-walk"], f"root={tree}", "threads=2", "dirs=3", "files=5", "cache=thrash")
    assert "at least 31957 inodes are needed" in said


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("fils=5", "unknown argument fils=5"),
        ("threads=two", "threads=two: not a whole number"),
        ("threads=0", "threads=0: at least one is needed"),
        ("cache=hot", "cache=hot: cold, warm or thrash"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    programs: dict[str, Path], tree: Path, argument: str, says: str
) -> None:
    assert says in refusal(programs["stat-walk"], f"root={tree}", "cache=warm", "dirs=1", "files=1", argument)


def test_every_thread_opens_every_file_in_every_round(programs: dict[str, Path], tree: Path) -> None:
    (item,) = run(programs["showgids"], f"glob={tree}/t*/d*/f*", "threads=2", "rounds=7", "reading=1")
    assert item["files"] == 30
    assert item["values"]["opens_per_second"] * item["values"]["elapsed"] == pytest.approx(
        2 * 7 * 30, rel=1e-6
    )


def test_the_fallback_is_used_and_said(programs: dict[str, Path], tree: Path) -> None:
    (item,) = run(programs["showgids"], f"glob={tree}/none*", f"fallback={tree}/t0/d0/*", "most=3")
    assert (item["files"], item["glob"]) == (3, f"{tree}/t0/d0/*")
    assert "no file matches" in refusal(programs["showgids"], f"glob={tree}/none*")


def test_perf_is_on_during_timed_iterations_only(
    programs: dict[str, Path], tree: Path, tmp_path: Path
) -> None:
    orders, answers = tmp_path / "ctl", tmp_path / "ack"
    os.mkfifo(orders)
    os.mkfifo(answers)
    commands: list[str] = []

    def listen() -> None:
        # Both ways at once, as perf opens them: a fifo's open() would wait for the other side.
        with os.fdopen(os.open(orders, os.O_RDWR)) as ctl, os.fdopen(os.open(answers, os.O_RDWR), "w") as ack:
            ready.set()
            while len(commands) < 4:
                commands.append(ctl.readline().strip())
                ack.write("ack\n")
                ack.flush()
            done.wait(DEADLINE_S)

    ready, done = threading.Event(), threading.Event()
    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    assert ready.wait(DEADLINE_S)
    run(
        programs["showgids"],
        f"glob={tree}/t0/d0/*",
        "iterations=2",
        "warmup=3",
        f"control={orders},{answers}",
    )
    done.set()
    listener.join(DEADLINE_S)
    assert commands == ["enable", "disable", "enable", "disable"]


def test_a_program_that_perf_does_not_listen_to_says_so(programs: dict[str, Path], tree: Path) -> None:
    said = refusal(programs["showgids"], f"glob={tree}/t0/d0/*", f"control={tree}/none,{tree}/none")
    assert "perf does not listen" in said


def test_the_load_runs_a_command_and_reports_beside_it(programs: dict[str, Path], tree: Path) -> None:
    argv = [
        programs["bh-load"],
        "load=off",
        f"directory={tree}",
        "device=/dev/null",
        "iteration=3",
        "warmup=1",
    ]
    (item,) = run(*argv, "--", "true")
    assert (item["iteration"], item["warmup"], item["values"]) == (3, True, {})
    assert len(item["function_call_interrupts"]) >= 1


def test_the_load_passes_on_that_its_command_failed(programs: dict[str, Path], tree: Path) -> None:
    argv = [programs["bh-load"], "load=off", f"directory={tree}", "device=/dev/null"]
    assert "false ended with status 1" in refusal(*argv, "--", "false")
    assert "no command after --" in refusal(*argv)


def test_a_program_that_does_not_compile_is_told_by_its_first_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "programs" / "showgids"
    folder.mkdir(parents=True)
    (folder / "showgids.c").write_text("int main(void) { return missing; }\n")
    monkeypatch.setattr("workloads.compile.PROGRAMS", tmp_path / "programs")
    with pytest.raises(GuestNotMade, match=r"showgids does not compile: .*missing.* undeclared") as caught:
        compile_programs(tmp_path / "kept", [load_catalog()["showgids"]])
    assert "showgids.c" in caught.value.detail


def test_under_the_instruction_clock_output_waits_for_the_end_and_iterations_for_a_full_second(
    programs: dict[str, Path], tree: Path
) -> None:
    command = [
        str(programs["stat-walk"]),
        f"root={tree}",
        "dirs=3",
        "files=5",
        "cache=warm",
        "clock=instructions",
    ]
    program = subprocess.Popen([*command, "iterations=2"], stdout=subprocess.PIPE)
    assert program.stdout
    first, *rest = program.stdout
    assert program.wait(30) == 0  # the first line came with the last
    assert [json.loads(line)["iteration"] for line in (first, *rest)] == [0, 1]
    assert "clock=cpu: wall, instructions or contention" in refusal(*command[:-1], "clock=cpu")


def test_for_contention_each_thread_needs_a_cpu_of_its_own(programs: dict[str, Path], tree: Path) -> None:
    cpus = len(os.sched_getaffinity(0))
    stem = [str(programs["stat-walk"]), f"root={tree}", "dirs=1", "files=1", "cache=warm", "clock=contention"]
    wanted = f"threads={cpus + 1}: each needs a CPU of its own, and there are {cpus}"
    assert wanted in refusal(*stem, f"threads={cpus + 1}")


TURNS = r"""
#include "harness.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static atomic_int inside, most, order, gone, early;
static pthread_key_t leaving;

static void leave(void *value)
{
	(void)value;
	gone++;
}

static void thread(unsigned int index)
{
	int now = ++inside;

	pthread_setspecific(leaving, &leaving);
	if (now > most)
		most = now;
	order = order * 10 + (int)index;
	for (int i = 0; i < 1000; i++)
		sched_yield();
	early += gone;
	inside--;
}

static void report(const struct interval *took)
{
	(void)took;
	value("most", most);
	value("order", order);
	value("early", early);
	order = early = gone = 0;
}

int main(int argc, char **argv)
{
	static const struct workload turns = { .thread = thread, .report = report };

	pthread_key_create(&leaving, leave);
	return harness_main(argc, argv, &turns);
}
"""


def test_for_contention_threads_take_turns_in_their_order(tmp_path: Path) -> None:
    threads = min(4, len(os.sched_getaffinity(0)))
    (tmp_path / "turns.c").write_text(TURNS)
    sources = [tmp_path / "turns.c", *HARNESS.glob("*.c")]
    command = [
        "gcc",
        "-pthread",
        "-I",
        str(HARNESS),
        "-o",
        str(tmp_path / "turns"),
        *map(str, sources),
        "-lm",
    ]
    subprocess.run(command, check=True)
    ended = subprocess.run(
        [tmp_path / "turns", "clock=contention", f"threads={threads}", "iterations=3"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    values = [json.loads(line)["values"] for line in ended.stdout.splitlines()]
    # The pages of a thread that left would be the next one's, and look shared where all are replayed at once.
    expected = {"most": 1, "order": int("".join(map(str, range(threads)))), "early": 0}
    assert [{name: value[name] for name in expected} for value in values] == [expected] * 3
