# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes of a kernel's files that no list of an object's inputs shows: names that come and go, makefiles, tools, Kconfig.

Each changes what is built of it, so that an object that was wrongly kept differs.
"""

import random
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from kernels.errors import KernelsError
from kernels.trees.git import git_command
from kernels.trees.tree import NamedRevision, SourceTree, read_file

# Not linked into vmlinux, or not as they are.
_ELSEWHERE = r"arch/x86/(?:boot|purgatory|realmode|entry/vdso|tools)/|scripts/|tools/|usr/"
_LINKER_SCRIPT = "arch/x86/kernel/vmlinux.lds.S"
_MOST_USERS = 60
# The number in the names of a kernel's first change.
FIRST = 1000


@dataclass
class Files:
    """The files of a revision and what was built of it. objects: the base's object directory. changed: new contents by path, None: gone."""

    tree: SourceTree
    base: NamedRevision
    objects: Path
    changed: dict[str, bytes | None] = field(default_factory=dict)

    @cached_property
    def commands(self) -> Mapping[str, str]:
        """The texts of `.cmd` files by the source that they name."""
        texts = (path.read_text(errors="replace") for path in self.objects.rglob(".*.o.cmd"))
        named = (
            (re.search(r"^source_\S+ := /build/linux/(\S+)$", text, re.MULTILINE), text) for text in texts
        )
        found = {match[1]: text for match, text in named if match}
        return {source: found[source] for source in sorted(found) if not re.match(_ELSEWHERE, source)}

    def sources(self, end: str, chance: random.Random) -> Iterator[tuple[str, str, str]]:
        """Yield folder, name without its end, and the folder's makefile, in random order."""
        names = [source for source in self.commands if source.endswith(end)]
        for source in chance.sample(names, len(names)):
            folder, _, name = source.rpartition("/")
            makefile = self.read(f"{folder}/Makefile")
            if makefile and source not in self.changed:
                yield folder, name.removesuffix(end), makefile

    def headers(self, pattern: str, chance: random.Random) -> Iterator[re.Match[str]]:
        """Yield matches of a pattern of paths in what the objects were made of, in random order: those of few objects."""
        counts: dict[str, int] = {}
        for text in self.commands.values():
            for path in set(re.findall(r"^  (?:/build/linux/|\./)?(\S+\.h)", text, re.MULTILINE)):
                counts[path] = counts.get(path, 0) + 1
        names = sorted(
            path for path, count in counts.items() if count <= _MOST_USERS and path not in self.changed
        )
        yield from filter(None, (re.fullmatch(pattern, path) for path in chance.sample(names, len(names))))

    def read(self, path: str) -> str:
        """Return a file's text as changed so far; "" if there is none."""
        try:
            data = (
                self.changed[path] if path in self.changed else read_file(self.tree, self.base.tree_id, path)
            )
        except KernelsError:
            return ""
        return (data or b"").decode(errors="surrogateescape")

    def write(self, path: str, text: str) -> None:
        """Set a file's new text."""
        self.changed[path] = text.encode(errors="surrogateescape")

    def move(self, path: str, to: str, more: str = "") -> None:
        """Rename a file and append to it."""
        self.write(to, self.read(path) + more)
        self.changed[path] = None

    def naming(self, pattern: str) -> list[str]:
        """Return the paths of the unchanged tree's files that match an extended regular expression."""
        return self._git("grep", "-lE", "-e", pattern, self.base.tree_id)

    def below(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder."""
        return self._git("ls-tree", "-r", "--name-only", self.base.tree_id, f"{folder}/")

    def _git(self, *arguments: str) -> list[str]:
        command = git_command(f"--git-dir={self.tree.repository}", *arguments)
        done = subprocess.run(command, capture_output=True, check=False, timeout=600, text=True)
        # git grep ends so where nothing matches.
        if done.returncode > 1:
            raise RuntimeError(done.stderr.strip())
        return [line.removeprefix(f"{self.base.tree_id}:") for line in done.stdout.splitlines()]


def _mark(number: int) -> str:
    name = f"kp_mark_{number}"
    once = f"\n#if !defined(__ASSEMBLY__) && !defined({name})\n#define {name} {name}\n"
    return f"{once}static const int __attribute__((__used__)) {name} = {number};\n#endif\n"


def _source_renamed(files: Files, number: int, chance: random.Random) -> str:
    for folder, stem, makefile in files.sources(".c", chance):
        words = re.findall(rf"(?<![\w-]){re.escape(stem)}(?![\w-])", makefile)
        listed = rf"(?<=[\s=]){re.escape(stem)}\.o(?=\s)"
        if len(words) != 1 or not re.search(listed, makefile) or files.naming(rf'{stem}\.c"'):
            continue
        files.move(f"{folder}/{stem}.c", f"{folder}/{stem}_kp{number}.c", _mark(number))
        files.write(f"{folder}/Makefile", re.sub(listed, f"{stem}_kp{number}.o", makefile))
        return f"{folder}/{stem}.c"
    return ""


def _source_added(files: Files, number: int, chance: random.Random) -> str:
    for folder, _, makefile in files.sources(".c", chance):
        name = f"kp_source_{number}"
        files.write(
            f"{folder}/{name}.c",
            f"int {name}(int a);\nint {name}(int a)\n{{\n\treturn a * {number} + 1;\n}}\n",
        )
        files.write(f"{folder}/Makefile", f"{makefile}\nobj-y += {name}.o\n")
        return f"{folder}/{name}.c"
    return ""


def _header_renamed(files: Files, number: int, chance: random.Random) -> str:
    for match in files.headers(r"include/(linux/[\w/-]+)\.h", chance):
        name, old = match[1], f"{match[1]}.h"
        users = files.naming(re.escape(old))
        if files.read(f"include/uapi/{old}") or any(
            re.match(r"scripts/|tools/(?!testing/)", path) for path in users
        ):
            continue
        for path in users:
            files.write(path, files.read(path).replace(f"<{old}>", f"<{name}_kp{number}.h>"))
        files.move(f"include/{old}", f"include/{name}_kp{number}.h", _mark(number))
        return f"include/{old}"
    return ""


def _header_found_earlier(files: Files, number: int, chance: random.Random) -> str:
    for match in files.headers(r"include/(linux/[\w-]+\.h)", chance):
        text = files.read(match[0])
        if text and not re.search(r'^#\s*include\s*"', text, re.MULTILINE):
            files.write(f"arch/x86/include/{match[1]}", text + _mark(number))
            return f"arch/x86/include/{match[1]}"
    return ""


def _header_no_longer_generic(files: Files, number: int, chance: random.Random) -> str:
    for match in files.headers(r"arch/x86/include/generated/(asm/([\w-]+\.h))", chance):
        if files.read(f"include/asm-generic/{match[2]}"):
            files.write(f"arch/x86/include/{match[1]}", f"#include <asm-generic/{match[2]}>\n{_mark(number)}")
            return f"arch/x86/include/{match[1]}"
    return ""


def _header_no_longer_generated(files: Files, number: int, chance: random.Random) -> str:
    for match in files.headers(r"(?!include/|arch/|init/|scripts/|tools/)\w[\w/-]+\.h", chance):
        made = files.objects / match[0]
        if made.is_file() and not files.read(match[0]):
            files.write(match[0], made.read_text() + _mark(number))
            return match[0]
    return ""


def _flags_of_a_folder(files: Files, _number: int, chance: random.Random) -> str:
    for folder, _, makefile in files.sources(".c", chance):
        files.write(f"{folder}/Makefile", f"{makefile}\nccflags-y += -fno-inline-small-functions\n")
        return f"{folder}/Makefile"
    return ""


def _flags_of_a_file(files: Files, _number: int, chance: random.Random) -> str:
    for folder, stem, makefile in files.sources(".c", chance):
        files.write(f"{folder}/Makefile", f"{makefile}\nCFLAGS_{stem}.o += -O1\n")
        return f"{folder}/Makefile"
    return ""


def _objects_in_another_order(files: Files, _number: int, chance: random.Random) -> str:
    line = re.compile(r"^(obj-y[ \t]*[+:]?=[ \t]*)(\w+\.o(?:[ \t]+\w+\.o)+)$", re.MULTILINE)
    for folder, _, makefile in files.sources(".c", chance):
        if match := line.search(makefile):
            turned = match[1] + " ".join(reversed(match[2].split()))
            files.write(f"{folder}/Makefile", makefile.replace(match[0], turned, 1))
            return f"{folder}/Makefile"
    return ""


def _folder_renamed(files: Files, number: int, chance: random.Random) -> str:
    for folder, _, _ in files.sources(".c", chance):
        parent, _, name = folder.rpartition("/")
        makefile, listed = files.read(f"{parent}/Makefile"), rf"(?<=[\s=]){re.escape(name)}/(?=\s)"
        inside = files.below(folder)
        if not parent or len(re.findall(listed, makefile)) != 1 or any("/Kconfig" in path for path in inside):
            continue
        if files.changed.keys() & set(inside) or files.naming(rf'{parent}/{name}/|include +"[^"]*{name}/'):
            continue
        for path in inside:
            files.move(
                path,
                f"{folder}_kp{number}/{path.removeprefix(folder + '/')}",
                _mark(number) * path.endswith(".c"),
            )
        files.write(f"{parent}/Makefile", re.sub(listed, f"{name}_kp{number}/", makefile))
        return f"{folder}/"
    return ""


def _assembly(files: Files, number: int, chance: random.Random) -> str:
    for folder, stem, _ in files.sources(".S", chance):
        path = f"{folder}/{stem}.S"
        files.write(path, f"{files.read(path)}\n.section .rodata\n.long {number}\n")
        return path
    return ""


def _linker_script(files: Files, number: int, _chance: random.Random) -> str:
    files.write(_LINKER_SCRIPT, f"{files.read(_LINKER_SCRIPT)}\nkp_symbol_{number} = {number};\n")
    return _LINKER_SCRIPT


def _program_that_generates(files: Files, number: int, _chance: random.Random) -> str:
    path, last = "lib/gen_crc32table.c", "\treturn 0;\n}\n"
    text, printed = (
        files.read(path),
        f"static const int __attribute__((__used__)) kp_mark_{number} = {number};",
    )
    if not text.endswith(last) or not (files.objects / "lib/crc32table.h").is_file():
        return ""
    files.write(path, text.removesuffix(last) + f'\tprintf("{printed}\\n");\n{last}')
    return path


def _default_in_kconfig(files: Files, _number: int, _chance: random.Random) -> str:
    path, config = "init/Kconfig", (files.objects / ".config").read_text()
    text = files.read(path)
    match = re.search(r"^config LOG_BUF_SHIFT\n(?:\t[^\n]*\n)*?\tdefault (\d+)\n", text, re.MULTILINE)
    if not match or f"CONFIG_LOG_BUF_SHIFT={match[1]}\n" not in config:
        return ""
    files.write(path, text[: match.start(1)] + str(int(match[1]) + 1) + text[match.end(1) :])
    return path


# Each changes the files where it finds a place for it and returns the place; "" where there is none.
KINDS: Mapping[str, Callable[[Files, int, random.Random], str]] = {
    "source renamed": _source_renamed,
    "source added": _source_added,
    "header renamed": _header_renamed,
    "header found earlier": _header_found_earlier,
    "header no longer generic": _header_no_longer_generic,
    "header no longer generated": _header_no_longer_generated,
    "flags of a folder": _flags_of_a_folder,
    "flags of a file": _flags_of_a_file,
    "objects in another order": _objects_in_another_order,
    "folder renamed": _folder_renamed,
    "assembly": _assembly,
    "linker script": _linker_script,
    "program that generates": _program_that_generates,
    "default in Kconfig": _default_in_kconfig,
}


# These add no symbol to the kernel.
_WITHOUT_SYMBOL = frozenset(
    ("flags of a folder", "flags of a file", "objects in another order", "assembly", "default in Kconfig")
)


def without_effect(kinds: Iterable[str], places: Mapping[str, str], symbols: Iterable[str]) -> list[str]:
    """Return the kinds that found a place but none of whose symbols is in the kernel. symbols: the kernel's that begin with "kp_"."""
    seen = {int(match[1]) for symbol in symbols if (match := re.fullmatch(r"kp_[a-z]+_(\d+)", symbol))}
    return [
        kind
        for number, kind in enumerate(kinds, FIRST)
        if kind in places and kind not in _WITHOUT_SYMBOL and number not in seen
    ]


def change(files: Files, kinds: Iterable[str], chance: random.Random) -> dict[str, str]:
    """Change the files in all these ways, and return the places by kind: those that were found."""
    places = {kind: KINDS[kind](files, number, chance) for number, kind in enumerate(kinds, FIRST)}
    return {kind: place for kind, place in places.items() if place}
