# SPDX-License-Identifier: GPL-2.0-or-later
"""Small C files, diffs between them, and what archives and mailers do to such diffs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from difflib import unified_diff
from pathlib import Path

from kernels.errors import UnknownPath

POOL_C = """\
// SPDX-License-Identifier: GPL-2.0
/*
 * A pool of tickets, just big enough to be worth a patch.
 */
#include "pool.h"

#define POOL_SHIFT\t4
#define POOL_SIZE\t(1 << POOL_SHIFT)

static DEFINE_SPINLOCK(pool_lock);

static struct ticket *pool_find(struct pool *pool,
\t\t\t\tunsigned long number)
{
\tstruct ticket *ticket;

\tlist_for_each_entry(ticket, &pool->tickets, link) {
\t\tif (ticket->number != number)
\t\t\tcontinue;
\t\tif (ticket->state == TICKET_DEAD)
\t\t\treturn NULL;
\t\treturn ticket;
\t}
\treturn NULL;
}

struct ticket *pool_take(struct pool *pool, unsigned long number)
{
\tstruct ticket *ticket;

\tspin_lock(&pool_lock);
\tticket = pool_find(pool, number);
\tif (ticket)
\t\tticket->users++;
\tspin_unlock(&pool_lock);

\treturn ticket;
}

void pool_drop(struct ticket *ticket)
{
\tspin_lock(&pool_lock);
\tif (!--ticket->users)
\t\tticket->state = TICKET_DEAD;
\tspin_unlock(&pool_lock);
}

int pool_count(struct pool *pool)
{
\tstruct ticket *ticket;
\tint count = 0;

\tlist_for_each_entry(ticket, &pool->tickets, link)
\t\tcount++;

\treturn count;
}
"""

POOL_C_AFTER = """\
// SPDX-License-Identifier: GPL-2.0
/*
 * A pool of tickets, just big enough to be worth a patch.
 */
#include "pool.h"

#define POOL_SHIFT\t4
#define POOL_SIZE\t(1 << POOL_SHIFT)

static DEFINE_SPINLOCK(pool_lock);

static struct ticket *pool_find(struct pool *pool,
\t\t\t\tunsigned long number, bool locked)
{
\tstruct ticket *ticket;

\tif (locked)
\t\tlockdep_assert_held(&pool_lock);
\telse
\t\trcu_read_lock();

again:
\tlist_for_each_entry_rcu(ticket, &pool->tickets, link) {
\t\tif (ticket->number != number)
\t\t\tcontinue;
\t\tif (ticket->state == TICKET_DEAD)
\t\t\tgoto again;
\t\treturn ticket;
\t}
\treturn NULL;
}

/**
 * pool_peek - look at a ticket without taking it
 * @pool: where to look
 *
 * The ticket may be gone at any moment.
 */
struct ticket *pool_peek(struct pool *pool, unsigned long number)
{
\tif (number > POOL_SIZE &&
\t    !pool->large) {
\t\tpr_warn("pool: %lu is out of range\\n",
\t\t\tnumber);
\t\treturn NULL;
\t}

\tswitch (pool->kind) {
\tcase POOL_PLAIN:
\t\treturn pool_find(pool, number, false);
\tdefault:
\t\tbreak;
\t}

\treturn NULL;
}

struct ticket *pool_take(struct pool *pool, unsigned long number)
{
\tstruct ticket *ticket;

\tspin_lock(&pool_lock);
\tticket = pool_find(pool, number, true);
\tif (ticket)
\t\tticket->users++;
\tspin_unlock(&pool_lock);

\treturn ticket;
}

void pool_drop(struct ticket *ticket)
{
\tif (ticket->number)
\t\tspin_lock(&pool_lock);
\tif (!--ticket->users)
\t\tticket->state = TICKET_DEAD;
\tspin_unlock(&pool_lock);
}

int pool_count(struct pool *pool)
{
\tstruct ticket *ticket;
\tint count = 0;

\tlist_for_each_entry(ticket, &pool->tickets, link)
\t\tcount++;

\treturn count;
}
"""

POOL_H = """\
/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _POOL_H
#define _POOL_H

