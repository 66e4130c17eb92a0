# SPDX-License-Identifier: GPL-2.0-or-later
"""The readers that are fuzzed: one row each, whose module has a Reader of that name in READERS.

A target's corpus is the folder corpus/<target>: text as it is, binary files as hexadecimal digits in files named *.hex.
"""

import importlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader under test.

    feed: reads the data as the lab would, and checks whatever must hold of the result. refusals: the exceptions that it may
    raise; each must say what is wrong in one printable line. mutate: makes a variant that keeps the format's shape.
    """

    feed: Callable[[bytes], None]
    refusals: tuple[type[Exception], ...]
    mutate: Callable[[bytes, random.Random], bytes] | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A row. module: of its reader; instrument: packages whose branches guide the fuzzer; longest: input in bytes."""

    module: str
    instrument: tuple[str, ...]
    longest: int = 64 << 10


TARGETS: dict[str, Target] = {
    "mail": Target("bench.fuzz.sources", ("kernels", "email")),
    "patch": Target("bench.fuzz.sources", ("kernels",)),
    "repair": Target("bench.fuzz.sources", ("kernels",), 16 << 10),
    "fragment": Target("bench.fuzz.sources", ("kernels",)),
    "description": Target("bench.fuzz.sources", ("lab", "tomllib"), 16 << 10),
    "archive": Target("bench.fuzz.sources", ("kernels", "tarfile"), 32 << 10),
    "paths": Target("bench.fuzz.sources", ("kernels",), 4 << 10),
    "records": Target("bench.fuzz.guests", ("workloads",), 32 << 10),
    "cyclictest": Target("bench.fuzz.guests", ("workloads",), 16 << 10),
    "perfdata": Target("bench.fuzz.guests", ("workers",), 16 << 10),
    "elf": Target("bench.fuzz.guests", ("kernels",), 32 << 10),
    "symbols": Target("bench.fuzz.guests", ("workers",), 16 << 10),
    "counters": Target("bench.fuzz.guests", ("workers",), 16 << 10),
    "tracing": Target("bench.fuzz.guests", ("workers",), 16 << 10),
    "console": Target("bench.fuzz.guests", ("workers",), 8 << 10),
}


def load(name: str) -> Reader:
    """Import a target's module and return its reader."""
    reader: Reader = importlib.import_module(TARGETS[name].module).READERS[name]
    return reader


def corpus(name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the committed inputs of a target, by name."""
    for path in sorted((CORPUS / name).glob("*")):
        data = path.read_bytes()
        yield path.name, bytes.fromhex(data.decode("ascii")) if path.suffix == ".hex" else data


def check_refusal(exc: Exception) -> None:
    """Check that a refusal can be shown anywhere. Raises AssertionError if it is not one short printable line."""
    text = str(exc)
    assert text, "a refusal without a text"
    assert text.isprintable(), "a refusal's text holds what is not printable"
    assert len(text) <= 4_000, f"a refusal's text has {len(text)} characters"
