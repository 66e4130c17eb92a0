# SPDX-License-Identifier: GPL-2.0-or-later
"""The forms of the kernel's reports, by the literal that each form contains.

The forms come from the kernel's sources (bench/console_formats.py extracts them; golden/consoles/formats.tsv pins what
each one counts as), from 4.x to 6.19, x86, arm, arm64, riscv and the generic code. A literal is searched for in the
whole console, so there are few of them; the patterns are tried only where a literal is, at the literal itself.
"""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "panic",
    "oops",
    "gpf",
    "bug",
    "memory",
    "lockup",
    "hung-task",
    "rcu-stall",
    "locking",
    "warning",
    "leak",
    "oom",
    "fs",
    "net",
    "hardware",
    "reboot",
    "more",
]
Place = Literal["anywhere", "start", "traced"]


@dataclass(frozen=True, slots=True)
class Form:
    """One form of report: its kind, how it reads from its literal on, and where in a message the literal may be.

    place: "anywhere" in a kernel message; "start" after at most a subsystem's name; "traced" like start, and only if a
    stack follows, for words that drivers use for mere notices as well. whole: the title is the whole message.
    """

    kind: Kind
    pattern: re.Pattern[bytes]
    place: Place = "anywhere"
    whole: bool = False


def _form(kind: Kind, pattern: bytes, place: Place = "anywhere", whole: bool = False) -> Form:
    return Form(kind, re.compile(pattern), place, whole)


# A task's name: up to 15 bytes of anything, and the line breaks in it come with the console's own prefixes.
COMM = rb".{0,48}?"
LOCKDEP = (
    rb"possible (?:circular |recursive |irq |deadlock)|suspicious RCU usage|suspicious rcu_dereference"
    rb"|inconsistent (?:\{[^}]{1,40}\} )?lock|bad unlock balance|bad contention|held lock freed|lock held (?:when|at)"
    rb"|Nested lock was not taken|chain_key collision|\S{1,20}-safe -> \S{1,20}-(?:un)?safe lock"
    rb"|" + COMM + rb"/\d+ (?:still has locks held|is leaving the kernel with locks|is exiting with locks)"
    rb"|[Ii]nvalid wait context|possible reason|deadlock detected|circular locking deadlock|"
    + COMM
    + rb" circular locking deadlock"
)
SANITIZERS = rb"BUG: (?:KASAN|KCSAN|KMSAN|KFENCE|KTSAN|KHWASAN)[ :]"

