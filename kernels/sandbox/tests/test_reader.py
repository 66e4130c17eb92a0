# SPDX-License-Identifier: GPL-2.0-or-later
"""A reader apart reads what it was handed, and can do nothing else."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kernels.errors import ReaderUnavailable, ReadingStopped
from kernels.sandbox import reader as apart
from kernels.sandbox.reader import ReaderAnswer, ReaderLimits, opened, read_apart

pytestmark = pytest.mark.hostile

READER = "kernels.tests.attackers:prepare"
SMALL = ReaderLimits(seconds=1, memory=256 << 20, answer=1 << 20)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sent"
    path.write_text("hello")
    return path


def attack(file: Path, what: str, limits: ReaderLimits = SMALL) -> ReaderAnswer:
    with opened(file) as files:
        request = {"attack": what, "files": [file.name]}
        return read_apart(READER, request, files, what="the guest's records", limits=limits)


def test_a_reader_reads_the_file_it_was_handed(file: Path) -> None:
    assert attack(file, "nothing").value == {"size": 5, "text": "hello"}


@pytest.mark.parametrize(
    "what",
    [
        "open a file",
        "write a file",
        "list a folder",
        "remove a file",
        "start a program",
        "fork",
        "connect",
        "kill its parent",
        "become root",
        "trace its parent",
        "lift its limits",
        "change its priority",
        "make a namespace",
        "sleep",
    ],
)
def test_a_reader_can_reach_nothing(file: Path, what: str) -> None:
    with pytest.raises(ReadingStopped, match=r"failed unexpectedly \((Permission|OS|Value)Error\)") as caught:
        attack(file, what)
    assert (caught.value.blame, caught.value.retry) == ("kernel", False)
    assert not Path("/tmp/kperflab-attack").exists()


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("spin", "took [01] of 1 s of CPU time and was stopped"),
        ("fill memory", "takes more than 256 MiB of memory"),
        ("answer without end", "gave more than 1 MiB"),
        ("exit", "ended with status 3"),
        ("crash", "was ended by signal 11"),
        ("recurse", r"failed unexpectedly \(RecursionError\)"),
    ],
)
def test_a_reader_that_goes_wrong_is_the_senders_fault(file: Path, what: str, says: str) -> None:
    with pytest.raises(ReadingStopped, match=says) as caught:
        attack(file, what)
    assert (caught.value.blame, caught.value.retry) == ("kernel", False)
    assert str(caught.value).isprintable()


def test_an_answer_that_is_no_json_is_the_senders_fault(file: Path) -> None:
    with pytest.raises(ReadingStopped, match=r"failed unexpectedly|malformed|ended with"):
        attack(file, "answer what is not JSON")


def test_an_answer_of_some_depth_is_taken_and_others_after_it(file: Path) -> None:
    attack(file, "answer something deep")
    assert attack(file, "nothing").value["text"] == "hello"


@pytest.mark.process
def test_a_reader_is_nobody_and_its_environment_names_no_secret(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KPERFLAB_DATABASE_URL", "postgres://lab:secret@db/lab")
    apart._readers.stop()
    user, effective, group, names = attack(file, "who it is").value
    assert names == ["LC_ALL", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH", "PYTHONPATH"]
    assert user == effective
    if os.geteuid() == 0:
        assert user != 0
        assert group != 0


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "device", "nothing"])
def test_what_is_no_regular_file_is_not_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "records.bin"
    match kind:
        case "folder":
            path.mkdir()
        case "link":
            path.symlink_to("/etc/passwd")
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/zero")
        case _:
            pass
    with (
        pytest.raises(
            ReaderUnavailable, match=r"is not a regular file, and is not read|cannot be read"
        ) as caught,
        opened(path),
    ):
        pass
    assert caught.value.blame == "lab"


def test_a_reader_that_cannot_be_prepared_is_the_labs_fault(file: Path) -> None:
    with (
        opened(file) as files,
        pytest.raises(ReaderUnavailable, match="could not give up its privileges") as caught,
    ):
        read_apart("kernels.tests.attackers:refuse", {"files": [file.name]}, files, what="a file")
    assert (caught.value.blame, caught.value.retry) == ("lab", True)


@pytest.mark.process
def test_a_server_that_was_killed_is_started_again(file: Path) -> None:
    attack(file, "nothing")
    server = apart._readers._server
    assert server is not None
    server.kill()
    server.wait()
    assert attack(file, "nothing").value["text"] == "hello"


def test_threads_read_side_by_side(file: Path) -> None:
    answers: list[object] = []
    threads = [
        threading.Thread(target=lambda: answers.append(attack(file, "nothing").value["size"]))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [5] * 8