struct pool {
\tstruct list_head\ttickets;
\tbool\t\t\tlarge;
};

struct ticket *pool_take(struct pool *pool, unsigned long number);
void pool_drop(struct ticket *ticket);

#endif
"""

POOL_H_AFTER = POOL_H.replace("\tbool\t\t\tlarge;\n", "\tbool\t\t\tlarge;\n\tint kind;\n").replace(
    "void pool_drop", "struct ticket *pool_peek(struct pool *pool, unsigned long number);\nvoid pool_drop"
)

BEFORE = {"lib/pool.c": POOL_C, "lib/pool.h": POOL_H}
AFTER = {"lib/pool.c": POOL_C_AFTER, "lib/pool.h": POOL_H_AFTER}

HEAD = """\
[PATCH v4] pool: look before taking

From: Ada Lovelace
Date: Tue Jun 11 2024 - 13:41:17 EST

Taking a ticket costs a lock,
looking at one should not.

Signed-off-by: Ada Lovelace <ada@xxxxxxxxxxx>
---
"""
TAIL = "-- \n2.43.0\n"


def reader(files: Mapping[str, str]) -> Callable[[str], bytes]:
    """A base of these files."""

    def read(path: str) -> bytes:
        if path not in files:
            raise UnknownPath(f"no {path}")
        return files[path].encode()

    return read


def diff_of(before: Mapping[str, str], after: Mapping[str, str], context: int = 3) -> str:
    """Return git's diff of the change, with the function's name in the hunk headers."""
    out = []
    for path in before:
        old, new = before[path].split("\n")[:-1], after[path].split("\n")[:-1]
        lines = list(unified_diff(old, new, f"a/{path}", f"b/{path}", n=context, lineterm=""))
        if lines:
            out += [f"diff --git a/{path} b/{path}", "index 3a41f83a4ba5..8c57cea7bbbb 100644"]
            out += [_with_function(line, old) for line in lines]
    return "".join(line + "\n" for line in out)


def _with_function(line: str, old: list[str]) -> str:
    match = re.match(r"@@ -(\d+)", line)
    if not match:
        return line
    above = [name for name in old[: max(int(match[1]) - 1, 0)] if re.match(r"[A-Za-z_$]", name)]
    return f"{line} {above[-1][:80]}" if above else line


def stripped(text: str) -> str:
    """As most archives show a mail: no leading blanks, every run of blanks a single one."""
    return "".join(" ".join(line.split(" ")).strip() + "\n" for line in _collapsed(text).split("\n")[:-1])


def quoted_in_one_line(text: str) -> str:
    """As a reply whose line ends are lost: only the quote marks tell where lines began."""
    return " ".join(f"> {line.strip()}" for line in _collapsed(text).split("\n")[:-1])


def in_one_line(text: str) -> str:
    """As a page where neither line ends nor quote marks are left."""
    return " ".join(text.split())


def wrapped(text: str, width: int) -> str:
    """As a mailer breaks long lines, which loses the first character's meaning for the second half."""
    out = []
    for line in text.split("\n"):
        while (
            len(line) > width
            and " " in line[1:width]
            and not line.startswith(("diff ", "--- ", "+++ ", "index "))
        ):
            cut = line.rindex(" ", 1, width)
            out.append(line[:cut])
            line = line[cut + 1 :]
        out.append(line)
    return "\n".join(out)


def _collapsed(text: str) -> str:
    return re.sub(r"[ \t]+", " ", text)


def applied(diff: str, files: Mapping[str, str], directory: Path) -> dict[str, str]:
    """The files after `git apply`, which has to accept the diff as it is."""
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text, newline="")
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        input=diff.encode(),
        cwd=directory,
        env={
            "PATH": "/usr/bin:/bin",
            "GIT_CEILING_DIRECTORIES": str(directory.parent),
            "HOME": str(directory),
        },
        check=True,
        timeout=30,
    )
    return {path: (directory / path).read_bytes().decode() for path in files if (directory / path).exists()}


def without_blanks(files: dict[str, str]) -> dict[str, list[str]]:
    return {path: ["".join(line.split()) for line in text.split("\n")] for path, text in files.items()}
