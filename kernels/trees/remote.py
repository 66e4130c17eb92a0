# SPDX-License-Identifier: GPL-2.0-or-later
"""Talk to a git repository elsewhere: list its branches and tags, and fetch them into a bare one of ours.

The other side is not trusted: it may send data without end, redirect to another place, or send objects that no git would write.
"""

import hashlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kernels.errors import (
    DiskFull,
    GitFailed,
    OutputTooLong,
    SourceUnreachable,
    TreeTooLarge,
    TreeUnreadable,
    UnknownTree,
)
from kernels.files.scratch import free_bytes
from kernels.trees.address import Address
from kernels.trees.git import TOO_MUCH_MEMORY, hide_password, run_git, try_git
from kernels.trees.repack import roll_up

_GIB = 1 << 30
LONGEST_REF = 250
# With a depth git refuses the old protocol of plain files over http, which skips the check of objects and may lead to other hosts.
# This depth means the whole history.
WHOLE = "--depth=2147483647"
# Bytes of the disk that a fetch leaves free.
RESERVE = 256 << 20

_FLAW = re.compile(
    r"object [0-9a-f]{40,64}: (\w+): |fsck error|(?:empty filename|malformed mode) in tree entry|too-short tree|repository corruption"
)
_NO_SUCH_REPOSITORY = re.compile(r"not found|does not appear to be a git repo|does not exist", re.IGNORECASE)
_TOO_LARGE = re.compile(r"File too large|signal 25|pack exceeds", re.IGNORECASE)
_REDIRECTED = re.compile(r"returned error: 30\d")
_PLAIN_FILES = re.compile(r"dumb http transport does not support")
# Names that git's check-ref-format refuses, and characters that no branch name needs.
_BAD_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|/\.|\.lock(?:/|$)|[./]$|\ufffd")
# git's own progress counts of a fetch, with the words for people. Counts of the other side begin with "remote: ".
_STAGES = {b"Receiving objects": "receiving objects", b"Resolving deltas": "resolving deltas"}
_COUNT = re.compile(rb"(?:^|[\r\n])(Receiving objects|Resolving deltas): +(\d{1,3})% ")
# Output of a fetch that is not a complaint: counts, the address, and the branches that it moves.
_NO_COMPLAINT = re.compile(
    r"(?:remote: )?(?:[A-Z][a-z]+ [a-z ]+: +\d+%|Enumerating |Counting |Total )|From | [ *+=t-] .* -> "
)
Progress = Callable[[str, float], None]
"""A callback that gets the stage of a fetch in words, and the fraction of the stage that is done, 0 to 1."""


def _memory() -> int:
    """Return the memory limit of a fetch: git needs 2 to 3 GiB to check the whole history of Linux."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_GIB, min(8 * _GIB, whole // 2))


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The limits of a fetch. bytes: of all packs; refs: the number of branches and tags; memory: of git while it checks."""

    seconds: float = 3600.0  # a first clone of a kernel over the network takes tens of minutes
    bytes: int = 16 * _GIB  # all of Linux is 3 to 6 GiB
    refs: int = 50_000
    memory: int = _memory()


USUAL = FetchLimits()
LOOK = FetchLimits(seconds=60.0, bytes=1 << 20)


@dataclass(frozen=True, slots=True)
class ListedRefs:
    """Branches and tags of a repository, by full name, with their objects; head: the branch or commit of HEAD.

    commits: those of annotated tags, by the tag's full name.
    """

    head: str
    refs: Mapping[str, str]
    commits: Mapping[str, str]


def location_name(location: str) -> str:
    """Return a name for the tree at a location: its last word and a hash of the whole, which no other location shares."""
    word = re.sub(r"[^a-z0-9]+", "-", location.rstrip("/").removesuffix(".git").rsplit("/", 1)[-1].lower())
    return f"{word.strip('-')[:30].strip('-') or 'tree'}-{hashlib.sha256(location.encode()).hexdigest()}"


def branches(address: Address, limits: FetchLimits = LOOK) -> dict[str, str]:
    """Return the commits of a repository's branches, by name, without fetching any. Raises what `ask` does."""
    refs = list_refs(address, limits).refs
    return {
        ref.removeprefix("refs/heads/"): commit
        for ref, commit in refs.items()
        if ref.startswith("refs/heads/")
    }


