# SPDX-License-Identifier: GPL-2.0-or-later
"""Commits with flaws: those of real history are taken and shown, those that git could misread are refused."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from kernels.errors import TreeUnreadable
from kernels.tests.stranger import Stranger
from kernels.trees.address import own_address
from kernels.trees.history import line, logged
from kernels.trees.tree import open_git, resolve

pytestmark = [pytest.mark.hostile, pytest.mark.process]

AUTHOR = b"a <a@b> 0 +0000"
FLAWS = {
    "badTimezone": b"a <a@b> 1112911993 -700",
    "badDateOverflow": b"a <a@b> 99999999999999999999999 +0000",
    "zeroPaddedDate": b"a <a@b> 01112911993 +0000",
    "missingSpaceBeforeDate": b"a <a@b>1112911993 +0000",
    "missingSpaceBeforeEmail": b"a<a@b> 1112911993 +0000",
    "missingEmail": b"a 1112911993 +0000",
    "badEmail": b"a <a@b 1112911993 +0000",
    "badDate": b"a <a@b> yesterday",
    "a name that a terminal obeys": b"\x1b[2Ja <a@b> 1112911993 +0000",
}


def test_a_subject_cannot_be_taken_for_two_fields(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path / "theirs")
    commit = stranger.commit(stranger.plain())
    text = f"tree {stranger.plain()}\nparent {commit}\nauthor a\x1f <a@b> 0 +0000\ncommitter a <a@b> 0 +0000\n\none\x1ftwo\x1f\n"
    second = stranger.object("commit", text.encode())
    stranger.git("update-ref", "refs/heads/main", second)
    tree = open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
    entries = line(tree, resolve(tree, commit), resolve(tree, second))
    assert [(entry.commit, entry.position, entry.subject) for entry in entries] == [
        (second, 1, r"one\x1ftwo\x1f")
    ]


def raw_commit(stranger: Stranger, author: bytes, more: bytes = b"") -> str:
    tree = stranger.plain().encode()
    text = b"tree %s\nauthor %s\ncommitter %s\n%s\nold\n" % (tree, author, AUTHOR, more)
    return stranger.object("commit", text)


@pytest.mark.parametrize("flaw", FLAWS)
def test_history_with_a_flawed_author_line_is_taken(flaw: str, tmp_path: Path) -> None:
    """Early and foreign tools wrote such lines into real histories; they are only shown."""
    stranger = Stranger(tmp_path / "theirs")
    commit = raw_commit(stranger, FLAWS[flaw])
    stranger.git("update-ref", "refs/heads/main", commit)
    entry = logged(open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees"), commit)
    assert entry.subject == "old"
    assert entry.author.isprintable()
    assert datetime.fromisoformat(entry.date).tzinfo


@pytest.mark.parametrize("more", [b"tree " + b"0" * 40 + b"\n", b"nul \0 here\n", b"author x <y> 0 +0000\n"])
def test_a_commit_whose_header_git_could_misread_is_refused(more: bytes, tmp_path: Path) -> None:
    stranger = Stranger(tmp_path / "theirs")
    tree = stranger.plain().encode()
    text = b"tree %s\nauthor %s\n%scommitter %s\n\nold\n" % (tree, AUTHOR, more, AUTHOR)
    stranger.git("update-ref", "refs/heads/main", stranger.object("commit", text))
    with pytest.raises(TreeUnreadable, match="git finds malformed objects"):
        open_git("theirs", own_address(str(stranger.path)), tmp_path / "trees")
