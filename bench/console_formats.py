# SPDX-License-Identifier: GPL-2.0-or-later
"""Extract from kernel sources every format string that the kernel's report paths can print.

The result is the table that the console rules are tested against (workers/tests/golden/consoles/formats.tsv): one line
a format, with the call and the file that it comes from. Run this over a new kernel to see which formats are new:

    python -m bench.console_formats SOURCE_TREE... [--new-to formats.tsv]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
EVERYWHERE = ("panic",)
CALL = re.compile(
    r"\b(panic|nmi_panic|fortify_panic|printk|printk_once|printk_deferred|printk_ratelimited|printk_safe|_printk"
    r"|pr_(?:emerg|alert|crit|err|warn|notice|info|cont)(?:_once|_ratelimited)?"
    r"|(?:netdev|dev)_(?:emerg|alert|crit|err|warn|WARN)(?:_once|_ratelimited)?"
    r"|WARN(?:_ONCE|_RATELIMIT)?|CHECK_DATA_CORRUPTION|VM_WARN(?:_ONCE)?|RCU_LOCKDEP_WARN|DEBUG_LOCKS_WARN_ON"
    r"|slab_err|slab_bug|object_err|die|die_kernel_fault|__die|report_bug|ubsan_prologue|bad_page|swap_err"
    r"|print_error_description|lockdep_print\w*|__warn|__warn_printk|btrfs_panic|ext4_msg|xfs_alert|xfs_warn|mce_panic"
    r"|seq_buf_printf|sched_bug|no_context|arm64_notify_die|notify_die|debug_object_\w+|handle_panic|verbose_printk)\s*\("
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
            formats.update(formats_of_file(name, path.read_text(errors="replace")))
    return formats


def main() -> int:
    """Print the formats of the trees, or those that a table lacks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", type=Path, nargs="+")
    options = parser.parse_args()
    formats = set().union(*(formats_of_tree(tree) for tree in options.trees))
    for entry in sorted(formats):
        print(entry.path, entry.call, repr(entry.text), sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
