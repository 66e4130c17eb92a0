# SPDX-License-Identifier: GPL-2.0-or-later
"""Forms in which profiles leave the lab, read back by small readers of those forms."""

import gzip
import json
from collections import Counter
from xml.etree import ElementTree as Xml

import numpy as np
import pytest

from lab.profiles.analysis.frame_tree import FrameTree, build_tree, stacks_of
from lab.profiles.exports.pprof import write_pprof
from lab.profiles.exports.speedscope import write_speedscope
from lab.profiles.exports.stacks import ExportTooLarge, write_folded, write_script, write_two_counts
from lab.profiles.exports.svg import write_svg
from lab.tests.folded import read_folded

Stacks = dict[tuple[str, ...], int]
PLAIN: Stacks = {
    ("showgids", "do_syscall_64", "down_read"): 300,
    ("showgids", "do_syscall_64"): 2,
    ("showgids", "[libc.so.6]"): 7,
    ("kworker/0:1", "worker_thread"): 1,
}
HOSTILE: Stacks = {("<b>&\"'", "a;b\nc\x1b[2J\x00", "x" * 10_000): 5, ("x y", "\u202e"): 2}


def tree(stacks: Stacks) -> FrameTree:
    return build_tree(stacks.items())


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a protocol buffer message: number and value."""
    pairs: list[tuple[int, int | bytes]] = []
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            pairs.append((key >> 3, data[at : at + value]))
            at += value
        else:
            pairs.append((key >> 3, value))
    return pairs


def varints(data: int | bytes) -> list[int]:
    assert isinstance(data, bytes)
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def read_pprof(raw: bytes) -> Stacks:
    whole = fields(gzip.decompress(raw))
    strings = [value.decode() for field, value in whole if field == 6 and isinstance(value, bytes)]
    assert strings[0] == ""
    kinds = [dict(fields(value)) for field, value in whole if field == 1 and isinstance(value, bytes)]
    assert [(strings[int(kind[1])], strings[int(kind[2])]) for kind in kinds] == [("samples", "count")]
    functions = {
        int(function[1]): strings[int(function[2])]
        for function in (
            dict(fields(value)) for field, value in whole if field == 5 and isinstance(value, bytes)
        )
    }
    locations = {}
    for location in (
        dict(fields(value)) for field, value in whole if field == 4 and isinstance(value, bytes)
    ):
        line = location[4]
        assert isinstance(line, bytes)
        locations[int(location[1])] = functions[int(dict(fields(line))[1])]
    stacks: Stacks = {}
    for sample in (dict(fields(value)) for field, value in whole if field == 2 and isinstance(value, bytes)):
        (count,) = varints(sample[2])
        stacks[tuple(locations[number] for number in reversed(varints(sample.get(1, b""))))] = count
    return stacks


def places_of(raw: bytes) -> dict[str, tuple[str, int, int]]:
    """Return by function its file, where it starts, and the line of its only location."""
    whole = fields(gzip.decompress(raw))
    strings = [value.decode() for field, value in whole if field == 6 and isinstance(value, bytes)]
    messages = {
        at: [dict(fields(value)) for field, value in whole if field == at and isinstance(value, bytes)]
        for at in (4, 5)
    }
    lines = {
        int(location[1]): int(dict(fields(bytes(location[4]))).get(2, 0))
        for location in messages[4]
        if isinstance(location[4], bytes)
    }
    return {
        strings[int(function[2])]: (
            strings[int(function.get(4, 0))],
            int(function.get(5, 0)),
            lines[int(function[1])],
        )
        for function in messages[5]
    }


def test_pprof_gets_file_and_line_of_the_functions_that_have_them() -> None:
    raw = write_pprof(tree(PLAIN), lines={"down_read": "kernel/locking/rwsem.c:1518", "nobody": "x.c:1"})
    assert read_pprof(raw) == PLAIN
    places = places_of(raw)
    assert places.pop("down_read") == ("kernel/locking/rwsem.c", 1518, 1518)
    assert set(places.values()) == {("", 0, 0)}


def collapse(script: str) -> Stacks:
    """Collapse stacks as stackcollapse-perf.pl does: a sample a paragraph, its head, then frames leaf first."""
    counts: Counter[tuple[str, ...]] = Counter()
    for paragraph in script.strip().split("\n\n"):
        head, *frames = paragraph.split("\n")
        names = [frame.split(maxsplit=1)[1].rsplit(" (", 1)[0] for frame in frames]
        counts[(head.split("  ")[0], *reversed(names))] += 1
    return dict(counts)


@pytest.mark.parametrize("stacks", [PLAIN, HOSTILE])
def test_pprof_holds_the_stacks(stacks: Stacks) -> None:
    whole = tree(stacks)
    assert read_pprof(write_pprof(whole)) == dict(stacks_of(whole))
    assert write_pprof(whole) == write_pprof(tree(stacks))


@pytest.mark.parametrize("stacks", [PLAIN, HOSTILE])
def test_speedscope_holds_the_stacks(stacks: Stacks) -> None:
    whole = tree(stacks)
    document = json.loads(write_speedscope(whole, "title"))
    names = [frame["name"] for frame in document["shared"]["frames"]]
    (profile,) = document["profiles"]
    pairs = zip(profile["samples"], profile["weights"], strict=True)
    assert {tuple(names[i] for i in stack): weight for stack, weight in pairs} == dict(stacks_of(whole))
    assert profile["endValue"] == sum(stacks.values())


def test_folded_stacks_are_lines_that_other_tools_read() -> None:
    assert read_folded(write_folded(tree(PLAIN))) == PLAIN
    lines = write_folded(tree(HOSTILE)).splitlines()
    assert len(lines) == 2
    assert all(line.isprintable() and line.rpartition(" ")[2].isdecimal() for line in lines)


def test_a_script_has_every_sample_as_perf_would_print_it() -> None:
    assert collapse(write_script(tree(PLAIN))) == PLAIN
    assert all(line.isprintable() for line in write_script(tree(HOSTILE)).replace("\t", "").split("\n"))


def test_two_counts_hold_what_is_on_one_side_only() -> None:
    other = {("showgids", "do_syscall_64"): 9, ("new",): 1}
    lines = write_two_counts(tree(PLAIN), tree(other)).splitlines()
    assert "new 0 1" in lines
    assert "showgids;do_syscall_64 2 9" in lines
    assert "kworker/0:1;worker_thread 1 0" in lines


@pytest.mark.parametrize("stacks", [PLAIN, HOSTILE, {}])
def test_a_picture_is_wellformed_and_its_frames_add_up(stacks: Stacks) -> None:
    picture = Xml.fromstring(write_svg(tree(stacks), 'a "caption" & more'))
    widths = [
        float(element.attrib["width"])
        for element in picture.iter()
        if element.tag.endswith("rect") and "x" in element.attrib
    ]
    assert max(widths, default=0) < 1200
    assert {attribute for element in picture.iter() for attribute in element.attrib} <= {
        *("viewBox", "font-family", "font-size", "role", "width", "height", "fill", "x", "y"),
    }


def test_a_picture_of_ten_thousand_frames_has_a_highest_row() -> None:
    deep = {tuple(f"f{depth}" for depth in range(10_000)): 2}
    picture = write_svg(tree(deep), "deep")
    assert len(picture) < 200_000
    assert "9,601 frames are not drawn" in picture


def test_a_picture_says_how_many_frames_are_too_thin_for_it() -> None:
    assert "1 frame is not drawn: thinner than 0.3" in write_svg(
        tree({("wide",): 9_999, ("thin",): 1}), "two"
    )
    assert "not drawn" not in write_svg(tree({("wide",): 9, ("other",): 1}), "two")


def test_a_picture_does_not_count_frames_that_none_of_its_profiles_has() -> None:
    whole = tree({("elsewhere",): 1, ("here",): 9})
    assert "not drawn" not in write_svg(whole, "two", total=np.array([9.0, 0.0, 9.0]))


@pytest.mark.parametrize("write", [write_folded, write_script, write_pprof])
def test_text_that_would_be_gigabytes_is_refused_before_it_is_made(write: object) -> None:
    deep = tuple("f" * 1000 for _ in range(2000))
    wide = {(*deep, f"leaf{number}"): 1 for number in range(200)}
    with pytest.raises(ExportTooLarge, match="the limit is 64"):
        write(tree(wide))  # type: ignore[operator]
