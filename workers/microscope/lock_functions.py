# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's functions that take, give back and wait for locks, by the names of Linux 5.15 to 6.12 on x86-64."""

from __future__ import annotations

import re

from workers.errors import TraceUnreadable

_SYMBOL = re.compile(r"^([0-9a-f]{16}) [tTwW] (\S+)$", re.MULTILINE)
# The compiler's name for a specialised or split copy: __mutex_lock.constprop.0
_COPY = re.compile(r"\.(?:constprop|isra|part|cold|llvm)\b.*")

# native/replay/call_tree.h: enum class Role.
_WAITS = "w"
_ROLES: dict[str, tuple[str, ...]] = {
    # Spinning, sleeping and what hands the CPU over: the model waits in their place.
    _WAITS: (
        "native_queued_spin_lock_slowpath", "__pv_queued_spin_lock_slowpath", "queued_spin_lock_slowpath",
        "queued_read_lock_slowpath", "queued_write_lock_slowpath",
        "rwsem_down_read_slowpath", "rwsem_down_write_slowpath", "rwsem_optimistic_spin", "rwsem_spin_on_owner",
        "rwsem_wake", "rwsem_mark_wake", "rwsem_downgrade_wake",
        "__mutex_lock", "__mutex_lock_slowpath", "__mutex_lock_interruptible_slowpath", "__mutex_lock_killable_slowpath",
        "__mutex_unlock_slowpath", "mutex_optimistic_spin", "mutex_spin_on_owner", "osq_lock", "osq_unlock",
        "schedule", "__schedule", "preempt_schedule", "preempt_schedule_common", "preempt_schedule_irq",
        "schedule_timeout", "schedule_idle", "io_schedule", "io_schedule_timeout", "schedule_preempt_disabled",
        "do_idle", "cpu_startup_entry",
    ),
    "r": ("_raw_read_lock", "_raw_read_lock_irq", "_raw_read_lock_irqsave", "_raw_read_lock_bh", "_raw_read_trylock"),
    "R": ("_raw_read_unlock", "_raw_read_unlock_irq", "_raw_read_unlock_irqrestore", "_raw_read_unlock_bh"),
    "m": (
        "mutex_lock", "mutex_lock_interruptible", "mutex_lock_killable", "mutex_lock_io", "mutex_trylock",
        "ww_mutex_lock", "ww_mutex_trylock",
    ),
    "M": ("mutex_unlock", "ww_mutex_unlock"),
    "d": (
        "down_read", "__down_read", "__down_read_common", "down_read_interruptible", "down_read_killable",
        "down_read_trylock", "down_read_non_owner",
    ),
    "D": ("up_read", "__up_read", "up_read_non_owner"),
    "x": ("down_write", "__down_write", "__down_write_common", "down_write_killable", "down_write_trylock"),
    "X": ("up_write", "__up_write"),
    "g": ("downgrade_write", "__downgrade_write"),
}  # fmt: skip
_BY_NAME = {name: role for role, names in _ROLES.items() for name in names}


# Lock functions that _ROLES need not know, since what they do is recognised by the accesses alone.
_OTHERS = re.compile(r"_raw_(?:spin|write)_(?:lock|unlock|trylock)\w*|lockref_\w+")


def is_lock_function(name: str) -> bool:
    """Return whether a function does nothing but take, release or count for its caller."""
    plain = _COPY.sub("", name)
    return plain in _BY_NAME or bool(_OTHERS.fullmatch(plain))


def lock_function_lines(system_map: str) -> str:
    """Return the table for the replay: a line a function, "ADDRESS ROLE".

    Raises TraceUnreadable for a kernel that names neither schedule nor a lock's slow path, whose waiting could not be
    told from its work.
    """
    lines = [
        f"{address} {_BY_NAME[plain]}"
        for address, name in _SYMBOL.findall(system_map)
        if (plain := _COPY.sub("", name)) in _BY_NAME
    ]
    if not any(line.endswith(_WAITS) for line in lines):
        raise TraceUnreadable("the kernel's System.map names no function that waits: is it one of x86_64?")
    return "\n".join(lines) + "\n"
