# SPDX-License-Identifier: GPL-2.0-or-later
"""Extract from kernel sources every format string that the kernel's report paths can print.

The result is the table that the console rules are tested against (workers/tests/golden/consoles/formats.tsv): one line
a format, with the call and the file that it comes from. Run this over a new kernel to see which formats are new:

    python -m bench.console_formats SOURCE_TREE... [--new-to formats.tsv]
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bench.command import run
from workers.collect.dmesg import scan_console

REPORT_PATHS = Path(__file__).with_name("console_paths.txt").read_text().splitlines()[1:]
NO_REPORTS = re.compile(r"torture|scale\.c$|test-|selftest|printk/printk\.c$|module/main\.c$|alternative\.c$")
"""Files in those places that print the results of tests and what they were asked for."""
CALL = re.compile(
    r"\b(panic|nmi_panic|fortify_panic|printk|printk_once|printk_deferred|printk_ratelimited|printk_safe|_printk"
    r"|pr_(?:emerg|alert|crit|err|warn)(?:_once|_ratelimited)?"
    r"|(?:netdev|dev)_(?:emerg|alert|crit|err|warn|WARN)(?:_once|_ratelimited)?"
    r"|CHECK_DATA_CORRUPTION|slab_err|slab_bug|object_err|die|die_kernel_fault|__die|ubsan_prologue|mce_panic|btrfs_panic"
    r"|xfs_alert)\s*\("
)
PR_FMT = re.compile(r"^#define\s+pr_fmt\(\w+\)\s+(?:KBUILD_MODNAME\s*)?((?:\"[^\"]*\"\s*)?)\w+", re.M)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|/\*.*?\*/|//[^\n]*', re.S)
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "r": "\r", "'": "'", "a": "\a", "0": "\0"}


@dataclass(frozen=True, slots=True, order=True)
class Format:
    """One format string: the file that prints it, the call and the text with its file's prefix."""

    path: str
    call: str
    text: str


def formats_of_file(path: str, source: str) -> Iterator[Format]:
    """Yield the format strings of all printing calls of one C file."""
    source = COMMENT.sub(lambda match: match[1] or " ", source)
    prefix = PR_FMT.search(source)
    said = STRING.search(prefix[1]) if prefix and prefix[1] else None
    for match in CALL.finditer(source):
        text = first_string(source, match.end())
        if text is None:
            continue
        if said and match[1].startswith("pr_") and match[1] != "pr_cont":
            text = said[1] + text
        yield Format(path, match[1], text)


def first_string(source: str, at: int) -> str | None:
    """Return the first string literal (adjacent ones joined) among the arguments that begin at an offset."""
    depth, pieces = 1, []
    while at < len(source) and depth:
        character = source[at]
        if character == '"':
            literal = STRING.match(source, at)
            if literal is None:
                return None
            pieces.append(literal[1])
            at = literal.end()
            continue
        if pieces and not character.isspace():
            word = re.match(r"[A-Za-z_]\w*", source[at:])
            if word is None:
                break
            pieces.append(MACROS.get(word[0], ""))
            at += word.end()
            continue
        depth += (character == "(") - (character == ")")
        if character in ";{":
            return None
        at += 1
    text = "".join(pieces)
    return re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[1]), text) if pieces else None


MACROS = {"PRIu64": "llu", "FW_BUG": "[Firmware Bug]: "}


def formats_of_tree(tree: Path) -> set[Format]:
    """Return the formats of the report paths of one kernel tree."""
    formats: set[Format] = set()
    for pattern in REPORT_PATHS:
        for path in sorted(tree.glob(pattern)):
            name = path.relative_to(tree).as_posix()
            if NO_REPORTS.search(name):
                continue
            formats.update(formats_of_file(name, path.read_text(errors="replace")))
    return formats


CONVERSION = re.compile(
    r"%([-+ #0]*)(\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|t|j|L)?([diuxXcsp%])([A-Za-z]{0,4}[0-9]?)"
)
POINTERS = {
    "S": "do_sync+0x12/0x340",
    "B": "do_sync+0x12/0x340",
    "s": "do_sync",
    "V": "a text",
    "b": "0-1",
    "d": "name",
}
# What the macros and functions of a call print around the string that they are given.
FRAMES = {
    "panic": "Kernel panic - not syncing: {}",
    "nmi_panic": "Kernel panic - not syncing: {}",
    "mce_panic": "Kernel panic - not syncing: {}",
    "btrfs_panic": "Kernel panic - not syncing: {}",
    "die_kernel_fault": "Unable to handle kernel {} at virtual address dead000000000100",
    "slab_err": "BUG kmalloc-64 (Tainted: G    B): {}",
    "slab_bug": "BUG kmalloc-64 (Not tainted): {}",
    "object_err": "BUG kmalloc-64 (Not tainted): {}",
    "ubsan_prologue": "UBSAN: {} in lib/sort.c:7:9",
    "xfs_alert": "XFS (loop0): {}",
}
DIES = {
    "arm": "Internal error: {}: 805 [#1] SMP ARM",
    "arm64": "Internal error: {}: 0000000096000004 [#1] SMP",
}
DIES |= {"riscv": "{} [#1]", "x86": "{}: 0000 [#1] PREEMPT SMP"}


def printed(entry: Format) -> str:
    """Return a line as the kernel would print it from a format, with values made up."""
    text = CONVERSION.sub(_value, entry.text).strip("\n")
    frame = FRAMES.get(entry.call, "{}")
    if entry.call in {"die", "__die"}:
        frame = DIES[entry.path.split("/")[1]]
    if entry.call.startswith("netdev_"):
        frame = "e1000 0000:00:02.0 eth0: {}"
    return frame.format(text.strip("\n"))


def _value(conversion: re.Match[str]) -> str:
    flags, width, kind, more = conversion.groups()
    if kind == "p":
        return POINTERS.get(more[:1], "ffff888012345678") if more[:1] != "x" else "ffff888012345678"
    if kind == "%":
        return "%" + more
    digits = int(width) if width and width.isdigit() and "0" in flags else 1
    value = {"c": "x", "s": "some_name", "x": "0", "X": "0"}.get(kind, "1")
    return ("0x" if "#" in flags and kind == "x" else "") + value.rjust(digits, "0") + more


def table(formats: Iterable[Format]) -> str:
    """Return the formats with the kind that each one counts as, "-" for none, one a line and tabs between.

    The kinds are what the rules say today: a person must read a new line before it is committed.
    """
    rows = []
    for entry in sorted(formats):
        findings = scan_console(printed(entry).encode() + b"\n")
        kind = findings[0].kind if findings else "-"
        rows.append("\t".join((kind, entry.path, entry.call, json.dumps(entry.text))))
    return "\n".join(rows) + "\n"


def read_table(text: str) -> dict[Format, str]:
    """Return the kind of each format of a table, "-" for none."""
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {Format(path, call, json.loads(quoted)): kind for kind, path, call, quoted in rows}


def main(trees: list[Path], new_to: Annotated[Path | None, typer.Option(metavar="TABLE")] = None) -> None:
    """Print the formats of the trees with their kinds, or only those that a table lacks."""
    formats = set().union(*(formats_of_tree(tree) for tree in trees))
    known = read_table(new_to.read_text()).keys() if new_to else set()
    sys.stdout.write(table(entry for entry in formats - known if any(map(str.isalpha, entry.text))))


if __name__ == "__main__":
    run(main)
