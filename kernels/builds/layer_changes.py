# SPDX-License-Identifier: GPL-2.0-or-later
"""Decide how far make can follow changed files over a finished build, and remove what it would wrongly keep.

make compares the files in an object's list, and the command that made it. It does not know of a file that was found elsewhere,
or of one that is gone, and where a makefile has a rule of its own (`cmd` in place of `if_changed`) not of another command either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path

from kernels.architecture import BUILT
from kernels.sandbox.command import OBJECTS, OUT, SOURCE
from kernels.trees.extract import ChangedFile

_LINK = "120000"


class _Kind(Enum):
    """The effect of a changed path on a build over a layer."""

    APART = "no part of a kernel"
    SOURCE = "C, which the lists of inputs name"
    ASSEMBLY = "followed by make, but not by a sweep"
    KCONFIG = "read for the config alone"
    MAKEFILE = "rules of a folder"
    UNKNOWN = "read by what no list tells"


# The first that matches a whole path; UNKNOWN if none does.
_PATHS = (
    # Names that make, the compiler or a shell's `read` do not take as they are.
    (_Kind.UNKNOWN, r".*[^\w.,+@~=%/-].*"),
    (_Kind.APART, r"Documentation/.*\.(?:rst|txt|yaml)|MAINTAINERS|CREDITS"),
    (_Kind.APART, r"(?:.*/)?(?:README[^/]*|TODO|\.gitignore|\.clang-format)|.*\.(?:md|dtsi?)"),
    (_Kind.UNKNOWN, r"tools/testing/selftests/kselftest_module\.h"),
    (_Kind.APART, r"tools/(?:testing|perf)/.*|scripts/(?:checkpatch|get_maintainer)\.pl"),
    (_Kind.APART, rf"arch/(?!{BUILT.srcarch}/)[^/]+/.*"),
    # Tools and scripts run during the build, and no list says what they had a part in.
    (_Kind.UNKNOWN, r"(?:scripts|tools|arch/[^/]+/tools)/.*"),
    (_Kind.SOURCE, r".*\.[ch]"),
    (_Kind.ASSEMBLY, r".*\.S"),
    (_Kind.KCONFIG, r"(?:.*/)?Kconfig[^/]*"),
    # A whole architecture is built by these, or they say which headers are generated.
    (_Kind.UNKNOWN, r"arch/[^/]+/[^/]+|(?:.*/)?include/.*"),
    (_Kind.MAKEFILE, r".+/(?:Makefile|Kbuild)[^/]*"),
)
_COMPILED = tuple((kind, re.compile(pattern, re.ASCII | re.DOTALL)) for kind, pattern in _PATHS)

# Below OUT, a line each: folders, paths, ends of names; and ends of names that the script adds. kbuild's objects do not miss an input that is
# gone (.SECONDARY in scripts/Kbuild.include).
FOLDERS, PATHS, NAMES, _MORE = "forget-folders", "forget-paths", "forget-names", "forget-more"
# What a makefile's own rules made in such a folder, and below it in folders without a makefile: it has no command beside it (what
# asm-generic made has none either). What was made where a file of the tree came or went. And whatever was made of a file of such a
# name, but the tools, which are made of nothing else.
_FORGET = f"""set -e
while read -r folder
do [ ! -d {OBJECTS}/"$folder" ] || (
    cd {OBJECTS}/"$folder"
    find . -mindepth 1 -type d \\( -path ./include -o -exec sh -c '[ -e "$1/$2/Makefile" ] || [ -e "$1/$2/Kbuild" ]' sh {SOURCE}/"$folder" {{}} \\; \\) -prune \\
        -o -type f ! -name '.*' -exec sh -c 'for made
do [ -e "${{made%/*}}/.${{made##*/}}.cmd" ] || {{ rm -f "$made"; echo "/${{made##*/}}"; }}
done' sh {{}} +
)
done <{OUT}/{FOLDERS} >>{OUT}/{_MORE}
while read -r path
do made={OBJECTS}/$path
   [ ! -f "$made" ] || {{ rm -f "$made" "${{made%/*}}/.${{made##*/}}.cmd"; echo "/${{made##*/}}"; }}
done <{OUT}/{PATHS} >>{OUT}/{_MORE}
cat {OUT}/{NAMES} >>{OUT}/{_MORE}
[ ! -s {OUT}/{_MORE} ] || find {OBJECTS} -mindepth 1 -maxdepth 1 ! -name tools -print0 | xargs -0 grep -rlZFf {OUT}/{_MORE} --include='.*.cmd' |
    xargs -0r sh -c 'for cmd
do made=${{cmd##*/.}}; rm -f "$cmd" "${{cmd%/*}}/${{made%.cmd}}"
done' sh
"""
# Under another config: a symbol whose name is put together (CONFIG_##name) is in no object's list, so what reads such a file is made again.
_PASTED = f"""find {OBJECTS} -name '.*.cmd' -exec cat {{}} + | grep -oE '{SOURCE}/[^ )]+' | sort -u |
    xargs -r grep -lsE 'CONFIG_[A-Za-z0-9_]*[[:blank:]]*##' | sed 's,.*/,/,' >>{OUT}/{_MORE} || :
"""


def forget_script(*, same_config: bool = True) -> str:
    """Return a shell script that removes what make would wrongly keep over a layer, by the lists of write_forgotten."""
    return _FORGET if same_config else _PASTED + _FORGET


def not_followed(changes: Iterable[ChangedFile]) -> str:
    """Return the first changed path after which make, even after forget_script, may make over a layer what it would not from nothing.

    "" if there is none. make can follow changes of C, headers, assembly, makefiles and Kconfig files; not those of the tools of the
    build, the makefile at the top, links, or other files, for a rule may read these without naming them (`wildcard`, `.incbin`).
    """
    for change in changes:
        if change.mode == _LINK or _kind(change.path) is _Kind.UNKNOWN:
            return change.path
    return ""


def can_sweep(paths: Iterable[str], config: str, base_config: str) -> bool:
    """Return whether a sweep sees everything that a variant's changed files can change in an object.

    Objects depend on more than their lists of files say: on the tools of the build, on files that makefiles generate, and with
    CONFIG_MODVERSIONS on types that they only mention. So only C files and headers outside of the tools may have changed, and
    what no kernel is made of.
    """
    return (
        config == base_config
        and "CONFIG_MODVERSIONS=y" not in config.splitlines()
        and all(_kind(path) in (_Kind.SOURCE, _Kind.APART) for path in paths)
    )


def write_forgotten(changes: Sequence[ChangedFile], out: Path) -> None:
    """Write for forget_script what changes that make can follow may leave old. out: the host's directory of OUT."""
    kinds = {change.path: _kind(change.path) for change in changes}
    moved = [
        change.path
        for change in changes
        if (change.added or change.deleted) and kinds[change.path] not in (_Kind.APART, _Kind.KCONFIG)
    ]
    # A makefile's own rules tell nobody that they differ, or that they list one file more or less.
    ruled = [*moved, *(path for path, kind in kinds.items() if kind is _Kind.MAKEFILE)]
    # What is made at the top and below include/, the makefile at the top makes.
    folders = {path.rpartition("/")[0] for path in ruled} - {"", "include"}
    names = {f"/{path.rpartition('/')[2]}" for path in moved}
    for file, lines in ((FOLDERS, folders), (PATHS, moved), (NAMES, names)):
        (out / file).write_text("".join(f"{line}\n" for line in sorted(lines)))


def _kind(path: str) -> _Kind:
    return next((kind for kind, pattern in _COMPILED if pattern.fullmatch(path)), _Kind.UNKNOWN)
