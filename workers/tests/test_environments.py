# SPDX-License-Identifier: GPL-2.0-or-later
"""No program gets the environment of the lab's processes, which may hold passwords: each is started with its own."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from lab.environment import SECRETS, adopt, all_variables, read_variable
from lab.models import Build
from workers.tests.conftest import FakeLab
from workers.tests.test_house import ROOT, is_of_tests, tracked

pytestmark = pytest.mark.hostile

PACKAGES = ("kernels", "workloads", "lab", "workers", "web")
STARTS = {
    "subprocess": {"run", "Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
}
OF_OS = {
    "system",
    "popen",
    "execv",
    "execvp",
    "execl",
    "execlp",
    "spawnv",
    "spawnl",
    "spawnvp",
    "posix_spawn",
}
SECRET = "TOPSECRET-of-the-lab"


def starts_of_programs(source: str) -> list[tuple[int, bool]]:
    """The lines of a source that start a program, and whether each says with which environment."""
    starts = []
    for item in ast.walk(ast.parse(source)):
        if not isinstance(item, ast.Call):
            continue
        named = [item.func, *item.args[:1]]  # also as functools.partial(subprocess.run, …)
        for each in named:
            if not (isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name)):
                continue
            if each.attr in STARTS.get(each.value.id, ()):
                read_variable = [word.value for word in item.keywords if word.arg == "env"]
                clean = bool(read_variable) and "os.environ" not in ast.unparse(read_variable[0])
                starts.append((item.lineno, clean))
            elif each.value.id in ("os", "pty") and (each.attr in OF_OS or each.value.id == "pty"):
                starts.append((item.lineno, False))
    return starts


@pytest.mark.process
def test_every_program_is_started_with_an_environment_of_its_own() -> None:
    sources = [
        path
        for path in tracked(".py")
        if path.relative_to(ROOT).parts[0] in PACKAGES and not is_of_tests(path)
    ]
    seen = [(path, line, clean) for path in sources for line, clean in starts_of_programs(path.read_text())]
    assert len(seen) > 20
    assert [f"{path.relative_to(ROOT)}:{line}" for path, line, clean in seen if not clean] == []


@pytest.mark.parametrize(
    "culprit",
    [
        "subprocess.run(['true'])",
        "subprocess.Popen(['true'], env={**os.environ})",
        "subprocess.check_output(['true'], env=os.environ)",
        "partial(subprocess.run, ['true'])",
        "os.system('true')",
        "os.execv('/bin/true', [])",
        "pty.spawn('true')",
        "asyncio.create_subprocess_exec('true')",
    ],
)
def test_the_rule_sees_an_offence(culprit: str) -> None:
    assert starts_of_programs(culprit) == [(1, False)]


@pytest.mark.process
def test_only_the_labs_own_processes_inherit_everything() -> None:
    users = [
        str(path.relative_to(ROOT))
        for path in tracked(".py")
        if "for_own_processes" in path.read_text() and not is_of_tests(path)
    ]
    assert sorted(users) == [
        "lab/environment.py",
        "workers/crew.py",
        "workers/fetching.py",
        "workers/serve.py",
    ]


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose service runs with secrets, adopted by this process."""
    for name in (*SECRETS, "AWS_CA_BUNDLE", "KPERFLAB_LORE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)
    monkeypatch.setattr("lab.environment._adopted", {})
    monkeypatch.setattr(os, "environ", dict(os.environ))
    kept = dict.fromkeys(SECRETS, SECRET) | {"AWS_CA_BUNDLE": "/ca", "KPERFLAB_LORE": "https://lore/"}
    (tmp_path / "service").mkdir()
    (tmp_path / "service" / "environment.json").write_text(json.dumps(kept))
    adopt(tmp_path)
    return tmp_path


def test_a_home_adopts_secrets_into_memory_alone(service: Path) -> None:
    assert {read_variable(name) for name in SECRETS} == {SECRET}
    assert SECRET not in "".join(os.environ.values())
    assert "KPERFLAB_LORE" not in os.environ
    assert all_variables("KPERFLAB_")["KPERFLAB_LORE"] == read_variable("KPERFLAB_LORE") == "https://lore/"


def test_what_a_library_reads_for_itself_is_in_the_environment(service: Path) -> None:
    assert os.environ["AWS_CA_BUNDLE"] == "/ca"


@pytest.mark.process
def test_a_build_cannot_print_what_the_lab_was_given(
    fake_lab: FakeLab, service: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack by which this was noticed: a line of a Makefile, and a build log that anybody may read."""
    for name in SECRETS:
        monkeypatch.setenv(name, SECRET)
    text = (ROOT / "kernels/tests/fakelinux/Makefile").read_text()
    stolen = "$(info LEAK $(shell cat /proc/*/environ | tr '\\0' ' '))\n"
    patch = fake_lab.diff("Makefile", text, stolen + text)
    measure = {"boots": 2, "iterations": 2, "warmup": 1}
    fake_lab.run(fake_lab.spec({"speedup": patch}, measure=measure))
    build = Build.objects.get(variants__name="speedup")
    answer = Client().get(f"/builds/{build.pk}/log.txt")
    assert answer.status_code == 200
    log = b"".join(answer) if answer.streaming else answer.content
    assert b"LEAK" in log
    assert SECRET.encode() not in log
