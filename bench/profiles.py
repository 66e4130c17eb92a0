# SPDX-License-Identifier: GPL-2.0-or-later
"""perf.data to what is stored: ours beside `perf script` with inferno, and with a collapse in Perl.

All read the same file of 150,000 samples or more, in turns. CPU time is user and system time of all processes of a way,
start of the interpreter included; ours writes the packed tree, the others folded stacks.

    python -m bench.profiles [--perf-data FILE --system-map FILE] [--rounds N] [--home DIR]
"""

import shlex
import statistics
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from bench.command import run, spent
from bench.profile_recording import LEAST_SAMPLES, Recording, record
from lab.profiles.analysis.frame_tree import pack, unpack
from workers.collect.perfdata import ExpectedKernel, read_perf_data

HOME = Path(tempfile.gettempdir()) / "kperflab-bench-profiles"
INFERNO = "0.12.8"
DEADLINE_S = 900.0
# What stackcollapse-perf.pl does at the least: a regular expression a line, a hash of joined stacks.
PERL = r"""
use strict; use warnings;
my (%count, $command, @stack); $command = "";
while (<STDIN>) {
    chomp;
    if (/^$/) { $count{join(";", $command, @stack)}++ if $command ne "" && @stack; $command = ""; @stack = (); next; }
    if (/^\s+([0-9a-f]+)\s+(.+) \((\S*)\)$/) { my $name = $2; $name =~ s/\+0x[0-9a-f]+$//; unshift @stack, $name; next; }
    if (/^(\S.*?)\s+(-?\d+)\s+(\[\d+\]\s+)?\d+\.\d+:/) { $command = $1; $command =~ tr/ /_/; }
}
print "$_ $count{$_}\n" for sort keys %count;
"""


def ours(recording: Recording, out: Path) -> None:
    """One file to its packed tree."""
    out.write_bytes(pack(read_perf_data(recording.perf_data, ExpectedKernel(recording.system_map)).tree))


def main(
    perf_data: Path | None = None,
    system_map: Path | None = None,
    rounds: int = 7,
    home: Path = HOME,
    only_ours: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Race them and print the table."""
    recording = Recording(perf_data, system_map) if perf_data and system_map else _recording(home)
    if only_ours:
        ours(recording, only_ours)
        return
    home.mkdir(parents=True, exist_ok=True)
    ways = _ways(recording, home)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, command in ways.items():
            seconds[name].append(_cpu(command))
    tree = unpack((home / "ours").read_bytes())
    print(
        f"{recording.perf_data}: {recording.perf_data.stat().st_size / 1e6:.1f} MB, {tree.samples} samples,",
        end=" ",
    )
    print(f"{len(tree)} nodes, {len(tree.names)} names, deepest {tree.depth.max()}")
    if tree.samples < LEAST_SAMPLES:
        print(f"fewer samples than the {LEAST_SAMPLES} that the claim is for")
    _print_table(home, seconds, rounds)


def _recording(home: Path) -> Recording:
    """Return a recording of this machine with enough samples."""
    for times in (1, 2, 4):
        made = record(home, times=times)
        if read_perf_data(made.perf_data, ExpectedKernel(made.system_map)).samples >= LEAST_SAMPLES:
            break
    return made


def _ways(recording: Recording, home: Path) -> Mapping[str, str]:
    """Shell commands; each writes what it makes into a file of its name."""
    files = [str(recording.perf_data), str(recording.system_map)]
    perf, symbols = map(shlex.quote, files)
    (home / "collapse.pl").write_text(PERL)
    script = f"perf script --no-inline --force -i {perf} --kallsyms {symbols} 2>/dev/null"
    mine = [sys.executable, "-m", "bench.profiles", "--perf-data", files[0], "--system-map", files[1]]
    # One thread takes the least CPU time: more of them wait for each other.
    return {
        "ours": shlex.join([*mine, "--only-ours", str(home / "ours")]),
        "inferno": f"{script} | {_inferno(home)} -n 1 > {home / 'inferno'}",
        "Perl": f"{script} | perl {home / 'collapse.pl'} > {home / 'Perl'}",
        "(perf script alone)": f"{script} > /dev/null",
    }


def _inferno(home: Path) -> Path:
    """The peer, built once."""
    root = home / f"inferno-{INFERNO}"
    binary = root / "bin" / "inferno-collapse-perf"
    if not binary.exists():
        print(f"building inferno {INFERNO}", file=sys.stderr)
        install = ["cargo", "install", "inferno", "--locked", "--quiet", "--version", INFERNO]
        subprocess.run([*install, "--root", str(root)], check=True, timeout=DEADLINE_S)
    return binary


def _cpu(command: str) -> float:
    """CPU seconds of a shell command and all it starts."""
    before = spent()
    subprocess.run(["sh", "-c", command], check=True, timeout=DEADLINE_S)
    return spent() - before


def _print_table(home: Path, seconds: Mapping[str, list[float]], rounds: int) -> None:
    print(f"{rounds} rounds in turns; CPU seconds: median, least, most; ratio of medians; bytes stored")
    base = statistics.median(seconds["ours"])
    for name, taken in seconds.items():
        middle = statistics.median(taken)
        row = f"{name:20}{middle:8.2f}{min(taken):8.2f}{max(taken):8.2f}{middle / base:8.2f}"
        made = home / name
        print(row + (f"{_stored(made):>32}" if made.exists() else ""))


def _stored(made: Path) -> str:
    content = made.read_bytes()
    if made.name == "ours":
        return f"{len(content)}"
    return f"{len(content)}, by zlib {len(zlib.compress(content, 9))}"


if __name__ == "__main__":
    run(main)
