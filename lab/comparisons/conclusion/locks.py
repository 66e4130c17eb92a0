# SPDX-License-Identifier: GPL-2.0-or-later
"""Read whether the patches of an experiment change locks, and how much of the base's time its locks take."""

from kernels.mails.stored_diff import diff_of
from lab.comparisons.conclusion.facts import Locks
from lab.models import Experiment, Profile, Switch
from lab.models.states import Role
from lab.profiles.analysis.frame_tree import TreeDamaged
from lab.profiles.analysis.symbol_counts import caller_counts
from lab.profiles.case_profiles import CPU, case_profiles, watched

# Parts of the names by which kernel code takes, releases and declares locks.
_LOCKS = (
    *("spin_lock", "spin_unlock", "spin_trylock", "spinlock", "mutex", "rwsem", "rw_semaphore"),
    *("down_read", "up_read", "down_write", "up_write", "read_lock", "read_unlock", "write_lock"),
    *("write_unlock", "rwlock", "seqlock", "seqcount", "lockref", "bit_lock"),
)


def changes_locks(row: Experiment) -> bool:
    """Return whether a patch of the experiment adds or removes a line with a lock."""
    texts = row.switches.filter(kind=Switch.Kind.PATCH).values_list("text", flat=True)
    return any(has_lock(diff_of(text)) for text in texts.iterator())


def has_lock(diff: str) -> bool:
    """Return whether a diff adds or removes a line with a lock. Takes time in proportion to its length."""
    changed = (
        line for line in diff.splitlines() if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"}
    )
    return any(word in line for line in changed for word in _LOCKS)


def lock_facts(row: Experiment, *, sampled: bool) -> Locks:
    """Return the watched locks of the first case that was profiled, and their share of the base's samples.

    sampled: read the profiles; if not, or if there are none, the share is None.
    """
    if not sampled:
        return Locks()
    profiled = Profile.objects.filter(run__experiment=row, run__variant__role=Role.BASE, kind=CPU)
    case = profiled.order_by("run__case__position").values_list("run__case", flat=True).first()
    if case is None:
        return Locks()
    try:
        profiles = case_profiles(row.pk, case)
    except TreeDamaged:
        # A conclusion is also drawn in the transaction that ends an experiment: it does without the share.
        return Locks()
    names = tuple(name for name in watched(profiles) if name in profiles.tree.names)
    if not names or profiles.base is None:
        return Locks()
    own = profiles.of(profiles.base)
    whole = int(profiles.tree.samples[own].sum())
    held = int(caller_counts(profiles.tree, names).total[0, own].sum())
    return Locks(names, held / whole) if whole else Locks()
