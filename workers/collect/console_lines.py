# SPDX-License-Identifier: GPL-2.0-or-later
"""The lines of a console: what comes before a kernel message, and what must not reach a page or a terminal."""

import re

MAX_LINE = 512
"""Bytes of a line in which a report may begin, and of a report that are read; the kernel's own lines are shorter."""

# [   12.345678], with a level before it and a task or CPU behind it, as printk, journald and phones write them.
STAMP = re.compile(
    rb"(?:<\d{1,3}>)?(?:\[ *\d{1,9}\.\d{1,6}\]|(?<=<\d>)|(?<=<\d\d>))"
    rb" ?(?:\[ *[CT]\d{1,10}\]|(?:\(\d\))?[<(\[] *\d+: ?[^\n\]>)]{1,24}[>)\]])? {0,2}"
)
CALLER = re.compile(rb"\[ *[CT]\d{1,10}\] ?")
SYSLOG = re.compile(
    rb"^(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT[\d:.,+Z-]{8,24}) \S{1,64} "
)
KERNEL_TAG = re.compile(rb"\bkernel(?:\[\d+\])?: ?")
ESCAPE = re.compile(rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|[\]P^_][^\x07\x1b\n]{0,512}(?:\x07|\x1b\\)?|.)")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
# A program's own tag: systemd[1]:, sshd[77]:
PROGRAM = re.compile(rb"(?:^|\s)(?!kernel\b)[A-Za-z][\w.@/-]{0,40}\[\d+\]: ")
# What a message may carry before the words that make it a report: names of subsystems, drivers, devices.
SUBSYSTEM = re.compile(
    rb"(?:[A-Za-z][\w.+/-]{0,40}(?: [\w.:+/()-]{1,40}){0,4}: ?){0,4}(?:[=*!\[-]{1,80} ?)?(?:[kK]ernel )?"
)
QUOTE = re.compile(rb"[\"'`=]")
BREAK = re.compile(rb"\r?\n(?:" + STAMP.pattern + rb")?")


def message_start(head: bytes) -> int:
    """Return the offset in the beginning of a line at which the kernel's message begins: behind its last stamp."""
    start = 0
    for match in STAMP.finditer(head):
        start = match.end()
    for pattern in (CALLER, KERNEL_TAG):
        if prefix := pattern.match(head, start):
            start = prefix.end()
    if start == 0:
        syslog = SYSLOG.match(head)
        tag = KERNEL_TAG.search(head, 0, syslog.end() + 16) if syslog else None
        start = tag.end() if tag else 0
    return start


def may_hold_report(before: bytes) -> bool:
    """Return whether the words after this start of a message are the kernel's, not quoted or a program's."""
    before = ESCAPE.sub(b"", before)
    return not QUOTE.search(before) and not PROGRAM.search(before)


def begins_message(before: bytes) -> bool:
    """Return whether only names of subsystems and separators come before."""
    return (
        SUBSYSTEM.fullmatch(ESCAPE.sub(b"", before).strip(b"\r ") + b" " if before.strip() else b"")
        is not None
    )


def unbroken(text: bytes) -> bytes:
    """Return the first three lines of a piece of console as one: breaks and the prefixes behind them removed."""
    return BREAK.sub(b"", text, count=2)


def readable(text: bytes) -> str:
    """Return console bytes as text without escape sequences, control characters and marks of direction."""
    decoded = ESCAPE.sub(b"", text.replace(b"\r\n", b"\n")).decode(errors="replace")
    return CONTROL.sub("", decoded)
