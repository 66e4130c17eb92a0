# SPDX-License-Identifier: GPL-2.0-or-later
"""Commits between machines as git bundles: a variant's over its base, or a base alone without its history.

A bundle is accepted only if it contains exactly the requested commit: no other ref, no object that git's own checks refuse. A refused
bundle leaves nothing behind.
"""

import re
from pathlib import Path
from typing import IO

from kernels.errors import BundleRefused
from kernels.files.scratch import place_synced, remove_leftovers, scratch
from kernels.trees.git import run_git, try_git
from kernels.trees.tree import keep, make_bare
from kernels.trees.whole_repository import appearing, locked

# A kernel's sources compress to 0.2 GiB.
MOST_BYTES = 2 << 30
DEADLINE_S = 1200.0
_HEAD = b"# v2 git bundle\n"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MOST_HEAD = 4096


def write_bundle(repository: Path, commit: str, base: str, file: Path) -> None:
    """Write a bundle of a commit: its difference to the base; without a base all of its files, without history.

    Raises GitFailed, DiskFull.
    """
    keep(repository, commit)
    ref = f"refs/kperflab/{commit}"
    if base:
        run_git(repository, "bundle", "create", "--quiet", str(file), ref, f"^{base}", deadline_s=DEADLINE_S)
        return
    names = run_git(repository, "rev-list", "--objects", "--max-count=1", commit, deadline_s=DEADLINE_S)
    pack = _pack(repository, names, file)
    try:
        with pack.open("rb") as source, file.open("wb") as out:
            out.write(_HEAD + f"{commit} {ref}\n\n".encode())
            while chunk := source.read(1 << 20):
                out.write(chunk)
    finally:
        pack.unlink()


def take_bundle(repository: Path, file: Path, commit: str, base: str) -> None:
    """Add the one commit of a bundle to a repository: over a base that the repository has, or without history.

    Raises BundleRefused for anything that write_bundle would not write, GitFailed, DiskFull; then nothing is stored.
    """
    if file.stat().st_size > MOST_BYTES:
        raise BundleRefused(f"the bundle of {commit[:12]} is larger than {MOST_BYTES >> 20} MiB")
    coming = repository / "objects" / ".coming"
    remove_leftovers(coming)
    with file.open("rb") as source:
        _read_head(source, commit, base)
        with scratch(coming) as place:
            _index(repository, source, place, commit, shallow=not base)
            _must_be_whole(repository, place, commit, base)
            (repository / "objects" / "pack").mkdir(exist_ok=True)
            # The index last: git ignores a pack without one.
            for path in sorted((place / "pack").iterdir(), key=lambda pack_file: pack_file.suffix == ".idx"):
                path.rename(repository / "objects" / "pack" / path.name)
    if not base:
        _mark_shallow(repository, commit)
    keep(repository, commit)


def has_commit(repository: Path, commit: str) -> bool:
    """Return whether a repository has a commit with all of its files."""
    if not _COMMIT.fullmatch(commit) or not repository.is_dir():
        return False
    there = try_git(repository, "cat-file", "-e", f"{commit}^{{tree}}")
    return there.returncode == 0


def tree_of(repository: Path, commit: str) -> str:
    """Return the id of a commit's tree. Raises GitFailed."""
    return (
        run_git(repository, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")
        .decode()
        .strip()
    )


def _pack(repository: Path, names: bytes, file: Path) -> Path:
    stem = file.with_name(f".{file.name}")
    output = run_git(repository, "pack-objects", "--quiet", str(stem), data=names, deadline_s=DEADLINE_S)
    digest = output.decode().strip()
    for suffix in ("idx", "rev"):
        Path(f"{stem}-{digest}.{suffix}").unlink(missing_ok=True)
    return Path(f"{stem}-{digest}.pack")


def _read_head(source: IO[bytes], commit: str, base: str) -> None:
    """Read the head and leave the file positioned at its pack. Raises BundleRefused unless the head is the expected one."""
    lines = []
    while (line := source.readline(_MOST_HEAD)) not in (b"\n", b""):
        lines.append(line)
        if len(lines) > 3:
            break
    wanted = [_HEAD.decode(), *([f"-{base}"] if base else []), f"{commit} refs/kperflab/{commit}\n"]
    said = [head_line.decode("utf-8", "replace") for head_line in lines]
    if base and len(said) == 3:
        said[1] = said[1].split(" ", 1)[0].rstrip("\n")  # git appends the subject
    if said != wanted or line != b"\n":
        raise BundleRefused(f"the bundle of {commit[:12]} is of another commit and was refused")


def _index(repository: Path, source: IO[bytes], place: Path, commit: str, *, shallow: bool) -> None:
    """Unpack into a place beside the repository's objects, each object checked."""
    (place / "pack").mkdir()
    done = _in_place(
        repository,
        place,
        "index-pack",
        "--stdin",
        "--fix-thin",
        # A commit without its history has links that lead nowhere; the objects that it needs are checked afterwards.
        "--strict" if not shallow else "--fsck-objects",
        f"--max-input-size={MOST_BYTES}",
        data=source,
    )
    if done:
        raise BundleRefused(f"the bundle of {commit[:12]} is damaged: {done}")


def _must_be_whole(repository: Path, place: Path, commit: str, base: str) -> None:
    """Raise BundleRefused unless the commit and everything that it names are there."""
    over = ("--not", base) if base else ()
    shallow: tuple[str, ...] = ()
    if not base:
        # Treat the commit as shallow already.
        (place / "shallow").write_text(_shallow_with(repository, commit))
        shallow = ("--shallow-file", str(place / "shallow"))
    if said := _in_place(repository, place, *shallow, "rev-list", "--objects", "--quiet", commit, *over):
        raise BundleRefused(f"the bundle of {commit[:12]} lacks a part of it: {said}")


def _in_place(repository: Path, place: Path, *arguments: str, data: bytes | IO[bytes] = b"") -> str:
    """Run a git command whose new objects go to a separate place; return git's complaint, empty if there is none."""
    environment = {
        "GIT_OBJECT_DIRECTORY": str(place),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repository / "objects"),
    }
    done = try_git(repository, *arguments, data=data, environment=environment, deadline_s=DEADLINE_S)
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return (said[-1][:300] if said else "git gave no reason") if done.returncode else ""


def _mark_shallow(repository: Path, commit: str) -> None:
    """Tell git that this commit's history is missing on purpose."""
    draft = repository / ".shallow.draft"
    draft.write_text(_shallow_with(repository, commit))
    place_synced(draft, repository / "shallow")


def _shallow_with(repository: Path, commit: str) -> str:
    path = repository / "shallow"
    known = set(path.read_text().split()) if path.exists() else set()
    return "".join(f"{revision}\n" for revision in sorted(known | {commit}))


def tree_from_bundle(name: str, root: Path, file: Path, commit: str) -> None:
    """Make the tree of that name from a bundle of one commit, or add the commit to it. Raises as take_bundle."""
    repository = root / f"{name}.git"
    with locked(name, root), appearing(repository) as place:
        if not (place / "HEAD").exists():
            make_bare(place)
            run_git(place, "config", "kperflab.default", commit)
            # Not an archive of this machine, so one that is imported later is read.
            run_git(place, "config", "kperflab.archive", "store")
        take_bundle(place, file, commit, "")
