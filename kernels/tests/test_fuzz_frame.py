# SPDX-License-Identifier: GPL-2.0-or-later
"""The fuzzers' frame, and every target's committed inputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.fuzz import targets
from bench.fuzz.finds import Session
from bench.fuzz.targets import TARGETS, Reader, check_refusal, corpus, load
from kernels.errors import PatchRejected

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.hostile


@pytest.mark.parametrize(
    ("target", "name"), [(target, name) for target in TARGETS for name, _ in corpus(target)]
)
def test_every_committed_input_is_accepted_or_refused(target: str, name: str) -> None:
    reader = load(target)
    try:
        reader.feed(dict(corpus(target))[name])
    except reader.refusals as exc:
        check_refusal(exc)


def test_every_corpus_belongs_to_a_target_and_is_small() -> None:
    folders = {path.name for path in targets.CORPUS.iterdir() if path.is_dir()}
    assert folders == set(TARGETS)
    sizes = {name: sum(len(data) for _, data in corpus(name)) for name in TARGETS}
    assert all(0 < size <= 64 << 10 for size in sizes.values()), sizes


def _feed(data: bytes) -> None:
    if data.startswith(b"refuse"):
        raise PatchRejected("no")
    if data.startswith(b"unclear"):
        raise PatchRejected("")
    if data.startswith(b"crash"):
        raise ZeroDivisionError


def test_one_input_is_kept_for_each_kind_of_crash_and_it_is_the_shortest(tmp_path: Path) -> None:
    session = Session(Reader(_feed, (PatchRejected,), None), tmp_path, tmp_path / "stats", seconds=60)
    for data in (b"fine", b"refuse", b"crash, long", b"crash", b"crash again", b"unclear"):
        assert session.execute(data)
    session.write()
    counts = json.loads((tmp_path / "stats").read_text())
    assert (counts["executions"], counts["accepted"], counts["refusals"]) == (6, 1, {"PatchRejected": 2})
    kept = sorted(path.read_bytes() for path in tmp_path.glob("*.input"))
    assert kept == [b"crash", b"unclear"]
    assert sorted(counts["finds"]) == [
        "AssertionError in test_fuzz_frame.py:_feed",
        "ZeroDivisionError in test_fuzz_frame.py:_feed",
    ]
    assert (
        "ZeroDivisionError"
        in (tmp_path / counts["finds"]["ZeroDivisionError in test_fuzz_frame.py:_feed"])
        .with_suffix(".txt")
        .read_text()
    )


@pytest.mark.process
@pytest.mark.parametrize("engine", ["atheris", "hypothesis"])
def test_a_target_is_fuzzed_from_the_command_line(engine: str) -> None:
    pytest.importorskip(engine)
    done = subprocess.run(
        [sys.executable, "-m", "bench.fuzz", "fragment", "--seconds", "2", "--engine", engine, "--seed", "7"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"fragment     {engine}" in done.stdout
    assert "0 finds; refused: ConfigRejected" in done.stdout