FORMS: dict[bytes, tuple[Form, ...]] = {
    b"Kernel panic": (
        _form("panic", rb"Kernel panic - not syncing"),
        _form("panic", rb"Kernel panic: ", "start"),
    ),
    b"BUG": (
        _form("memory", SANITIZERS),
        _form("memory", rb"BUG: Bad (?:page|rss|swap)|BUG: non-zero (?:pgtables_bytes|nr_ptes|nr_pmds)"),
        _form("memory", rb"BUG [^\n:()]{1,80} \([^()\n]{3,60}\): "),
        _form("leak", rb"BUG: memory leak"),
        _form(
            "lockup", rb"BUG: (?:soft|workqueue|spinlock|rwlock|write-lock|hard) ?lockup|BUG: spinlock lockup"
        ),
        _form(
            "oops",
            rb"BUG: (?:[uU]nable to handle|[kK]ernel NULL pointer|" + COMM + rb"stack guard page was hit)",
        ),
        _form(
            "locking",
            rb"BUG: (?:sleeping function|scheduling (?:while atomic|in a non)|using \S+ in preempt)",
        ),
        _form(
            "locking", rb"BUG: (?:spinlock|rwlock|assuming |key \S+ has not been|looking up invalid subclass)"
        ),
        _form(
            "locking",
            rb"BUG: (?:MAX_\w+ too low|workqueue leaked|bad unlock|held lock|lock held|\S+ still has)",
        ),
        _form("locking", rb"BUG: (?:" + LOCKDEP + rb")"),
        _form("bug", rb"BUG at (?:\[[^\n]{1,300}\] )?\S+:\d+|BUG at \S+ \[verbose debug info unavailable\]"),
        _form("bug", rb"BUG at (?:0x)?[0-9a-f]{8,16}|BUG at \w[\w.]*\+0x|BUG at [\w./-]+\.[chS]\b"),
        _form("bug", rb"BUG: failure at \S+:\d+|BUG: Dentry "),
        _form("bug", rb"BUG: [A-Za-z%_][^\n]{2,}", "start"),
    ),
    b"WARNING": (
        _form("warning", rb"WARNING: CPU: ?\d+ PID: ?\d+ at \S|WARNING: at \S"),
        _form("warning", rb"WARNING: (?:\[[^\n]{1,400}\] )?[\w./+-]+:\d+ at \S"),
        _form("locking", rb"WARNING: (?:" + LOCKDEP + rb")"),
        _form(
            "warning", rb"WARNING: kernel stack (?:regs|frame pointer) at|WARNING: (?:zero-size|can't access)"
        ),
        _form("warning", rb"WARNING: (?:stack going in the wrong direction|unrecognized unwind stack type)"),
        _form("warning", rb"WARNING: [^\n]{3,}", "traced"),
    ),
    b"INFO:": (
        _form(
            "hung-task",
            rb"INFO: task " + COMM + rb":\d+ (?:blocked (?:for more than|in I/O wait)|can't die for)",
        ),
        _form("hung-task", rb"INFO: task " + COMM + rb":\d+ (?:<\w+> )?(?:is )?blocked on an? "),
        _form(
            "rcu-stall",
            rb"INFO: \w{1,24} (?:self-)?detected (?:expedited )?stall(?!s? ended)(?:s| on CPU|\?|,)",
        ),
        _form("rcu-stall", rb"INFO: rcu\w* (?:detected|self-detected)"),
        _form("locking", rb"INFO: (?:trying to register non-static key|" + LOCKDEP + rb")"),
        _form("memory", rb"INFO: (?:0x[0-9a-f(]|Allocated in|Freed in|Slab 0x|Object 0x|slab )"),
        _form("memory", rb"INFO: (?:Freed|Allocated|Slab|Object) "),
        _form("warning", rb"INFO: (?!NMI handler|lockdep is|Stall ended)[^\n]{3,}", "traced"),
    ),
    b"Oops": (
        _form("gpf", rb"Oops: general protection fault"),
        _form("oops", rb"Oops(?:: | - |\[#)"),
    ),
    b"Internal error": (
        _form("oops", rb"Internal error: "),
        _form("fs", rb"Internal error \S[^\n]{0,80} at line \d+ of file"),
    ),
    b"Unable to handle kernel": (_form("oops", rb""),),
    b"Unhandled ": (_form("oops", rb"Unhandled (?:fault|prefetch abort): [^\n]{1,80}0x[0-9a-f]"),),
    b"general protection fault": (
        _form(
            "gpf", rb"general protection fault, (?:probably|maybe) |general protection fault: [0-9a-f]{4} \["
        ),
    ),
    b"PANIC: ": (_form("panic", rb"PANIC: (?:double fault|early exception|early page fault)"),),
    b"LOCKUP": (_form("lockup", rb"LOCKUP (?:on cpu|@|other CPUs)", whole=True),),
    b"UBSAN: ": (_form("memory", rb"UBSAN: [A-Za-z][\w -]{2,40} in "),),
    b"KASAN: ": (_form("memory", rb"KASAN: [a-z][\w -]{3,48} in range \["),),
    b"refcount_t: ": (_form("memory", rb"refcount_t: (?:underflow|addition|increment|decrement|saturated)"),),
    b"corruption": (
        _form("memory", rb"(?<=list_add )corruption|(?<=list_del )corruption", whole=True),
        _form("memory", rb"corruption(?: \([^)\n]{1,60}\))?: [^\n]{0,40}start=", whole=True),
        _form("memory", rb"(?<=pagealloc: memory )corruption", whole=True),
        _form("fs", rb"corruption detected at ", whole=True),
    ),
    b"Corruption ": (_form("fs", rb"Corruption (?:detected\. Unmount|of in-memory data)", whole=True),),
    b"unreferenced object": (_form("leak", rb"unreferenced object (?:\(percpu\) )?0x"),),
    b"kmemleak: ": (_form("leak", rb"kmemleak: \d+ new suspected memory leaks"),),
    b"ut of memory: Kill": (_form("oom", rb"", whole=True),),
    b"Busy inodes after": (_form("fs", rb"", whole=True),),
    b"-fs error (": (_form("fs", rb"-fs error \(device ", whole=True),),
    b"BTRFS": (_form("fs", rb"BTRFS: (?:error|Transaction aborted) \(|BTRFS critical \("),),
    b"unregister_netdevice: ": (_form("net", rb"unregister_netdevice: waiting for "),),
    b"transmit queue": (_form("net", rb"transmit queue \d+ timed out", whole=True),),
    b"hw csum fail": (_form("net", rb"", whole=True),),
    b"nobody cared": (_form("hardware", rb"nobody cared \(try booting", whole=True),),
    b"[Hardware Error]": (
        _form(
            "hardware",
            rb"\[Hardware Error\]: (?:CPU \d+: Machine Check|Machine check: |event severity: fatal)",
        ),
    ),
    b"Bad swap": (_form("memory", rb"Bad swap (?:file entry|offset entry)|Bad swap offset", whole=True),),
    b"RTNL: ": (_form("warning", rb"RTNL: assertion failed at "),),
    b"CSD lock": (_form("lockup", rb"CSD lock \(#\d+\)", whole=True),),
    b": bad p": (_form("memory", rb": bad (?:pgd|p4d|pud|pmd|pte) [0-9a-fx(]", whole=True),),
    b"list_add double": (_form("memory", rb"list_add double add: "),),
    b"slab error in ": (_form("memory", rb""),),
    b"double free detected": (_form("memory", rb"double free detected in (?:cache|object)", whole=True),),
    b"detected buffer over": (_form("memory", rb"detected buffer overflow in ", whole=True),),
    b" attempt detected": (
        _form("memory", rb"(?<=exposure) attempt detected |(?<=overwrite) attempt detected ", whole=True),
    ),
    b"Bad mode in ": (_form("oops", rb"Bad mode in .{1,40} handler detected"),),
    b"Insufficient stack": (_form("oops", rb"Insufficient stack space to handle exception"),),
    b"Corrupted page table": (_form("oops", rb"Corrupted page table at address ", whole=True),),
    b"Fixing recursive fault": (_form("oops", rb"Fixing recursive fault but reboot is needed"),),
    b"Division by zero": (_form("warning", rb"Division by zero in kernel"),),
    b"unchecked MSR": (_form("warning", rb"unchecked MSR access error: "),),
    b"duplicate filename": (_form("warning", rb"(?<=cannot create )duplicate filename '/", whole=True),),
    b"an initialized object": (_form("warning", rb"an initialized object, something is", whole=True),),
    b"kthread starved for": (_form("rcu-stall", rb"kthread starved for \d+ jiffies", whole=True),),
    b"Aborting journal": (_form("fs", rb"Aborting journal on device "),),
    b"SError Interrupt": (_form("hardware", rb"SError Interrupt on CPU"),),
    b"Memory failure: ": (_form("hardware", rb"Memory failure: 0x"),),
    b"severity=Uncorrect": (
        _form("hardware", rb"severity=Uncorrect(?:ed|able) \((?:Fatal|Non-Fatal)\)", whole=True),
    ),
    # Last: what another literal says about the same line is more precise.
    b"[#": (
        _form("oops", rb"(?<= [0-9a-f]{4} )\[#\d+\]|(?<=: [0-9a-f] )\[#\d+\]", whole=True),
        _form("oops", rb"(?<=[0-9a-f]{8} )\[#\d+\]|(?<=Oops )\[#\d+\]|(?<=BUG )\[#\d+\]", whole=True),
        _form("oops", rb"(?<=sig: \d )\[#\d+\]|(?<=sig: \d\d )\[#\d+\]|(?<=ilc:\d )\[#\d+\]", whole=True),
        _form("oops", rb"(?<=[a-z])\[#\d+\]:|(?<=[a-z] )\[#\d+\]$", whole=True),
    ),
}

