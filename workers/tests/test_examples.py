# SPDX-License-Identifier: GPL-2.0-or-later
"""Every command of labctl has examples in its help, and every example is a call that labctl understands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from lab.comparisons.exports.formats import REPORT_FORMS
from workers.ctl.lazy_commands import EXAMPLES, examples_of
from workers.labctl import cli

ROOT: Any = get_command(cli)


def resolved(words: list[str]) -> tuple[str, Any, list[str]]:
    """Return the command that words lead to, with its path and the words left over."""
    command, path, context = ROOT, "labctl", None
    while isinstance(command, TyperGroup):
        context = command.make_context(path.split()[-1], [words[0]], parent=context, resilient_parsing=True)
        name, command, words = command.resolve_command(context, words)
        path = f"{path} {name}"
    return path, command, words


def leaves(group: Any = ROOT, before: str = "") -> Iterator[str]:
    for name in group.commands:
        with group.make_context("labctl", [name], resilient_parsing=True) as context:
            _, command, _ = group.resolve_command(context, [name])
        if isinstance(command, TyperGroup):
            yield from leaves(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


LEAVES = list(leaves())


def test_every_command_has_examples_and_each_is_of_one_command() -> None:
    assert all(examples_of(path) for path in LEAVES)
    assert sorted(line for path in LEAVES for line in examples_of(path)) == sorted(EXAMPLES)


@pytest.mark.parametrize(("path", "line"), [(path, line) for path in LEAVES for line in examples_of(path)])
def test_an_example_is_a_call_of_its_command_that_parses(
    path: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in re.findall(r"\b[\w-]+\.(?:patch|toml|tar|mbox)\b", line):
        (tmp_path / name).write_text("")
    (call,) = re.findall(r"(?:^|\| )labctl ([^|&<>]+)", line)
    name, command, words = resolved(shlex.split(call))
    assert name == f"labctl {path}"
    with command.make_context(name, words) as context:
        assert context.command is command


def test_an_example_of_a_report_names_a_format_that_exists() -> None:
    formats = [re.findall(r"--format (\S+)", line) for line in examples_of("export report")]
    assert formats
    assert all(name in REPORT_FORMS for (name,) in formats)


def test_the_help_of_a_group_has_none_of_its_own() -> None:
    with ROOT.make_context("labctl", ["target"], resilient_parsing=True) as context:
        _, command, _ = ROOT.resolve_command(context, ["target"])
    assert "Examples" not in (command.epilog or "")


@pytest.mark.parametrize("path", ["watch", "target power"])
def test_the_help_of_a_command_ends_with_its_examples(path: str) -> None:
    _, command, _ = resolved([*path.split(), "--help"])
    assert all(line in command.epilog for line in examples_of(path))
