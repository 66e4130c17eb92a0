# SPDX-License-Identifier: GPL-2.0-or-later
"""Fuzz the lab's readers of what strangers send.

    python -m bench.fuzz mail --seconds 3600 --jobs 2
    python -m bench.fuzz mail --replay build/fuzz/mail/0123456789ab.input

Each kind of crash leaves its shortest input and its traceback in build/fuzz/<target>; the grown corpus stays there,
so that the next run continues from it. The exit status is 1 if an input failed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.fuzz.engine import has_atheris
from bench.fuzz.targets import TARGETS, check_refusal, corpus, load

BUILD = Path(__file__).resolve().parents[2] / "build" / "fuzz"
# libFuzzer names what made it give up after the reason.
GIVEN_UP = ("timeout-*", "oom-*", "crash-*", "leak-*", "slow-unit-*")


@dataclass(slots=True)
class Total:
    """The sum over all processes of a run. seconds: of each process, added."""

    seconds: float = 0.0
    executions: int = 0
    accepted: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    finds: dict[str, str] = field(default_factory=dict)

    def add(self, counts: dict[str, Any]) -> None:
        """Add what one process counted."""
        self.seconds += counts["seconds"]
        self.executions += counts["executions"]
        self.accepted += counts["accepted"]
        self.refusals.update(counts["refusals"])
        self.finds |= counts["finds"]


def main() -> int:
    """Run the fuzzer, or feed single inputs; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    parser.add_argument(
        "--engine", choices=("atheris", "hypothesis"), default="atheris" if has_atheris() else "hypothesis"
    )
    parser.add_argument(
        "--replay", type=Path, nargs="+", help="feed these files instead, and show what happens"
    )
    options = parser.parse_args()
    if options.replay:
        return max(replay(options.target, path) for path in options.replay)
    names = list(TARGETS) if options.target == "all" else [options.target]
    totals = {name: fuzz(name, options) for name in names}
    return int(any(total.finds for total in totals.values()))


def replay(name: str, path: Path) -> int:
    """Feed one file; an exception that is no refusal passes through with its traceback."""
    reader = load(name)
    try:
        reader.feed(path.read_bytes())
    except reader.refusals as exc:
        check_refusal(exc)
        print(f"{path}: refused: {type(exc).__name__}: {exc}")
    else:
        print(f"{path}: accepted")
    return 0


def fuzz(name: str, options: argparse.Namespace) -> Total:
    """Fuzz one target; print and record the result."""
    folder = BUILD / name
    for part in ("corpus", "seeds", "stats"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for seed, data in corpus(name):
        (folder / "seeds" / seed).write_bytes(data)
    total = Total()
    until = time.monotonic() + options.seconds
    number = 0
    while (left := until - time.monotonic()) > 1:
        processes = []
        for _ in range(options.jobs):
            number += 1
            processes.append((folder / "stats" / f"{os.getpid()}-{number}.json", number))
        _run(name, folder, options, left, processes)
        for stats, _ in processes:
            if stats.exists():
                total.add(json.loads(stats.read_text()))
                stats.unlink()
        for path in (path for pattern in GIVEN_UP for path in folder.glob(pattern)):
            kind = path.name.partition("-")[0]
            total.finds[f"{kind}: {path.name[:20]}"] = path.rename(folder / f"{path.name}.input").name
    _report(name, folder, options, total)
    return total


def _run(
    name: str, folder: Path, options: argparse.Namespace, left: float, processes: list[tuple[Path, int]]
) -> None:
    """Run some processes to their end; one that dies leaves the counts it wrote last, and its output."""
    running = []
    for stats, number in processes:
        command = [sys.executable, "-m", "bench.fuzz.engine", name, f"--seconds={left}", f"--folder={folder}"]
        command += [f"--stats={stats}", f"--seed={options.seed + number}", f"--engine={options.engine}"]
        log = (folder / "engine.log").open("ab")
        running.append((subprocess.Popen(command, stdout=log, stderr=log), log))
    for process, log in running:
        process.wait()
        log.close()
        if process.returncode:
            print(f"{name}: a process ended with status {process.returncode}; see {folder}/engine.log")
            time.sleep(1)


def _report(name: str, folder: Path, options: argparse.Namespace, total: Total) -> None:
    refusals = ", ".join(f"{kind} {count}" for kind, count in total.refusals.most_common())
    print(
        f"{name:12} {options.engine} {total.seconds:8.0f} s {total.executions:10} executions "
        f"{total.accepted:9} accepted {len(total.finds):3} finds; refused: {refusals or 'none'}"
    )
    for kind, file in sorted(total.finds.items()):
        print(f"  {kind}: {folder / file}")
    row = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "engine": options.engine,
        "seconds": round(total.seconds),
        "executions": total.executions,
        "accepted": total.accepted,
        "refusals": dict(total.refusals),
        "finds": sorted(total.finds),
    }
    with (folder / "runs.jsonl").open("a") as runs:
        runs.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    sys.exit(main())
