# SPDX-License-Identifier: GPL-2.0-or-later
"""One fuzzing process: atheris where it is installed (coverage guides it), else edits that hypothesis chooses."""

import argparse
import importlib.util
import os
import random
import sys
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bench.fuzz.finds import Session
from bench.fuzz.targets import TARGETS, Reader, corpus, load

# libFuzzer ends a process whose input takes longer, and keeps the input.
SLOW_S = 30
MEMORY_MIB = 2048
EDITS = 8


def main() -> None:
    """Fuzz one target until its time is up. Never returns under atheris."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument(
        "--folder", type=Path, required=True, help="where finds and the grown corpus are kept"
    )
    parser.add_argument("--stats", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=("atheris", "hypothesis"), required=True)
    options = parser.parse_args()
    if options.engine == "atheris":
        _by_atheris(options)
    else:
        session = Session(load(options.target), options.folder, options.stats, options.seconds)
        _by_hypothesis(session, [data for _, data in corpus(options.target)], options.seed)
        session.write()


def has_atheris() -> bool:
    """Return whether the coverage-guided engine is installed for this Python."""
    return importlib.util.find_spec("atheris") is not None


def _by_atheris(options: argparse.Namespace) -> None:
    import atheris

    target = TARGETS[options.target]
    # Only what is imported from here on is instrumented.
    for name in [name for name in sys.modules if name.split(".")[0] in target.instrument]:
        del sys.modules[name]
    with atheris.instrument_imports(include=list(target.instrument), enable_loader_override=False):
        reader = load(options.target)
    session = Session(reader, options.folder, options.stats, options.seconds)

    def execute(data: bytes) -> None:
        if not session.execute(data):
            session.write()
            os._exit(0)

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if reader.mutate is None or rng.random() < 0.5:
            return bytes(atheris.Mutate(data, longest))
        return reader.mutate(data, rng)[:longest]

    grown = options.folder / "corpus"
    arguments = [
        f"-seed={options.seed}",
        f"-max_len={target.longest}",
        f"-timeout={SLOW_S}",
        f"-report_slow_units={SLOW_S}",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-artifact_prefix={options.folder}/",
        "-print_final_stats=0",
        "-verbosity=0",
        str(grown),
        str(options.folder / "seeds"),
    ]
    more = {"custom_mutator": mutate} if reader.mutate else {}
    atheris.Setup([sys.argv[0], *arguments], execute, **more)
    atheris.Fuzz()


def _by_hypothesis(session: Session, seeds: list[bytes], seed: int) -> None:
    edit = st.tuples(st.integers(0, 1 << 16), st.integers(0, 40), st.binary(max_size=24))
    edits = st.lists(edit, min_size=1, max_size=EDITS)
    inputs = st.one_of(
        st.tuples(st.sampled_from(seeds or [b""]), edits), st.tuples(st.binary(max_size=400), edits)
    )
    going = True

    @settings(
        max_examples=500,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs, st.integers())
    def feed(chosen: tuple[bytes, list[tuple[int, int, bytes]]], number: int) -> None:
        nonlocal going
        if going:
            going = session.execute(_edited(session.reader, *chosen, random.Random(number)))

    while going:
        feed()


def _edited(reader: Reader, data: bytes, edits: list[tuple[int, int, bytes]], rng: random.Random) -> bytes:
    if reader.mutate is not None and rng.random() < 0.5:
        return reader.mutate(data, rng)
    for at, removed, added in edits:
        place = at % (len(data) + 1)
        data = data[:place] + added + data[place + removed :]
    return data


if __name__ == "__main__":
    main()
