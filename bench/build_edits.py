# SPDX-License-Identifier: GPL-2.0-or-later
"""The changes of a kernel that `bench.build` builds: functions in some files, and what patches do to widely used headers."""

import itertools
import random
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernels.trees.git import COMMITTER, git_command, git_environment
from kernels.trees.tree import NamedRevision, SourceTree, read_file

# Directories whose files any of our stories might touch.
FOLDERS = ("fs", "fs/ext4", "fs/kernfs", "mm", "kernel/locking", "kernel/sched", "block", "net/core")
_PROTOTYPE = "extern int kperflab_{name}(int a, void *b);\n"
_INLINE = "static inline int kperflab_{name}(int a)\n{{\n\treturn a + 40;\n}}\n"
# Each header with the structure that gets a field, the member it stands before, and the line that a declaration is put before.
_HEADERS = {
    "fs.h": ("include/linux/fs.h", r"^\tvoid\s+\*i_private;", r"^static inline struct inode \*file_inode\("),
    "sched.h": ("include/linux/sched.h", r"^\tint\s+exit_state;", r"^static inline struct pid \*task_pid\("),
    "mm.h": (
        "include/linux/mm.h",
        r"^\tvoid \* vm_private_data;|^\tint \(\*mprotect\)\(",
        r"^static inline void vma_init\(",
    ),
}
# A field of struct vm_area_struct stands in another header than mm.h.
_FIELDS = {"mm.h": "\tint\t\t(*kperflab)(void);\n"}
KINDS = ("declaration", "first", "last", "field")
# What a config switch adds to the base's config; its build from the switched base back is the base.
SWITCHES = {"config-schedstats": "CONFIG_SCHEDSTATS=y\n"}


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the base: its name, and the new contents of files by path; None for a file that is gone."""

    name: str
    files: Mapping[str, bytes | None]


def names() -> list[str]:
    """Return the names of all edits, in the order of the table."""
    files = [f"files-{count}" for count in (1, 2, 3)]
    return [*files, *(f"{header}-{kind}" for header in _HEADERS for kind in KINDS), *SWITCHES]


def edits(
    wanted: list[str], tree: SourceTree, base: NamedRevision, objects: Path, generator: random.Random
) -> Iterator[Edit]:
    """Yield the edits of these names. objects: the object directory of the base."""
    for name in wanted:
        header, _, kind = name.rpartition("-")
        if name in SWITCHES:
            yield Edit(name, {})
        elif header == "files":
            yield Edit(name, _functions(tree, base, objects, int(kind), generator))
        else:
            path, member, place = _HEADERS[header]
            text = read_file(tree, base.tree_id, path).decode()
            yield Edit(name, {path: _changed(text, name, header, member, place).encode()})


def series(
    count: int, tree: SourceTree, base: NamedRevision, objects: Path, generator: random.Random
) -> Iterator[tuple[Edit, NamedRevision]]:
    """Yield commits, each on the one before, as in a stable series: one to three files each, every fourth a header too."""
    parent = base
    for number in range(1, count + 1):
        files: dict[str, bytes | None] = {
            **_functions(tree, parent, objects, generator.choice((1, 1, 1, 2, 3)), generator)
        }
        if number % 4 == 0:
            path, _, place = _HEADERS[generator.choice(sorted(_HEADERS))]
            text = read_file(tree, parent.tree_id, path).decode()
            name = f"commit-{number}"
            files[path] = _before(text, place, _PROTOTYPE.format(name=f"commit_{number}"), name).encode()
        edit = Edit(f"commit-{number}", files)
        parent = commit(tree, parent, edit)
        yield edit, parent


def _changed(text: str, name: str, header: str, member: str, place: str) -> str:
    kind = name.rpartition("-")[2]
    own = re.sub(r"\W", "_", name)
    if kind == "field":
        return _before(text, member, _FIELDS.get(header, "\tunsigned long\t\tkperflab;\n"), name)
    if kind == "declaration":
        return _before(text, place, _PROTOTYPE.format(name=own), name)
    if kind == "first":
        return _before(text, r"^struct \w+;", _INLINE.format(name=own), name)
    return _before(text, r"^#endif[^\n]*\s*\Z", "\n" + _INLINE.format(name=own), name)


def _before(text: str, pattern: str, added: str, name: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise SystemExit(f"bench: this tree has no place for the edit {name}: nothing matches {pattern}")
    return text[: match.start()] + added + text[match.start() :]


def _functions(
    tree: SourceTree, base: NamedRevision, objects: Path, count: int, generator: random.Random
) -> dict[str, bytes]:
    """Return `count` compiled .c files with a function more at their ends."""
    compiled = [path for folder in FOLDERS for path in sorted((objects / folder).glob("*.o"))]
    sources = [str(path.relative_to(objects).with_suffix(".c")) for path in compiled]
    shuffled = generator.sample(sources, len(sources))
    picked = itertools.islice((name for name in shuffled if _in_tree(tree, base, name)), count)
    return {name: read_file(tree, base.tree_id, name) + _function(generator) for name in picked}


def _in_tree(tree: SourceTree, base: NamedRevision, name: str) -> bool:
    command = git_command(f"--git-dir={tree.repository}", "cat-file", "-e", f"{base.tree_id}:{name}")
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


def _function(generator: random.Random) -> bytes:
    """Return a function nobody calls: it compiles at the end of any file, and moves all code linked after it."""
    name = f"kperflab_bench_{generator.randrange(1 << 32):08x}"
    factor = generator.randrange(3, 1000)
    return (
        f"\nint {name}(int value);\nint {name}(int value)\n{{\n\treturn value * {factor} + 1;\n}}\n".encode()
    )


def commit(tree: SourceTree, parent: NamedRevision, edit: Edit) -> NamedRevision:
    """Return the edit as a commit on its parent, with only the repository's objects written."""
    with tempfile.TemporaryDirectory() as folder:
        environment = git_environment({**COMMITTER, "GIT_INDEX_FILE": f"{folder}/index"})

        def git(*arguments: str, data: bytes = b"") -> str:
            command = git_command(f"--git-dir={tree.repository}", *arguments)
            done = subprocess.run(
                command, env=environment, input=data, capture_output=True, check=True, timeout=60
            )
            return done.stdout.decode().strip()

        git("read-tree", parent.tree_id)
        blobs = {
            path: "" if data is None else git("hash-object", "-w", "--stdin", data=data)
            for path, data in edit.files.items()
        }
        # A file that is gone has the mode 0.
        lines = (f"{'100644' if blob else '0'} {blob or '0' * 40}\t{path}\n" for path, blob in blobs.items())
        git("update-index", "--index-info", data="".join(lines).encode())
        tree_id = git("write-tree")
        commit_id = git("commit-tree", tree_id, "-p", parent.commit, "-m", f"bench: {edit.name}")
        return NamedRevision(commit_id, tree_id, edit.name)
