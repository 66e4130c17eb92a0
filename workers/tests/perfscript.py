# SPDX-License-Identifier: GPL-2.0-or-later
"""The oracle of workers/collect/perfdata.py: `perf script` in a sandbox, and its text folded.

perf's parser is C, and perf.data comes from a guest: no network, nothing writable, nothing readable but two files.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from workers.errors import ProfileUnreadable

DEADLINE_S = 120.0
MAX_DEPTH = 127
Stack = tuple[str, ...]

# What perf prints for each sample: a line with the command's name, then a frame a line, leaf first.
_FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \(([^()]*(?:\[[^]]*\])?[^()]*)\)$")
_LOST = re.compile(r"PERF_RECORD_LOST(?:_SAMPLES)?\b.*?lost (\d+)")


@dataclass(frozen=True, slots=True)
class Folded:
    """Stacks of one profile: command's name first, then outermost to innermost frame.

    stacks: samples by stack. lost: samples the kernel dropped because the buffer was full.
    """

    stacks: Mapping[Stack, int]
    lost: int

    @property
    def samples(self) -> int:
        """Samples kept."""
        return sum(self.stacks.values())


def fold_perf_data(perf_data: Path, system_map: Path, *, perf: str = "/usr/bin/perf") -> Folded:
    """Read one perf.data with the symbols of `system_map` (the guest must run without KASLR).

    Raises ProfileUnreadable when perf cannot read it, or it holds no sample.
    """
    inside = ["perf.data", "System.map"]
    argv = [
        *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--ro-bind", "/usr", "/usr", "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"),
        *(part for name in ("bin", "lib", "lib64") for part in ("--symlink", f"usr/{name}", f"/{name}")),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"),
        *("--ro-bind", str(perf_data), f"/tmp/{inside[0]}"),
        *("--ro-bind", str(system_map), f"/tmp/{inside[1]}"),
        *("--setenv", "HOME", "/tmp", "--setenv", "PERF_BUILDID_DIR", "/tmp/none"),
        *("--", perf, "script", "--force", "-i", inside[0], "--kallsyms", inside[1], "--no-inline"),
        *("--show-lost-events", "-F", "comm,tid,ip,sym,dso"),
    ]
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired as exc:
        raise ProfileUnreadable(
            f"perf script took more than {DEADLINE_S:.0f} s over {perf_data.name}"
        ) from exc
    said = done.stderr.decode(errors="replace").strip()
    folded = fold_script(done.stdout.decode(errors="replace").splitlines())
    if done.returncode != 0:
        raise ProfileUnreadable(f"perf script failed ({done.returncode}) over {perf_data.name}", said)
    if not folded.stacks:
        raise ProfileUnreadable(f"{perf_data.name} holds no sample", said)
    return folded


def fold_script(lines: Iterable[str]) -> Folded:
    """Fold the text of `perf script -F comm,tid,ip,sym,dso`; linear in its length."""
    stacks: Counter[Stack] = Counter()
    lost = 0
    command = ""
    frames: list[str] = []
    for line in lines:
        if not line.strip():
            _close(stacks, command, frames)
            command, frames = "", []
        elif line[0].isspace() and command:
            frames.append(_frame(line))
        elif match := _LOST.search(line):
            lost += int(match[1])
        else:
            _close(stacks, command, frames)
            # "comm  tid": a command's name may itself hold blanks.
            command, frames = line.strip().rsplit(None, 1)[0].strip(), []
    _close(stacks, command, frames)
    return Folded(dict(stacks), lost)


def _close(stacks: Counter[Stack], command: str, frames: list[str]) -> None:
    if command and frames:
        stacks[(command, *_merged(reversed(frames[:MAX_DEPTH])))] += 1


def _frame(line: str) -> str:
    """Name one frame: its symbol, or in brackets the file it lies in."""
    match = _FRAME.match(line)
    if match is None:
        return "[unknown]"
    symbol, file = match[2].strip(), match[3]
    if symbol and symbol != "[unknown]":
        return symbol.rsplit("+0x", 1)[0]
    return f"[{Path(file.strip('[]')).name or 'unknown'}]"


def _merged(frames: Iterable[str]) -> list[str]:
    """Drop repeats of an unnamed frame: a user program's stack without symbols is one frame."""
    kept: list[str] = []
    for name in frames:
        if not (kept and kept[-1] == name and name.startswith("[")):
            kept.append(name)
    return kept
