# SPDX-License-Identifier: GPL-2.0-or-later
"""Whole kernels after changes of headers: each built by gcc and by the compiler front, over layers of one base.

A change is drawn by its number and the seed alone: a kind of change, and a header that at least one file of the kernel and
at most --users files include. What boots, the modules and System.map must be equal to the bit, the release and build ids
aside; a kernel that does not compile must fail both ways. Each outcome is kept below --home as soon as it is known, and a
later run with the same options builds the rest. The exit status is 1 if anything differs.

    python -m bench.front_kernels [--first N] [--changes N] [--minutes N] [--users N] [--tree NAME] [--home DIR] [--seed N]
"""

import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bench.build_edits import Edit, commit
from bench.built import HOME, Cost, base_request, build, build_base, say
from bench.command import run
from bench.front_changes import KINDS, change
from kernels.builds.builder import Builder, BuildRequest
from kernels.builds.front_program import compile_front
from kernels.builds.layers import Layers
from kernels.errors import CompileFailed
from kernels.trees.tree import DEFAULT_ARCHIVES, read_file

_HEADER = re.compile(r"/build/linux/((?:include/(?!generated|config)|arch/x86/include/asm)\S+\.h)")
# Linking keeps one processor busy.
AT_A_TIME = 2
SAME, DIFFERS, FAILS, FAILS_ONCE = "identical", "DIFFERS", "does not compile", "FAILS ONE WAY ONLY"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One change built both ways.

    users: files of the base that include the header. compiled: files that no store of the front's knew. changed: objects
    that differ in more than line tables. gcc, front: CPU seconds.
    """

    number: int
    kind: str
    header: str
    users: int
    result: str
    compiled: int = 0
    changed: int = 0
    gcc: float = 0.0
    front: float = 0.0


class Trial:
    """A base that is built both ways, and the file of the outcomes so far."""

    def __init__(self, home: Path, request: BuildRequest, users: int, seed: int) -> None:
        self.home, self.request, self.seed = home, request, seed
        layers = [build_base(home, request, front=front) for front in (False, True)]
        compile_front(Layers(home).objects / "front")
        self.headers = {name: count for name, count in headers(layers[0]).items() if count <= users}
        # Another base, front, seed or choice of headers is another trial.
        key = Builder(home, front=True).key(request)
        self.outcomes_file = home / f"front-kernels-{key[:12]}-{seed}-{users}.jsonl"

    def outcomes(self) -> list[Outcome]:
        """Return what is known, in the order of the changes' numbers."""
        lines = self.outcomes_file.read_text().splitlines() if self.outcomes_file.exists() else []
        return sorted((Outcome(**json.loads(line)) for line in lines), key=lambda outcome: outcome.number)

    def run(self, number: int, until: float) -> None:
        """Build a change both ways and keep the outcome, unless it is too late to begin (time.monotonic())."""
        if time.monotonic() >= until:
            return
        kind, header, text = self._draw(number)
        say(f"{number}: {kind} in {header}, which {self.headers[header]} files include")
        edit = Edit(f"change-{number}", {header: text.encode(errors="surrogateescape")})
        patched = replace(self.request, revision=commit(self.request.tree, self.request.base, edit))
        gcc, front = (_build(self.home, patched, front=front) for front in (False, True))
        outcome = Outcome(number, kind, header, self.headers[header], _result(gcc, front))
        if gcc and front:
            outcome = replace(
                outcome,
                compiled=front.events["miss"],
                changed=len(gcc.changed),
                gcc=round(gcc.cpu, 1),
                front=round(front.cpu, 1),
            )
        with self.outcomes_file.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")
        say(f"    {outcome.result}: gcc {outcome.gcc} CPU s, front {outcome.front}")

    def _draw(self, number: int) -> tuple[str, str, str]:
        """Return a change's kind, the header and its new text."""
        chance = random.Random(f"{self.seed} {number}")
        # In turn, so that a few changes are of all kinds; the first header that has a place for it.
        kind = random.Random(self.seed).sample(KINDS, len(KINDS))[number % len(KINDS)]
        for header in chance.sample(sorted(self.headers), len(self.headers)):
            text = read_file(self.request.tree, self.request.base.tree_id, header)
            new = change(text.decode(errors="surrogateescape"), kind, number, chance)
            if new is not None:
                return kind, header, new
        raise SystemExit(f"bench.front_kernels: no header has a place for a change of the kind {kind!r}")