PAIRS: dict[bytes, bytes] = {
    b"Kernel panic": b"Ke",
    b"BUG": b"UG",
    b"WARNING": b"WA",
    b"INFO:": b"O:",
    b"Oops": b"Oo",
    b"Internal error": b"In",
    b"Unable to handle kernel": b"Un",
    b"Unhandled ": b"nh",
    b"general protection fault": b"lt",
    b"PANIC: ": b"C:",
    b"LOCKUP": b"KU",
    b"UBSAN: ": b"UB",
    b"KASAN: ": b"N:",
    b"refcount_t: ": b"t:",
    b"corruption": b"rr",
    b"Corruption ": b"rr",
    b"unreferenced object": b"nr",
    b"kmemleak: ": b"ml",
    b"ut of memory: Kill": b"Ki",
    b"Busy inodes after": b"Bu",
    b"-fs error (": b"-f",
    b"BTRFS": b"RF",
    b"unregister_netdevice: ": b"nr",
    b"transmit queue": b" q",
    b"hw csum fail": b"w ",
    b"nobody cared": b"dy",
    b"[Hardware Error]": b"Er",
    b"Bad swap": b"Ba",
    b"RTNL: ": b"TN",
    b"CSD lock": b"SD",
    b"[#": b"[#",
    b": bad p": b"ba",
    b"list_add double": b"ub",
    b"slab error in ": b"sl",
    b"double free detected": b"ub",
    b"detected buffer over": b"uf",
    b" attempt detected": b"tt",
    b"Bad mode in ": b"Ba",
    b"Insufficient stack": b"In",
    b"Corrupted page table": b"rr",
    b"Fixing recursive fault": b"Fi",
    b"Division by zero": b"Di",
    b"unchecked MSR": b"MS",
    b"duplicate filename": b"pl",
    b"an initialized object": b"ia",
    b"kthread starved for": b"kt",
    b"Aborting journal": b"Ab",
    b"SError Interrupt": b"SE",
    b"Memory failure: ": b"Me",
    b"severity=Uncorrect": b"=U",
}
"""The two bytes of each literal that are rarest in consoles; see console_search."""
