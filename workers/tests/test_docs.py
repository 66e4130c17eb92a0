# SPDX-License-Identifier: GPL-2.0-or-later
"""The documentation's commands are labctl's, its descriptions are valid, and the tutorial works on real kernels."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_group

from lab.experiments.spec import spec_from_mapping
from lab.tests.fresh_python import run_python
from workers.labctl import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "howto").glob("*.md")])
TUTORIAL = ROOT / "docs" / "tutorial.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# In fences marked as a console; indented blocks of the readme have them too.
COMMAND = re.compile(r"^(?:\$ |    )(?:\.venv/bin/)?(labctl .*?)(?:\s+#.*)?$", re.MULTILINE)


def commands() -> Iterator[Any]:
    for page in PAGES:
        for match in COMMAND.finditer(page.read_text()):
            yield pytest.param(match[1], id=f"{page.relative_to(ROOT)}: {match[1]}")


def fences(page: Path, language: str) -> list[str]:
    return [text for kind, text in FENCE.findall(page.read_text()) if kind == language]


@pytest.mark.parametrize("line", commands())
def test_labctl_takes_a_command_of_the_docs(line: str) -> None:
    # What stands for any number, for one of several words, and what may be left out.
    line = re.sub(r"\[[^]]*\]", "", line)
    line = re.sub(r"\b(\w+)(\|\w+)+", r"\1", re.sub(r"\bN\b", "1", line))
    arguments = shlex.split(line)[1:]
    name: str | None = arguments[0]
    command: Any = get_group(cli)
    assert name in command.commands, f"there is no command {name}"
    while isinstance(command, TyperGroup):
        with command.make_context("labctl", list(arguments)) as ctx:
            name, command, arguments = command.resolve_command(ctx, arguments)
    # Reading its arguments raises for what it does not know; it is not called.
    with command.make_context(name, arguments):
        pass


def test_the_docs_name_commands_at_all() -> None:
    assert len(list(commands())) >= 8


def test_descriptions_in_the_docs_are_valid() -> None:
    whole = [text for page in PAGES for text in fences(page, "toml") if "[[cases]]" in text]
    assert len(whole) >= 4
    for text in whole:
        described = tomllib.loads(text)
        for patch in described.get("patches", ()):
            if patch.pop("file", None):
                patch["text"] = "diff --git a/x b/x\n"
        spec_from_mapping(described)


@pytest.mark.process
def test_the_pages_are_built_without_a_warning(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(tmp_path / "read"), "docs"]
    ended = subprocess.run(
        [*argv, str(tmp_path / "pages")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    for page in ("index", "tutorial", "reference/labctl", "reference/api"):
        assert "<h1>" in (tmp_path / "pages" / f"{page}.html").read_text()


@pytest.mark.real
@pytest.mark.campaign
def test_the_tutorial_ends_as_it_says(tmp_path: Path) -> None:
    """Its descriptions are saved under the names it gives them, and its labctl commands run in order, with one of its own
    lab's kernels where they are built already."""
    text = TUTORIAL.read_text()
    names = re.findall(r"[Ss]ave (?:this )?as `(\w+\.toml)`", text)
    for name, description in zip(names, fences(TUTORIAL, "toml"), strict=True):
        (tmp_path / name).write_text(description)
    with _home() as home:
        ended = {
            line: _labctl(line, tmp_path, home) for line in (match[1] for match in COMMAND.finditer(text))
        }
    assert ended["labctl preview kernfs.toml"] == 0
    assert ended["labctl submit kernfs.toml"] == 0
    # Three boots by the wall clock tell nothing, or more than we ask for.
    assert ended["labctl submit inode.toml"] in (0, 1, 2)
    assert ended["labctl submit buffer.toml"] == 1
    assert {code for line, code in ended.items() if "submit" not in line and "compare" not in line} == {0}
    assert ended["labctl compare 1 --format markdown"] == 0
    assert tomllib.loads((tmp_path / "kernfs-again.toml").read_text())["name"]


@contextmanager
def _home() -> Iterator[Path]:
    """A lab without a history, but with what `make test` has built before: sources, kernels and base layers.

    Not in pytest's own folder, into which QEMU's user may not go.
    """
    mine = Path(os.environ["KPERFLAB_HOME"])
    home = mine / f"tutorial-{os.getpid()}"
    home.mkdir()
    home.chmod(0o755)
    try:
        for name in ("trees", "artifacts", "keys", "objects", "sources", "initramfs", "programs", "images"):
            (mine / name).mkdir(exist_ok=True)
            (home / name).symlink_to(mine / name)
        yield home
    finally:
        shutil.rmtree(home)


def _labctl(line: str, folder: Path, home: Path) -> int:
    argv = ["-m", "workers.labctl", *shlex.split(line)[1:]]
    environment = {**os.environ, "KPERFLAB_HOME": str(home), "LABCTL_LOCAL": "1", "PYTHONPATH": str(ROOT)}
    ended = run_python(argv, environment, folder)
    print(f"$ {line}\n{ended.stdout}\n{ended.stderr}")
    return ended.returncode
