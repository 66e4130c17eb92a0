# SPDX-License-Identifier: GPL-2.0-or-later
"""Call the kernel's build, and read its output."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernels.architecture import BUILT
from kernels.builds.toolchain import Toolchain
from kernels.sandbox.command import OBJECTS, OUT, SOURCE

# Line tables only: enough to name file and line of an oops, at a fifth of the size of -g.
FLAGS = ("KCFLAGS=-g1",)

# Nothing of this machine or this day may affect the bytes. LC_ALL: for the order of wildcards.
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin",
    "HOME": "/tmp",  # noqa: S108 - a tmpfs of the sandbox alone
    "LC_ALL": "C",
    "TZ": "UTC",
    "SOURCE_DATE_EPOCH": "1700000000",
    "KBUILD_BUILD_TIMESTAMP": "Tue Nov 14 22:13:20 UTC 2023",
    "KBUILD_BUILD_VERSION": "1",
    "KBUILD_BUILD_USER": "kperflab",
    "KBUILD_BUILD_HOST": "kperflab",
}

# Directories below OUT: two for input, one for output.
FRAGMENTS, EXTERNAL, HANDOUT = "fragments", "external", "artifact"

# Writes the base config and lays the fragments over it, in the order of their names.
CONFIG_SCRIPT = f"""set -e
target=$1; shift
make -C {SOURCE} O={OBJECTS} --no-print-directory "$@" "$target"
if [ -n "$(ls {OUT}/{FRAGMENTS})" ]
then {SOURCE}/scripts/kconfig/merge_config.sh -m -O {OBJECTS} {OBJECTS}/.config {OUT}/{FRAGMENTS}/*.config
fi
make -C {SOURCE} O={OBJECTS} --no-print-directory "$@" olddefconfig
"""

# Builds everything, then each external module, then copies what is wanted, flat, into the one
# directory that is read from outside. modules.order names objects since 6.3, modules before; without CONFIG_MODULES the one
# that lies there is the base's.
BUILD_SCRIPT = f"""set -e
cores=$1; shift
make -C {SOURCE} O={OBJECTS} --no-print-directory -j "$cores" "$@" all
for module in {OUT}/{EXTERNAL}/*/
do
    [ -d "$module" ] || continue
    make -C {SOURCE} O={OBJECTS} --no-print-directory -j "$cores" "$@" M="${{module%/}}" modules
done
mkdir {OUT}/{HANDOUT} {OUT}/{HANDOUT}/modules
cp vmlinux System.map {BUILT.image_path} {OUT}/{HANDOUT}/
objcopy --strip-all vmlinux {OUT}/{HANDOUT}/vmlinux.boot
if grep -qx CONFIG_MODULES=y .config
then sed 's/\\.o$/.ko/' modules.order | while read -r module
     do cp "$module" {OUT}/{HANDOUT}/modules/
     done
fi
find {OUT}/{EXTERNAL} -name '*.ko' -exec cp -t {OUT}/{HANDOUT}/modules/ {{}} +
"""

# Copies all objects of a build over a layer, those of the layer among them, into one directory.
KEPT = "objects"
KEEP_SCRIPT = f"mkdir {OUT}/{KEPT}\ncp -a {OBJECTS}/. {OUT}/{KEPT}/\n"

_STEP = re.compile(r"  (?:[A-Z][A-Z0-9_]*)(?: \[M\])?\s+\S")
_COMPILER = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: .*")
# Other errors that end a build, the most specific first: limits of the sandbox, linker, modpost, make.
_OTHER = tuple(
    re.compile(pattern)
    for pattern in (
        r".*(?:No space left on device|[Cc]annot allocate memory|out of memory allocating|memory exhausted).*",
        r".* signal terminated program .*",
        r".*undefined reference to .*",
        r".*multiple definition of .*",
        r"ERROR: modpost: .*",
        r"\S*ld: .*",
        r".*\berror: .*",
        r"make(?:\[\d+\])?: \*\*\* .*",
    )
)


def make_flags(toolchain: Toolchain) -> tuple[str, ...]:
    """Return the make variables that are part of every build's key."""
    return (*FLAGS, f"CC={toolchain.cc}")


def is_step(line: str) -> bool:
    """Return whether a line of make's output reports one finished object, such as "  CC      fs/inode.o"."""
    return bool(_STEP.match(line))


def is_error(line: str) -> bool:
    """Return whether a line may be the reason for a failed build."""
    stripped = line.strip()
    return any(pattern.fullmatch(stripped) for pattern in (_COMPILER, *_OTHER))


def first_error(lines: Iterable[str]) -> str:
    """Return the line that says why a build failed: the compiler's first, else the linker's, else make's.

    Paths are relative to the root of the tree. "" when no line looks like an error.
    """
    rest = [line.replace(f"{SOURCE}/", "").replace(f"{OUT}/{EXTERNAL}/", "").strip() for line in lines]
    for pattern in (_COMPILER, *_OTHER):
        for line in rest:
            if pattern.fullmatch(line):
                return line[:400]
    return ""
