# SPDX-License-Identifier: GPL-2.0-or-later
"""A build looks for the lab's secrets everywhere a process can look."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernels.sandbox.command import SandboxPlace
from kernels.tests.inside import attempt, new_place

pytestmark = [pytest.mark.hostile, pytest.mark.process]

SECRET = "TOPSECRET-of-the-lab"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SandboxPlace:
    """A place for a build, while the lab holds secrets in its environment and in an open file."""
    for name in ("KPERFLAB_DATABASE", "AWS_SECRET_ACCESS_KEY", "KPERFLAB_SMTP", "LD_SECRET", "BASH_ENV_X"):
        monkeypatch.setenv(name, SECRET)
    return new_place(tmp_path)


@pytest.mark.parametrize(
    "script",
    [
        "env",
        "cat /proc/1/environ",
        "cat /proc/self/environ",
        "cat /proc/$PPID/environ",
        "cat /proc/*/environ",
        "cat /proc/*/task/*/environ",
        "cat /proc/*/cmdline",
        "cat /proc/*/task/*/cmdline",
        "cat /proc/*/comm /proc/*/stat /proc/*/status",
        "cat /proc/*/maps /proc/*/smaps",
        "for each in /proc/*/fd/* /proc/*/cwd /proc/*/root /proc/*/exe; do readlink $each; done",
        "for each in /proc/[0-9]*; do ls -la $each/root/ $each/root/root $each/cwd/; done",
        "find /proc/1 -maxdepth 1 -type f -readable -exec timeout 1 head -c 100000 {} +",
        "cat /proc/keys /proc/key-users",
        "cat /proc/1/mem | head -c 1000; cat /proc/1/auxv /proc/1/stack /proc/1/syscall",
        "set; export -p",
        "ls -laR /tmp /run /var /home /root /etc /mnt /build /dev/shm",
    ],
)
def test_no_way_of_looking_finds_a_secret(place: SandboxPlace, script: str) -> None:
    seen = attempt(place, f"({script}) 2>&1 | tr '\\0' '\\n'; echo done")
    assert seen.lines[-1] == "done"
    assert SECRET not in seen.text


def test_every_readable_file_of_every_process_is_free_of_secrets(place: SandboxPlace) -> None:
    script = """
    for process in /proc/[0-9]*; do
        for file in environ cmdline maps mountinfo status stat limits cgroup auxv; do
            [ -r "$process/$file" ] && echo "file $process/$file" && tr '\\0' '\\n' <"$process/$file"
        done
        ls -l "$process/fd" "$process/root" "$process/cwd"
    done 2>/dev/null
    """
    seen = attempt(place, script)
    assert sum(line.endswith("/environ") for line in seen.lines) >= 2
    assert SECRET not in seen.text


def test_the_first_process_is_none_of_ours(place: SandboxPlace) -> None:
    """bwrap itself would be process 1, with the environment and memory that it was started with."""
    seen = attempt(place, "cat /proc/1/comm; tr '\\0' ' ' </proc/1/cmdline; echo; cat /proc/*/comm")
    assert "bwrap" not in seen.text
    assert "unshare" not in seen.text
    assert str(place.work) not in seen.text


def test_an_open_file_of_the_lab_is_not_inherited(place: SandboxPlace, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    with secret.open() as file:
        os.set_inheritable(file.fileno(), True)
        seen = attempt(place, "ls /proc/self/fd /proc/1/fd; cat /proc/*/fd/[3-9]* </dev/null 2>/dev/null")
    assert SECRET not in seen.text
    assert "secret" not in seen.text


@pytest.mark.parametrize(
    "name", ["BASH_ENV", "ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "MAKEFLAGS", "CDPATH", "GCC_EXEC_PREFIX"]
)
def test_a_variable_of_the_lab_changes_no_program_of_the_sandbox(
    place: SandboxPlace, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "/nowhere")
    assert attempt(place, f'echo "${{{name}-unset}}"').lines == ["unset"]