def headers(objects: Path) -> Mapping[str, int]:
    """Return the headers that a build's files include, by path, with the number of these files."""
    counts: Counter[str] = Counter()
    for path in objects.rglob(".*.o.cmd"):
        # A header that another directory's tracing includes has a path over "..".
        found = _HEADER.findall(path.read_text(errors="replace").replace("//", "/"))
        counts.update(header for header in set(found) if ".." not in header)
    return counts


def _build(home: Path, request: BuildRequest, *, front: bool) -> Cost | None:
    """Return what a build came to; None for a kernel that does not compile."""
    try:
        return build(home, request, front=front)
    except CompileFailed as failure:
        say(f"    {'front' if front else 'gcc'}: {failure}")
        return None


def _result(gcc: Cost | None, front: Cost | None) -> str:
    if gcc is None or front is None:
        return FAILS if gcc is front else FAILS_ONCE
    return SAME if gcc.boots == front.boots else DIFFERS


def report(outcomes: list[Outcome]) -> Iterator[str]:
    """Yield the lines of a table by kind of change."""
    columns = (
        "changes",
        "headers",
        SAME,
        FAILS,
        "files that include them",
        "compiled",
        "objects changed",
        "CPU s by gcc",
    )
    yield f"| change | {' | '.join(columns)} | by the front |"
    yield "|---|" + "---|" * (len(columns) + 1)
    for kind in (*sorted({outcome.kind for outcome in outcomes}), "all"):
        rows = [outcome for outcome in outcomes if kind in (outcome.kind, "all")]
        built = [row for row in rows if row.result == SAME]
        figures = [
            len(rows),
            len({row.header for row in rows}),
            len(built),
            sum(row.result == FAILS for row in rows),
            *(sum(getattr(row, name) for row in built) for name in ("users", "compiled", "changed")),
            *(round(sum(getattr(row, name) for row in built)) for name in ("gcc", "front")),
        ]
        yield f"| {kind} | {' | '.join(map(str, figures))} |"
    built = [row for row in outcomes if row.result == SAME]
    if built and sum(row.compiled for row in built) >= sum(row.users for row in built):
        yield "Nothing was answered: every file that includes a header was compiled, so equal kernels say nothing of the front."
    for row in outcomes:
        if row.result in (DIFFERS, FAILS_ONCE):
            yield f"{row.result}: change {row.number}, {row.kind} in {row.header}"


def main(
    changes: Annotated[int, typer.Option(help="of headers, those of earlier runs among them")] = 200,
    first: Annotated[
        int, typer.Option(help="begin with this change: others were tried on another machine")
    ] = 0,
    minutes: Annotated[float, typer.Option(help="begin no change after so long")] = 60,
    users: Annotated[int, typer.Option(help="take only headers that at most so many files include")] = 10_000,
    archive: Annotated[str, typer.Option("--tree", help=" or ".join(DEFAULT_ARCHIVES))] = "debian-6.1",
    home: Path = HOME,
    seed: int = 1,
) -> int:
    """Run the trial, and print all that is known of its changes as a table."""
    until = time.monotonic() + 60 * minutes
    request = base_request(home, archive)
    trial = Trial(home, request, users, seed)
    done = {outcome.number for outcome in trial.outcomes()}
    left = [number for number in range(first, changes) if number not in done]
    with ProcessPoolExecutor(AT_A_TIME) as processes:
        list(processes.map(partial(trial.run, until=until), left))
    outcomes = trial.outcomes()
    print("\n".join(report(outcomes)))
    return 0 if outcomes and all(outcome.result in (SAME, FAILS) for outcome in outcomes) else 1


if __name__ == "__main__":
    run(main)
