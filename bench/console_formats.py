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

REPORT_PATHS = (
    "arch/arm/kernel/traps.c",
    "arch/arm/mm/fault.c",
    "arch/arm64/kernel/traps.c",
    "arch/arm64/mm/fault.c",
    "arch/riscv/kernel/traps.c",
    "arch/riscv/mm/fault.c",
    "arch/x86/entry/*.c",
    "arch/x86/kernel/doublefault_32.c",
    "arch/x86/kernel/dumpstack*.c",
    "arch/x86/kernel/irq_*.c",
    "arch/x86/kernel/traps.c",
    "arch/x86/kernel/unwind_*.c",
    "arch/x86/mm/fault.c",
    "arch/x86/mm/extable.c",
    "arch/x86/mm/kmmio.c",
    "fs/buffer.c",
    "fs/dcache.c",
    "fs/ext4/super.c",
    "fs/inode.c",
    "fs/super.c",
    "include/linux/ucopysize.h",
    "kernel/bpf/core.c",
    "kernel/cpu.c",
    "kernel/exit.c",
    "kernel/hung_task.c",
    "kernel/irq/spurious.c",
    "kernel/kcsan/report.c",
    "kernel/kprobes.c",
    "kernel/locking/*.c",
    "kernel/locking/*.h",
    "kernel/panic.c",
    "kernel/printk/printk.c",
    "kernel/rcu/*.c",
    "kernel/rcu/*.h",
    "kernel/sched/core.c",
    "kernel/sched/debug.c",
    "kernel/softirq.c",
    "kernel/time/timer.c",
    "kernel/time/clocksource.c",
    "kernel/watchdog*.c",
    "kernel/workqueue.c",
    "lib/bug.c",
    "lib/debugobjects.c",
    "lib/fault-inject.c",
    "lib/iomap.c",
    "lib/kobject.c",
    "lib/list_debug.c",
    "lib/nmi_backtrace.c",
    "lib/percpu-refcount.c",
    "lib/plist.c",
    "lib/refcount.c",
    "lib/smp_processor_id.c",
    "lib/string_helpers.c",
    "lib/ubsan.c",
    "mm/debug.c",
    "mm/debug_vm_pgtable.c",
    "mm/kasan/*.c",
    "mm/kfence/*.c",
    "mm/kmemleak.c",
    "mm/kmsan/report.c",
    "mm/memory.c",
    "mm/oom_kill.c",
    "mm/page_alloc.c",
    "mm/page_poison.c",
    "mm/page_table_check.c",
    "mm/slab.c",
    "mm/slab.h",
    "mm/slab_common.c",
    "mm/slub.c",
    "mm/swapfile.c",
    "mm/usercopy.c",
    "mm/util.c",
    "mm/vmalloc.c",
    "kernel/fork.c",
    "net/core/dev.c",
    "net/core/dst.c",
    "net/core/ref_tracker.c",
    "net/sched/sch_generic.c",
    "lib/ref_tracker.c",
    "arch/x86/kernel/cpu/mce/core.c",
    "arch/x86/kernel/nmi.c",
    "arch/x86/kernel/cet.c",
    "arch/x86/kernel/alternative.c",
    "kernel/module/main.c",
    "block/blk-core.c",
    "fs/jbd2/journal.c",
    "fs/xfs/xfs_error.c",
    "fs/xfs/xfs_fsops.c",
    "fs/btrfs/messages.c",
    "security/integrity/ima/ima_main.c",
)
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
        found = scan_console(printed(entry).encode() + b"\n")
        kind = found[0].kind if found else "-"
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
