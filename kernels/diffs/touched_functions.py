# SPDX-License-Identifier: GPL-2.0-or-later
"""Name the C functions that a diff touches, from the text of the diff alone.

A hunk's header names the function around it (diff.c of git: the last line that begins with a letter), and definitions
inside it begin and end in the first column, as the kernel's coding style requires. Macros that define a function are not expanded.
"""

import re
from dataclasses import dataclass

from kernels.diffs.unified import Hunk, parse_diff

_SOURCE = (".c", ".h")
_SYSCALL = re.compile(r"(?:COMPAT_)?SYSCALL_DEFINE\d\((\w+)")
# The last name before the parenthesis of a line in the first column: "static int kernfs_link_sibling(struct".
_DEFINITION = re.compile(r"[A-Za-z_][\w\s*]*?\b([A-Za-z_]\w*)\s*\(")
_NO_FUNCTION = re.compile(
    r"(?:EXPORT_\w+|MODULE_\w+|DEFINE_\w+|DECLARE_\w+|typedef|return|else|if|while|for|switch)\b"
)


@dataclass(frozen=True, slots=True)
class TouchedFunction:
    """A function with changed lines. path: its file after the change. hunks: the hunks with such lines, each with its header."""

    path: str
    name: str
    hunks: tuple[str, ...] = ()


def touched_functions(diff: str) -> tuple[TouchedFunction, ...]:
    """Return the functions in which a diff adds or removes lines, each once, in the order of the diff.

    Raises PatchRejected and PatchDamaged as `parse_diff` does.
    """
    by_function: dict[tuple[str, str], list[str]] = {}
    for file in parse_diff(diff):
        if file.path.endswith(_SOURCE):
            for hunk in file.hunks:
                text = "\n".join((hunk.header, *hunk.lines))
                for name in dict.fromkeys(_touched(hunk)):
                    by_function.setdefault((file.path, name), []).append(text)
    return tuple(TouchedFunction(path, name, tuple(hunks)) for (path, name), hunks in by_function.items())


def _touched(hunk: Hunk) -> list[str]:
    names = []
    inside = defined_function(hunk.section)
    for line in hunk.lines:
        mark, text = line[:1], line[1:]
        inside = defined_function(text) or inside
        if mark in {"+", "-"} and inside and text.strip():
            names.append(inside)
        if text.startswith("}"):
            inside = ""
    return names


def defined_function(line: str) -> str:
    """Return the name of the function whose definition a line begins; "" if none. For a system call this is its symbol."""
    if match := _SYSCALL.match(line):
        return f"__do_sys_{match[1]}"
    if line.rstrip().endswith(";") or _NO_FUNCTION.match(line):
        return ""
    match = _DEFINITION.match(line)
    return match[1] if match else ""
