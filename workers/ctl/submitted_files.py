# SPDX-License-Identifier: GPL-2.0-or-later
"""Files submitted on the command line: a description, or a series from a file, standard input or a branch."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from kernels.errors import KernelsError, SeriesIncomplete
from kernels.mails.letters import Letter, Title, as_text, write_letter
from kernels.patches.series import Patch, Series, read_range, read_series
from kernels.processes.environment import passing
from kernels.trees.git import try_git
from kernels.trees.tree import SourceTree
from lab.errors import SpecError
from lab.experiments.switch_names import stem, switch_name
from workers.ctl.preferences import OF_GIT, git_top

STDIN = "-"
# The server's own limit; anything larger is not a series.
MOST_BYTES = 16 << 20
_MAIL = re.compile(rb"(?:From \S+ |[A-Z][A-Za-z-]{1,40}: )")
_DIFF = re.compile(rb"^(?:diff --git |--- \S)", re.MULTILINE)
# The first line of a description that is neither empty nor a comment: a key, or the head of a table.
_TOML = re.compile(rb"""(?:[ \t]*(?:\#[^\n]*)?\r?\n)*[ \t]*(?:[\w."'-]+[ \t]*=|\[\[?[\w. "'-]+\]\]?)""")
# The names of a variant's switches are joined, and there may be sixteen.
NAME_LENGTH = 28


@dataclass(frozen=True, slots=True)
class Handed:
    """A series. name: of the experiment; switch: its name in variants; text: the mails themselves.

    origin: the file it is from; series: as read, None where only the lab can repair it.
    """

    name: str
    switch: str
    text: str
    origin: str
    series: Series | None


def read_handed(source: Path) -> bytes:
    """Return a file's bytes, or standard input's for "-". Raises SpecError."""
    try:
        if str(source) == STDIN:
            if sys.stdin.isatty():
                raise SpecError(
                    "standard input has no series; pipe one into it: b4 am -o- … | labctl submit -"
                )
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with source.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
    except OSError as exc:
        raise SpecError(f'cannot read "{source}": {exc.strerror}') from exc
    if len(data) > MOST_BYTES:
        raise SpecError(f"{source} is larger than {MOST_BYTES >> 20} MiB")
    if not data.strip():
        raise SpecError(f"{'standard input' if str(source) == STDIN else source} is empty")
    return data


def is_series(data: bytes) -> bool:
    """Return True for mails or a diff, False for a description in TOML, which may hold a whole diff as text."""
    return bool(_MAIL.match(data) or (_DIFF.search(data) and not _TOML.match(data)))


def handed_series(data: bytes, source: Path, *, partial: bool = False) -> Handed:
    """Return a series from mails or a diff. partial: accept a series with gaps.

    Raises SpecError where a mail cannot be read, or a gap needs `partial`.
    """
    try:
        text = as_text(data)
    except KernelsError as exc:
        raise SpecError(f"{source}: {exc}") from exc
    try:
        series = read_series(data, partial=partial)
    except SeriesIncomplete as exc:
        raise SpecError(f"{source}: {str(exc).replace('set partial = true', 'give --partial')}") from exc
    except Exception as exc:
        if getattr(exc, "blame", "") != "submission":
            raise
        series = None  # a web archive may have spoilt it: the lab repairs what can be repaired onto the base
    origin = "" if str(source) == STDIN else source.name
    own, title = stem(origin), series.title if series else ""
    return Handed(title or own or "series", switch_name(own or title, NAME_LENGTH), text, origin, series)


def branch_series(branch: str, since: str) -> Handed:
    """Return the commits of a branch of the current git tree after its merge base with `since`.

    Raises SpecError outside of a git tree, and what kernels.patches.series.read_range raises.
    """
    repository = _repository()
    tree = SourceTree(branch, repository, "")
    done = try_git(repository, "merge-base", "--end-of-options", since, branch)
    # Where the two have no common commit, or one is not there, read_range says which.
    start = done.stdout.decode().strip() if not done.returncode else since
    series = read_range(tree, start, branch)
    return Handed(branch, switch_name(branch.rpartition("/")[2], NAME_LENGTH), as_mbox(series), "", series)


def newest_release(branch: str) -> str:
    """Return the newest v… tag below a branch, empty if there is none: what a kernel branch most likely started from."""
    asked = ("describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "--end-of-options", branch)
    done = try_git(_repository(), *asked)
    return done.stdout.decode().strip() if not done.returncode else ""


def as_mbox(series: Series) -> str:
    """Return the series as mails."""
    many = len(series.patches)
    return "".join(as_mail(patch, number, many) for number, patch in enumerate(series.patches, 1))


def as_mail(patch: Patch, number: int = 0, many: int = 0) -> str:
    """Return one patch as a mail."""
    title = Title(patch.title, number=number, total=many)
    return write_letter(Letter(title, patch.author, patch.date, patch.message_id, patch.message, patch.diff))


def _repository() -> Path:
    top = git_top()
    if top is None:
        raise SpecError(f"{Path.cwd()} is not in a git tree; --branch takes a branch of the current one")
    done = subprocess.run(
        ["git", "rev-parse", "--absolute-git-dir"],
        cwd=top,
        capture_output=True,
        text=True,
        check=False,
        env=passing(*OF_GIT),
    )
    if done.returncode:
        raise SpecError(f"git cannot read {top}: {done.stderr.strip().splitlines()[-1]}")
    # A linked work tree has its refs in a folder of its own, its objects in the main one: git knows both.
    return Path(done.stdout.strip())
