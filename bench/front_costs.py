# SPDX-License-Identifier: GPL-2.0-or-later
"""Count the CPU time of the compiler front beside the compiler's, on a kernel's own files, each in turns.

First each file is compiled by the compiler and by the front, whose store begins empty. Then include/linux/fs.h gets a
declaration more, and each file is compiled again both ways. Several fronts can be named: the first may be that of
another revision. The kernel's tree and its build are only read.

    python -m bench.front_costs --build DIR --source DIR [--files N] [--seed N] [--front PROGRAM]...
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from bench.front import Source, Trial
from kernels.builds.front_program import place_front

_HEADER = "include/linux/fs.h"
_PLACE = re.compile(r"^static inline struct inode \*file_inode\(", re.MULTILINE)
_ADDED = "extern int kperflab_costs(int a, void *b);\n"


@dataclass(frozen=True, slots=True)
class Front:
    """A front, with a folder for what it wrote to an empty store and one for what it wrote after the change."""

    program: Path
    place: Path

    def compiler(self, trial: Trial, *, changed: bool) -> Path:
        """Return the compiler's stand-in, reading what is there and writing as a build would."""
        base, variant = self.place / "base", self.place / "variant"
        for folder in (base, variant):
            folder.mkdir(parents=True, exist_ok=True)
        read, write = ([str(base)], str(variant)) if changed else ([], str(base))
        return place_front(self.program, self.place / "bin", "gcc", trial.identity, read, write)


@dataclass(slots=True)
class Costs:
    """CPU seconds by compiler, of the same files in the same order."""

    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def tell(self, what: str) -> None:
        """Print the sums, and the shares of the compiler's."""
        clean = self.seconds["gcc"]
        print(f"{what}: {len(clean)} files; gcc {sum(clean):.1f} CPU s")
        for name, list_ in self.seconds.items():
            if name != "gcc":
                shares = [ours / theirs for ours, theirs in zip(list_, clean, strict=True)]
                print(
                    f"    {name}: {sum(list_):.1f} CPU s, {sum(list_) / sum(clean):.3f} of gcc's;"
                    f" a file's share is {statistics.median(shares):.3f} (median), {max(shares):.2f} at most"
                )


def measure(trial: Trial, files: list[Source], fronts: dict[str, Front], *, changed: bool) -> bool:
    """Compile each file by each compiler; print the costs and return whether the code was the same."""
    costs, same = Costs(), True
    compilers = {name: front.compiler(trial, changed=changed) for name, front in fronts.items()}
    for file in files:
        clean = trial.compile("gcc", file)
        costs.seconds["gcc"].append(clean.cpu)
        code = trial.code(clean)
        for name, compiler in compilers.items():
            ours = trial.compile(compiler, file)
            costs.seconds[name].append(ours.cpu)
            if (trial.code(ours), ours.said) != (code, clean.said):
                same = False
                print(f"DIFFERS: {name}: {file.path}", flush=True)
    costs.tell("after a declaration more in fs.h" if changed else "from nothing")
    for name, front in fronts.items():
        counts = front.place / ("variant" if changed else "base") / "counts"
        events = Counter(line.split(" ")[0] for line in counts.read_text().splitlines())
        print(f"    {name}: " + ", ".join(f"{count} {event}" for event, count in sorted(events.items())))
    return same


def main() -> int:
    """Measure both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, required=True, help="a kernel's build directory")
    parser.add_argument("--source", type=Path, required=True, help="the tree it was built from")
    parser.add_argument("--files", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--front", type=Path, action="append", default=[], help="another front's program")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kperflab-front-") as place:
        trial = Trial(asked.build.resolve(), asked.source.resolve(), Path(place), asked.seed)
        files = [file for file in trial.sources(1 << 20) if _HEADER in file.headers][: asked.files]
        programs = {str(path): path for path in asked.front} | {"front": trial.program}
        fronts = {
            name: Front(path, Path(place, f"front{number}"))
            for number, (name, path) in enumerate(programs.items())
        }
        same = measure(trial, files, fronts, changed=False)
        sys.stdout.flush()
        header = Path(place, "tree", _HEADER)
        header.write_text(_PLACE.sub(lambda match: _ADDED + match[0], header.read_text(), count=1))
        return 0 if measure(trial, files, fronts, changed=True) and same else 1


if __name__ == "__main__":
    sys.exit(main())
