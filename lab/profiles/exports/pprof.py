# SPDX-License-Identifier: GPL-2.0-or-later
"""A profile as pprof reads it: gzip over the protocol buffer of google/pprof, proto/profile.proto, written by hand.

Only a few fields of its messages are needed, each a number or bytes with a length: field << 3 | wire type, then the value.
"""

import gzip
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from lab.profiles.analysis.frame_tree import FrameTree, stacks_of
from lab.profiles.analysis.varints import encode_one
from lab.profiles.analysis.weight_unit import Unit
from lab.profiles.exports.stacks import check_size

# Fields of Profile, Sample, Location, Line, Function and ValueType, by their numbers in profile.proto.
SAMPLE_TYPE, SAMPLE, LOCATION, FUNCTION, STRINGS, PERIOD_TYPE, PERIOD = 1, 2, 4, 5, 6, 11, 12
_NUMBER, _BYTES = 0, 2
# The type and unit of values, by the names that pprof knows.
_TYPES: Mapping[Unit, tuple[str, str]] = {
    "samples": ("samples", "count"),
    "ns": ("delay", "nanoseconds"),
    "instructions": ("instructions", "count"),
    "cycles": ("waiting", "cycles"),
}


def write_pprof(
    tree: FrameTree, unit: Unit = "samples", lines: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    """The file's bytes; equal trees are equal bytes. A name is one function and one location.

    lines: where functions begin, "fs/namei.c:2251" by name. Raises ExportTooLarge.
    """
    check_size(tree, np.minimum(tree.own, 1))
    # String 0 must be empty; a function's name is the string of its own number.
    strings = ["", *tree.names, *_TYPES[unit]]
    kind = _number(1, len(strings) - 2) + _number(2, len(strings) - 1)
    parts = [_message(SAMPLE_TYPE, kind)]
    numbers = {name: number for number, name in enumerate(tree.names, 1)}
    for stack, count in stacks_of(tree):
        leaf_first = _varints(numbers[frame] for frame in reversed(stack))
        parts.append(_message(SAMPLE, _message(1, leaf_first) + _message(2, _varints([count]))))
    for name, number in numbers.items():
        file, _, line = lines.get(name, "").rpartition(":")
        function, place = _number(1, number) + _number(2, number) + _number(3, number), b""
        if file:
            strings.append(file)
            function += _number(4, len(strings) - 1) + _number(5, int(line))
            place = _number(2, int(line))
        parts.append(_message(LOCATION, _number(1, number) + _message(4, _number(1, number) + place)))
        parts.append(_message(FUNCTION, function))
    parts += [_message(STRINGS, text.encode()) for text in strings]
    parts += [_message(PERIOD_TYPE, kind), _number(PERIOD, 1)]
    return gzip.compress(b"".join(parts), mtime=0)


def _number(field: int, value: int) -> bytes:
    return _varints([field << 3 | _NUMBER, value])


def _message(field: int, body: bytes) -> bytes:
    return _varints([field << 3 | _BYTES, len(body)]) + body


def _varints(values: Iterable[int]) -> bytes:
    return b"".join(map(encode_one, values))
