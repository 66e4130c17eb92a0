# SPDX-License-Identifier: GPL-2.0-or-later
"""Copy the branches and tags of a git repository, given by URL or path, into a bare one of ours."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from kernels.errors import TreeUnreachable, TreeUnreadable, UnknownTree
from kernels.git import hide_password, try_git

# A first clone of a kernel over the network takes tens of minutes.
DEADLINE_S = 3600.0
LOOK_DEADLINE_S = 60.0
REFS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")

_URL = re.compile(r"(https|http|git|ssh)://[^\s-]\S*")
_SCP_FORM = re.compile(r"[\w.]+@[\w.]+:[^\s:]\S*")  # git@host:path
_FLAW = re.compile(
    r"object [0-9a-f]{40,64}: (\w+): |fsck error|(?:empty filename|malformed mode) in tree entry|too-short tree|repository corruption"
)
_NO_SUCH_REPOSITORY = re.compile(r"not found|does not appear to be a git repo|does not exist", re.I)


def transport(location: str) -> tuple[str, str]:
    """The location as git may be given it, and the one protocol git may speak for it.

    A path is a directory of this machine, made absolute so that it can be mistaken neither for an option nor for a
    URL. Raises UnknownTree for everything else, such as `ext::…`, which would run a command, and `file://…`.
    """
    if url := _URL.fullmatch(location):
        return location, url[1]
    if _SCP_FORM.fullmatch(location):
        return location, "ssh"
    directory = Path(location)
    if location and "\0" not in location and not location.startswith("-") and directory.is_dir():
        return str(directory.resolve()), "file"
    raise UnknownTree(
        f'"{hide_password(location)}" is no git repository: give a URL (https, ssh, git, http) or a directory'
    )


def location_name(location: str) -> str:
    """A name for the tree at a location nobody has named: its last word and a short hash of the whole."""
    word = re.sub(r"[^a-z0-9]+", "-", location.rstrip("/").removesuffix(".git").rsplit("/", 1)[-1].lower())
    return f"{word.strip('-') or 'tree'}-{hashlib.sha256(location.encode()).hexdigest()[:8]}"


def clone(location: str, repository: Path, deadline_s: float = DEADLINE_S) -> None:
    """Make `repository` (not there yet) a bare clone: branches and tags, no hooks, no submodules.

    Each object is checked as it comes in, also from a path of this machine. Raises UnknownTree, TreeUnreadable, TreeUnreachable.
    """
    source, protocol = transport(location)
    done = try_git(
        "clone",
        "--quiet",
        "--bare",
        "--template=",
        "--no-local",  # links to another's object files would come unchecked, and could change later
        "--end-of-options",
        source,
        str(repository),
        environment={"GIT_ALLOW_PROTOCOL": protocol},
        deadline_s=deadline_s,
    )
    _check(location, done.returncode, done.stderr)


def fetch(location: str, repository: Path, deadline_s: float = DEADLINE_S) -> None:
    """Bring branches and tags of an earlier clone up to date. Raises what `clone` does."""
    source, protocol = transport(location)
    done = try_git(
        f"--git-dir={repository}",
        "fetch",
        "--quiet",
        "--prune",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        "--end-of-options",
        source,
        *REFS,
        environment={"GIT_ALLOW_PROTOCOL": protocol},
        deadline_s=deadline_s,
    )
    _check(location, done.returncode, done.stderr)


def branches(location: str, deadline_s: float = LOOK_DEADLINE_S) -> dict[str, str]:
    """The commits that a repository's branches are at, by name, without fetching any. Raises what `clone` does."""
    source, protocol = transport(location)
    done = try_git(
        "ls-remote",
        "--heads",
        "--end-of-options",
        source,
        environment={"GIT_ALLOW_PROTOCOL": protocol},
        deadline_s=deadline_s,
    )
    _check(location, done.returncode, done.stderr)
    lines = (line.split("\t", 1) for line in done.stdout.decode(errors="replace").splitlines())
    return {name.removeprefix("refs/heads/"): commit for commit, name in lines}


def _check(location: str, status: int, stderr: bytes) -> None:
    if not status:
        return
    shown, detail = hide_password(location), hide_password(stderr.decode(errors="replace").strip())
    if "dubious ownership" in detail:
        raise TreeUnreadable(
            f"{shown} belongs to another user: clone it as yourself, then give that path", detail
        )
    if flaw := _FLAW.search(detail):
        raise TreeUnreadable(
            f"{shown} is refused: git finds malformed objects in it ({flaw[1] or flaw[0]})",
            detail,
        )
    if _NO_SUCH_REPOSITORY.search(detail):
        raise UnknownTree(f"there is no git repository at {shown}", detail)
    last = detail.splitlines()[-1] if detail else f"status {status}"
    raise TreeUnreachable(f"{shown} cannot be fetched: {last}", detail)
