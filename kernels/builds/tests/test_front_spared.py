# SPDX-License-Identifier: GPL-2.0-or-later
"""gcc spares what macros made some warnings, so that the text of a file has warnings that the file has not."""

from __future__ import annotations

import pytest

from kernels.builds.tests.front_runs import Bench

pytestmark = pytest.mark.process


def test_a_warning_that_macros_are_spared_is_said_where_no_macro_is(bench: Bench) -> None:
    header = "#define IS_THERE(place) ((place) != 0)\nextern int shapes[3];\nextern int idle(int a);\n"
    source = '#include "h.h"\nint entry(int a)\n{\n\treturn IS_THERE(shapes) ? a : 0;\n}\n'
    bench.write(h_h=header, a_c=source)
    bench.compare_words("a.c", complains=False)
    assert bench.events() == ["miss"]
    # Its headers have not been read as others must have read them, so they are checked once where they change.
    for change, events in (("", ["hit"]), ("extern int fresh(void);\n", ["checked", "hit"])):
        bench.write(h_h=header + change)
        assert bench.code("front") == bench.code("/usr/bin/gcc")
        assert bench.events()[-len(events) :] == events
        bench.compare_words("a.c", complains=False)
        assert "hit" in bench.events()
    # A reproducer has no store, and must make the same file.
    assert bench.compile("clean") == bench.compile()
    bench.write(a_c=source.replace("IS_THERE(shapes)", "((shapes) != 0)"))
    bench.compare_words("a.c", complains=True)


def test_a_file_whose_text_alone_has_warnings_is_answered_while_all_that_it_reads_is_the_same(
    bench: Bench,
) -> None:
    header = (
        "#define IS_THERE(place) ((place) != 0)\nextern int shapes[3];\n"
        "static inline int there(int a)\n{\n\treturn IS_THERE(shapes) ? a : 0;\n}\n"
        "static inline int idle(int a)\n{\n\treturn there(a) + 1;\n}\n"
    )
    bench.write(h_h=header, a_c='#include "h.h"\nint entry(int a)\n{\n\treturn there(a);\n}\n')
    for text, events in (
        (header, ["miss"]),
        (header, ["hit"]),
        # A check of the text would bring the warning along, so gcc reads the source.
        (header.replace("a) + 1", "a) + 2"), ["checked", "hit"]),
        (header.replace("a) + 1", "a) + 2"), ["hit"]),
        (
            header.replace("#define IS_THERE(place) ((place) != 0)\n", "").replace(
                "IS_THERE(shapes)", "((shapes) != 0)"
            ),
            None,
        ),
    ):
        bench.write(h_h=text)
        if events is None:
            bench.compare_words("a.c", complains=True)
        else:
            assert bench.code("front") == bench.code("/usr/bin/gcc")
            assert bench.events() == events