def list_refs(address: Address, limits: FetchLimits) -> ListedRefs:
    """Return the branches and tags of a repository. Raises TreeTooLarge above the limits, and what `ask` does."""
    arguments = (
        "ls-remote",
        "--symref",
        "--end-of-options",
        address.source,
        "HEAD",
        "refs/heads/*",
        "refs/tags/*",
    )
    try:
        out = ask(address, *arguments, limits=limits, most_output=limits.refs * 400)
    except OutputTooLong as exc:
        raise _too_many(address, limits) from exc
    head, refs, commits = "", {}, {}
    for line in out.decode(errors="replace").splitlines():
        value, _, ref = line.partition("\t")
        if ref == "HEAD":
            head = head or value.removeprefix("ref: refs/heads/")
        elif len(ref) > LONGEST_REF:
            raise TreeTooLarge(
                f"{address.shown} has a branch or tag with a name of more than {LONGEST_REF} characters"
            )
        elif ref.endswith("^{}"):
            commits[ref.removesuffix("^{}")] = value
        elif ref.startswith(("refs/heads/", "refs/tags/")) and not _BAD_REF.search(ref):
            refs[ref] = value
    if len(refs) > limits.refs:
        raise _too_many(address, limits)
    return ListedRefs(head, refs, commits)


def fetch(
    address: Address,
    repository: Path,
    limits: FetchLimits,
    on_note: Callable[[str], None] = lambda _: None,
    on_progress: Progress | None = None,
) -> ListedRefs:
    """Bring branches and tags of a bare repository up to date with another one, and return the other one's refs.

    A tag that exists here is never moved: on_note reports the tags that the other side has moved. Each object is checked
    on receipt. Raises TreeTooLarge, TreeUnreadable, DiskFull, and what `ask` does; then no branch is moved, but one that is gone
    there may be gone here.
    """
    ends = time.monotonic() + limits.seconds
    listed = list_refs(address, limits)
    if not listed.refs:
        raise UnknownTree(f"the repository at {address.shown} has no branches and no tags")
    ours = _refs_of(repository)
    moved = [ref for ref, value in listed.refs.items() if _is_tag(ref) and ours.get(ref, value) != value]
    if moved:
        names = ", ".join(ref.removeprefix("refs/tags/") for ref in moved[:5])
        on_note(
            f"{address.shown} has moved {len(moved)} of its tags ({names}); here they stay where they were"
        )
    new = [ref for ref, value in listed.refs.items() if ref not in moved and ours.get(ref) != value]
    gone = ours.keys() - listed.refs.keys()
    in_the_way = _in_the_way(gone, set(new))
    _delete(repository, in_the_way)
    wanted = [f"+{ref}:{ref}" for ref in new]
    if re.fullmatch(r"[0-9a-f]{40,64}", listed.head):
        wanted.append("+HEAD:refs/kperflab/head")
    if wanted:
        _fetch(address, repository, wanted, limits, ends, on_progress)
    _delete(repository, gone - in_the_way)
    run_git(repository, "pack-refs", "--all")
    roll_up(
        repository,
        seconds=max(1.0, ends - time.monotonic()),
        memory=limits.memory,
        room=free_bytes(repository) - RESERVE,
    )
    return listed


def ask(
    address: Address,
    *arguments: str,
    limits: FetchLimits,
    repository: Path | None = None,
    data: bytes = b"",
    most_output: int = 1 << 20,
    on_progress: Progress | None = None,
) -> bytes:
    """Run a git command that talks to an address, and only to that one; return its output.

    Raises UnknownTree, TreeUnreadable, SourceUnreachable, TreeTooLarge, OutputTooLong, DiskFull.
    """
    seconds = max(1.0, limits.seconds)
    try:
        done = try_git(
            repository or os.devnull,  # never the repository of the current directory
            *address.options,
            *arguments,
            data=data,
            environment=address.environment,
            deadline_s=seconds,
            limits={"fsize": limits.bytes, "data": limits.memory},
            most_output=most_output,
            watch=partial(_tell, on_progress) if on_progress else None,
        )
    except OutputTooLong:
        raise
    except GitFailed as exc:
        raise SourceUnreachable(f"{address.shown} did not answer within {seconds:.0f} s") from exc
    if done.returncode:
        raise _refusal(address, done, limits)
    return done.stdout


def _tell(on_progress: Progress, output: bytes) -> None:
    """Report the last progress count that git wrote."""
    if counts := _COUNT.findall(output):
        stage, percent = counts[-1]
        on_progress(_STAGES[stage], min(1.0, int(percent) / 100))


