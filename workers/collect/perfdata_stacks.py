# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of a perf.data → a tree of named frames, below the command's name, outermost frame first.

Equal callchains become one before anything is named, and each address is named once. Frames are called

- by the kernel's function, from System.map;
- `[file]` by the file that was mapped, in user code and modules: their symbols are not at hand;
- `[kernel.kallsyms]` or `[unknown]` where there is neither.

Repeats of a frame in brackets are one frame. A return address may be the first address of a function: then the call before
it never returns and ends its own function, and that function is named. The next frame inside tells this case from an
interrupted first instruction (that frame is an interrupt's entry) and from a call under way (that frame is a thunk).

Where samples are waits for locks, the innermost frame is the function that the lock's user called: frames inside it are
the lock's implementation.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.profiles.analysis.frame_tree import FrameTree, build_tree, grow_tree
from workers.collect.kernelsymbols import KernelSymbols, ModuleSymbols
from workers.collect.perfdata_names import (
    KERNEL_TEXT,
    UNKNOWN,
    Space,
    Story,
    commands_at,
    files_at,
    spaces_at,
)
from workers.collect.perfdata_records import SampleColumns
from workers.errors import ProfileUnreadable

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

# PERF_CONTEXT_MAX: from here on an entry of a callchain says who owns the addresses that follow.
_MARKERS = np.uint64((1 << 64) - 4095)
# The markers of user code: PERF_CONTEXT_USER, PERF_CONTEXT_GUEST_USER; and those of the kernel.
_OF_USER = np.array([(1 << 64) - 512, (1 << 64) - 2560], np.uint64)
_OF_KERNEL = np.array([(1 << 64) - 128, (1 << 64) - 2176], np.uint64)
# No processor has user addresses above this (LA57 of x86, 52 bits of arm64), or kernel addresses below its counterpart.
_USER_TOP = np.uint64(1 << 56)
_KERNEL_BOTTOM = np.uint64((1 << 64) - (1 << 56))
# With fewer addresses, unknown ones do not show that a profile is of another kernel.
_ENOUGH = 3
# Entries of interrupts and exceptions (x86, arm64), and the thunks of x86 that have the callee's address on the stack.
_ENTRIES = ("asm_", "el0", "el1", "__x86_", "srso_", "retbleed_")
_PAGE = np.uint64(12)
# Functions of kernel/locking, by how their names begin, and of the tracepoint itself.
_LOCKING = re.compile(
    r"_*(raw_)?(spin|read|write)_lock|_*(native_|pv_)*queued_(spin|read|write)_lock|do_raw_(spin|read|write)_lock"
    r"|_*(ww_|rt_)?mutex_|_*rt_(spin|read|write)_|_*rwbase_|_*rwsem_|_*percpu_(down|rwsem)|osq_lock"
    r"|_*down(_read|_write|_interruptible|_killable|_timeout|_common|_nested|_trylock)*(\.|$)|_*trace(iter)?_contention_"
)


_SAID_USER, _SAID_KERNEL = 1, 2


@dataclass(frozen=True, slots=True)
class Weighing:
    """The weights of samples, where they are not one each. weights: one a sample; locks: they are waits for locks."""

    weights: Integers
    locks: bool


class _Chains:
    """Callchains one after the other, innermost frame first, without markers; row: the chain of each address.

    user, kernel: which addresses are a program's or the kernel's; all others are garbage. garbled: which chains have garbage.
    """

    def __init__(self, words: Words, starts: Integers, lengths: Integers) -> None:
        addresses = words[_spread(starts, lengths)]
        row = np.repeat(np.arange(len(starts)), lengths)
        real = addresses < _MARKERS
        context = _contexts(addresses, row)[real]
        self.addresses, self.row = addresses[real], row[real]
        self.lengths = np.bincount(self.row, minlength=len(starts))
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.user = (self.addresses < _USER_TOP) & (context != _SAID_KERNEL)
        self.kernel = (self.addresses >= _KERNEL_BOTTOM) & (context != _SAID_USER)
        wild = ~self.user & ~self.kernel
        self.garbled = np.bincount(self.row[wild], minlength=len(starts)) > 0


def _contexts(addresses: Words, row: Integers) -> Integers:
    """Return for each entry what the last marker before it in its chain says: nothing (0), user code, or the kernel."""
    place = np.arange(len(addresses))
    last = np.maximum.accumulate(np.where(addresses >= _MARKERS, place, -1)) if len(place) else place
    said = np.where(np.isin(addresses, _OF_USER), _SAID_USER, 0) + np.where(
        np.isin(addresses, _OF_KERNEL), _SAID_KERNEL, 0
    )
    known = (last >= 0) & (row[np.maximum(last, 0)] == row)
    contexts: Integers = np.where(known, said[np.maximum(last, 0)], 0)
    return contexts


def tree_of(
    words: Words,
    samples: SampleColumns,
    story: Story,
    symbols: KernelSymbols,
    weighing: Weighing | None = None,
) -> tuple[FrameTree, int]:
    """Return the tree of all samples, and how many of them have an address that no program has.

    Raises ProfileUnreadable when the kernel's symbols do not fit the addresses.
    """
    if not len(samples.tid):
        return build_tree([]), 0
    which, starts, lengths = _distinct(words, samples)
    chains = _Chains(words, starts, lengths)
    names: dict[str, int] = {UNKNOWN: 0}
    frames = np.zeros(len(chains.addresses), np.int64)
    frames[chains.kernel] = _kernel_frames(chains, story, symbols, names)

    # A user address means a file only in its process at its time, so both distinguish chains with such addresses.
    moments = np.full(len(which), -1, np.int64)
    asking = (np.bincount(chains.row[chains.user], minlength=len(starts)) > 0)[which]
    moments[asking] = spaces_at(story, samples.pid[asking], samples.time[asking])
    pairs, pair = _pairs(which, moments, len(story.spaces) + 1)
    of, lengths = chains.starts[pairs[:, 0]], chains.lengths[pairs[:, 0]]
    flat = _spread(of, lengths)
    numbers = frames[flat]
    user = chains.user[flat]
    moment = np.repeat(pairs[:, 1], lengths)[user]
    numbers[user] = _user_frames(story, moment, chains.addresses[flat][user] >> _PAGE, names)

    numbers, lengths = _merged(numbers, lengths, names)
    if weighing and weighing.locks:
        numbers, lengths = _from_the_caller(numbers, lengths, names)
    commands, command = commands_at(story, samples.tid, samples.time)
    command_numbers = _intern(commands, names)
    stacks, stack = np.unique(pair * len(commands) + command, return_inverse=True)
    counts = np.zeros(len(stacks), np.int64)
    np.add.at(counts, stack, weighing.weights if weighing else 1)
    tree = grow_tree(
        tuple(names),
        *_outermost_first(command_numbers[stacks % len(commands)], numbers, lengths, stacks // len(commands)),
        counts,
    )
    return tree, int(chains.garbled[which].sum())


def _distinct(words: Words, samples: SampleColumns) -> tuple[Integers, Integers, Integers]:
    """Return for each sample the number of its callchain, and where each chain is in the words."""
    raw = words.tobytes()
    index: dict[bytes, int] = {}
    ends = 8 * (samples.chain + samples.length)
    which = [
        index.setdefault(raw[begin:end], len(index))
        for begin, end in zip((8 * samples.chain).tolist(), ends.tolist(), strict=True)
    ]
    numbers = np.array(which, np.int64)
    _, first = np.unique(numbers, return_index=True)
    return numbers, samples.chain[first], samples.length[first]


def _spread(starts: Integers, lengths: Integers) -> Integers:
    """The indices start, start + 1, … of all stretches, one behind the other."""
    within: Integers = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return within + np.arange(len(within))


def _intern(strings: Sequence[str], names: dict[str, int]) -> Integers:
    return np.array([names.setdefault(name, len(names)) for name in strings], np.int64)


def _pairs(which: Integers, moments: Integers, many: int) -> tuple[NDArray[np.int64], Integers]:
    """The distinct pairs of chain and moment, and the number of each sample's pair."""
    keys, pair = np.unique(which * many + moments + 1, return_inverse=True)
    return np.stack((keys // many, keys % many - 1), axis=1), pair


def _kernel_frames(chains: _Chains, story: Story, symbols: KernelSymbols, names: dict[str, int]) -> Integers:
    """Numbers of the frames of all kernel addresses, in the chains' order."""
    addresses, row = chains.addresses[chains.kernel], chains.row[chains.kernel]
    distinct, inverse = np.unique(addresses, return_inverse=True)
    shift = _shift(story, symbols)
    called, number = symbols.names(distinct - shift)
    numbers = _intern(called, names)[number]
    missing = np.array([not name for name in called], np.bool_)[number]
    numbers[missing] = _mapped_frames(story, distinct[missing], names, symbols.modules)
    nameless = np.isin(numbers, [names[UNKNOWN], names.get(KERNEL_TEXT, -1)])
    # A module loaded while perf recorded has no name either, but never makes up nearly all addresses.
    if len(distinct) >= _ENOUGH and nameless.sum() > 0.9 * len(distinct):
        raise ProfileUnreadable(
            f"{nameless.sum()} of {len(distinct)} kernel addresses in this perf.data are not in its System.map"
        )
    frames = numbers[inverse]
    # A chain's first entry is where the CPU was, all others are return addresses.
    caller = np.concatenate(([False], row[1:] == row[:-1])) if len(row) else np.zeros(0, np.bool_)
    entry = np.array([name.startswith(_ENTRIES) for name in names], np.bool_)
    inside = np.concatenate(([0], frames[:-1])) if len(row) else frames
    early = np.flatnonzero(caller & symbols.starts(distinct - shift)[inverse] & ~entry[inside])
    called, number = symbols.names(addresses[early] - shift - np.uint64(1))
    frames[early] = _intern([name or UNKNOWN for name in called], names)[number]
    return frames


def _shift(story: Story, symbols: KernelSymbols) -> np.uint64:
    """Return how far the kernel moved itself at boot (KASLR): perf records where the symbol it names really was."""
    for mapped in story.kernel:
        if mapped.path.startswith(KERNEL_TEXT) and mapped.offset:
            linked = symbols.address(mapped.path.removeprefix(KERNEL_TEXT))
            return np.uint64((mapped.offset - linked) % (1 << 64) if linked is not None else 0)
    return np.uint64(0)


def _mapped_frames(story: Story, addresses: Words, names: dict[str, int], modules: ModuleSymbols) -> Integers:
    """Numbers of frames in modules and other code that the kernel came to hold while it ran."""
    space = Space()
    for mapped in story.kernel:
        space.put(mapped)
    frames = ((address, space.name(address)) for address in addresses.tolist())
    return _intern([modules.name(address, frame) for address, frame in frames], names)


def _user_frames(story: Story, moments: Integers, pages: Words, names: dict[str, int]) -> Integers:
    if not len(pages):
        return np.zeros(0, np.int64)
    order = np.lexsort((pages, moments))
    moments, pages = moments[order], pages[order]
    new = np.concatenate(([True], (np.diff(moments) != 0) | (pages[1:] != pages[:-1])))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = _intern(files_at(story, moments[new], pages[new]), names)[np.cumsum(new) - 1]
    return numbers


def _merged(numbers: Integers, lengths: Integers, names: dict[str, int]) -> tuple[Integers, Integers]:
    """Frames without repeats of those in brackets, and how many each stack keeps."""
    nameless = np.array([name.startswith("[") for name in names], np.bool_)
    row = np.repeat(np.arange(len(lengths)), lengths)
    again = np.zeros(len(numbers), np.bool_)
    again[1:] = (row[1:] == row[:-1]) & (numbers[1:] == numbers[:-1]) & nameless[numbers[1:]]
    return numbers[~again], np.bincount(row[~again], minlength=len(lengths))


def _from_the_caller(
    numbers: Integers, lengths: Integers, names: dict[str, int]
) -> tuple[Integers, Integers]:
    """Stacks with only the outermost of the locking functions they begin with, and how many frames each keeps."""
    locking = np.array([_LOCKING.match(name) is not None for name in names], np.bool_)[numbers]
    row = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(numbers)) - (np.cumsum(lengths) - lengths)[row]
    first = lengths.copy()
    np.minimum.at(first, row[~locking], place[~locking])
    kept = place >= first[row] - 1
    return numbers[kept], np.bincount(row[kept], minlength=len(lengths))


def _outermost_first(
    commands: Integers, frames: Integers, lengths: Integers, chosen: Integers
) -> tuple[Integers, Integers]:
    """Stacks one behind the other, each a command and the frames of a chosen chain from its end; and their lengths."""
    starts = np.cumsum(lengths) - lengths
    starts, lengths = starts[chosen], lengths[chosen]
    flat = np.empty(int(lengths.sum()) + len(lengths), np.int64)
    heads = np.cumsum(lengths + 1) - (lengths + 1)
    flat[heads] = commands
    rest = np.ones(len(flat), np.bool_)
    rest[heads] = False
    flat[rest] = frames[
        2 * np.repeat(starts, lengths) + np.repeat(lengths, lengths) - 1 - _spread(starts, lengths)
    ]
    return flat, lengths + 1
