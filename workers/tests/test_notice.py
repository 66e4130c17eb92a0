# SPDX-License-Identifier: GPL-2.0-or-later
"""A notice reaches the desktop, or else the terminal, and a text of others commands neither."""

from __future__ import annotations

import io
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer

from workers.ctl import notice, watchctl

HOSTILE = "a\x1b]0;owned\x07;b\n<b>&"


class Terminal(io.StringIO):
    """A stream that passes for a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal in place of standard error."""
    stream = Terminal()
    # pytest puts a stream of its own into sys between a fixture and its test.
    monkeypatch.setattr(notice, "sys", SimpleNamespace(stderr=stream))
    return stream


def desktop(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> Path:
    """Put a notify-send that writes its arguments down before everything else of PATH."""
    asked, program = folder / "asked", folder / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {asked}\nexit {code}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return asked


@pytest.mark.process
def test_a_desktop_gets_the_notice_and_the_terminal_stays_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    asked = desktop(tmp_path, monkeypatch, 0)
    notice.show("Experiment 41: no regression", "p99 <1 % & less")
    assert asked.read_text().splitlines() == [
        "--app-name=labctl",
        "--",
        "Experiment 41: no regression",
        "p99 &lt;1 % &amp; less",
    ]
    assert terminal.getvalue() == ""


@pytest.mark.process
def test_without_a_desktop_the_terminal_shows_it_and_rings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    desktop(tmp_path, monkeypatch, 1)
    notice.show("Experiment 41", "done")
    assert terminal.getvalue() == "\x1b]777;notify;Experiment 41;done\x1b\\\x1b]9;Experiment 41: done\x1b\\\a"


def test_a_file_in_place_of_a_terminal_gets_no_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    monkeypatch.setenv("PATH", str(tmp_path))
    notice.show("Experiment 41", "done")
    assert terminal.getvalue() == ""


@pytest.mark.hostile
def test_a_name_with_control_characters_ends_no_sequence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: Terminal
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    notice.show(HOSTILE, HOSTILE)
    said = terminal.getvalue()
    assert said.count("\x1b") == 4
    assert said.count("\a") == 1
    assert "\n" not in said
    assert said.split("\x1b\\")[0].count(";") == 3


@pytest.mark.parametrize(
    ("code", "words"), [(0, "no regression"), (1, "a regression"), (3, "the lab failed")]
)
def test_watch_notifies_with_the_verdict_and_keeps_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    shown: list[tuple[str, str]] = []
    monkeypatch.setattr("workers.ctl.options.open_client", lambda **_: nullcontext(SimpleNamespace()))
    monkeypatch.setattr(watchctl, "stay", lambda *_: code)
    compared = {"conclusion": {"headline": "No answer: this machine was too noisy."}}
    monkeypatch.setattr("workers.ctl.reportctl.comparison", lambda *_: compared)
    monkeypatch.setattr(notice, "show", lambda *words: shown.append(words))
    for notify in (False, True):
        with pytest.raises(typer.Exit) as ended:
            watchctl.watch(experiment_id=41, notify=notify)
        assert ended.value.exit_code == code
    assert shown == [(f"Experiment 41: {words}", "No answer: this machine was too noisy.")]