def _fetch(
    address: Address,
    repository: Path,
    wanted: list[str],
    limits: FetchLimits,
    ends: float,
    on_progress: Progress | None,
) -> None:
    here = sum(path.stat().st_size for path in (repository / "objects" / "pack").glob("*"))
    room, free = limits.bytes - here, free_bytes(repository) - RESERVE
    if room <= 0:
        raise TreeTooLarge(
            f"{address.shown} is here with {here >> 20:,} MiB; at most {limits.bytes >> 20:,} MiB are kept"
        )
    if free <= 0:
        raise DiskFull(
            f"the disk of {repository.parent} has no room to fetch {address.shown}: free some space"
        )
    left = replace(limits, seconds=max(1.0, ends - time.monotonic()), bytes=min(room, free))
    try:
        ask(
            address, "fetch", "--progress", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
            "--no-auto-maintenance", "--atomic", "--stdin", WHOLE, "--end-of-options", address.source,
            limits=left, repository=repository, data="".join(f"{ref}\n" for ref in wanted).encode(),
            on_progress=on_progress,
        )  # fmt: skip
    except TreeTooLarge as exc:
        if free < room:
            raise DiskFull(
                f"the disk of {repository.parent} is too full to fetch {address.shown}: free some space"
            ) from exc
        raise
    finally:
        for left_over in (repository / "objects" / "pack").glob("tmp_*"):  # of a git that was stopped
            left_over.unlink(missing_ok=True)


def _refs_of(repository: Path) -> dict[str, str]:
    out = run_git(repository, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
    pairs = (line.split(" ", 1) for line in out.decode(errors="replace").splitlines())
    return {ref: value for value, ref in pairs}


def _in_the_way(refs: Set[str], others: set[str]) -> set[str]:
    """Return the refs whose name is below or above one of the others: git cannot have both, and would refuse the whole fetch."""
    folders = {folder for other in others for folder in _folders(other)}
    return {ref for ref in refs if ref in folders or not others.isdisjoint(_folders(ref))}


def _folders(ref: str) -> list[str]:
    parts = ref.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]


def _delete(repository: Path, refs: Iterable[str]) -> None:
    lines = "".join(f"delete {ref}\n" for ref in sorted(refs))
    run_git(repository, "update-ref", "--stdin", data=lines.encode())


def _is_tag(ref: str) -> bool:
    return ref.startswith("refs/tags/")


def _too_many(address: Address, limits: FetchLimits) -> TreeTooLarge:
    return TreeTooLarge(
        f"{address.shown} has more than {limits.refs:,} branches and tags, which is the most that are fetched"
    )


def _refusal(address: Address, done: subprocess.CompletedProcess[bytes], limits: FetchLimits) -> Exception:
    """Return the error that explains why git could not talk to an address."""
    shown, detail = address.shown, _plain(done.stderr, address)
    if _TOO_LARGE.search(detail):
        return TreeTooLarge(
            f"{shown} is more than {limits.bytes >> 20:,} MiB, which is the most that is fetched", detail
        )
    if TOO_MUCH_MEMORY.search(detail):
        return TreeTooLarge(
            f"{shown} needs more than {limits.memory >> 20:,} MiB of memory to check, which is the most it may take",
            detail,
        )
    if "dubious ownership" in detail:
        return TreeUnreadable(
            f"{shown} belongs to another user: clone it as yourself, then give that path", detail
        )
    if flaw := _FLAW.search(detail):
        return TreeUnreadable(
            f"{shown} is refused: git finds malformed objects in it ({flaw[1] or flaw[0]})", detail
        )
    if _REDIRECTED.search(detail):
        return TreeUnreadable(f"{shown} redirects to another address: give that address instead", detail)
    if _PLAIN_FILES.search(detail):
        return TreeUnreadable(
            f"{shown} is served as plain files, whose objects cannot be checked; give an address with git's own server",
            detail,
        )
    if _NO_SUCH_REPOSITORY.search(detail):
        return UnknownTree(f"there is no git repository at {shown}", detail)
    last = detail.splitlines()[-1] if detail else f"status {done.returncode}"
    return SourceUnreachable(f"{shown} cannot be fetched: {last}", detail)


def _plain(stderr: bytes, address: Address) -> str:
    """Return git's message without counts and passwords, because the server writes part of it."""
    lines = re.split(r"[\r\n]+", stderr.decode(errors="replace"))
    text = "\n".join(line.rstrip() for line in lines if line.strip() and not _NO_COMPLAINT.match(line))
    return hide_password(text.replace(address.location, address.shown))
