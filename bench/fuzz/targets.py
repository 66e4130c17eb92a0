# SPDX-License-Identifier: GPL-2.0-or-later
"""The readers that are fuzzed: one row each.

A target is a module with

- `feed(data: bytes) -> None`, which reads the data as the lab would, and checks whatever must hold of the result;
- `REFUSALS`, the tuple of exception classes that `feed` may raise; each must say what is wrong in one printable line;
- optionally `mutate(data: bytes, rng: random.Random) -> bytes`, which makes a variant that keeps the format's shape.

Its corpus is the folder corpus/<target>: text as it is, binary files as hexadecimal digits in files named *.hex.
"""

import importlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

CORPUS = Path(__file__).resolve().parent / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """A row. module: its feed; instrument: packages whose branches guide the fuzzer; longest: input in bytes."""

    module: str
    instrument: tuple[str, ...]
    longest: int = 64 << 10


TARGETS: dict[str, Target] = {
    "mail": Target("bench.fuzz.mail", ("kernels", "email")),
    "patch": Target("bench.fuzz.patch", ("kernels",)),
    "repair": Target("bench.fuzz.repair", ("kernels",), 16 << 10),
    "fragment": Target("bench.fuzz.fragment", ("kernels",)),
    "description": Target("bench.fuzz.description", ("lab", "tomllib"), 16 << 10),
    "records": Target("bench.fuzz.records", ("workloads",), 32 << 10),
    "cyclictest": Target("bench.fuzz.cyclictest", ("workloads",), 16 << 10),
    "perfdata": Target("bench.fuzz.perfdata", ("workers",), 16 << 10),
    "elf": Target("bench.fuzz.elf", ("kernels",), 32 << 10),
    "symbols": Target("bench.fuzz.symbols", ("workers",), 16 << 10),
    "counters": Target("bench.fuzz.counters", ("workers",), 16 << 10),
    "archive": Target("bench.fuzz.archive", ("kernels", "tarfile"), 32 << 10),
    "paths": Target("bench.fuzz.paths", ("kernels",), 4 << 10),
    "tracing": Target("bench.fuzz.tracing", ("workers",), 16 << 10),
    "console": Target("bench.fuzz.console", ("workers",), 8 << 10),
}


@dataclass(frozen=True, slots=True)
class Reader:
    """A target's module, loaded."""

    feed: Callable[[bytes], None]
    refusals: tuple[type[Exception], ...]
    mutate: Callable[[bytes, random.Random], bytes] | None


def load(name: str) -> Reader:
    """Import a target's module."""
    module: Any = importlib.import_module(TARGETS[name].module)
    return Reader(
        module.feed, cast("tuple[type[Exception], ...]", module.REFUSALS), getattr(module, "mutate", None)
    )


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
