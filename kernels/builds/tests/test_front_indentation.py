# SPDX-License-Identifier: GPL-2.0-or-later
"""gcc's warning about misleading indentation is in the build's log, whether the file or only its blanks have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels.builds.tests.front_runs import Bench
from kernels.tests.cases import cases

pytestmark = pytest.mark.process
HEADER = """extern int get(int a);
#define each(a) for ((a) = 0; (a) < 9; (a)++)
#define BOTH(a) if (a) get(a); get(2);
#define WAIT(a) do { if (a) get(a); } while (0)
#define CALL get(7)
#define TWO get(1); get(2)
#define IF_SET if (a) get(1)
#define SAME(a) a
#define NESTED if (a) TWO
#define BOTH_OF(a) SAME(a)
#define LONG(a) do { \\
		if (a) \\
			get(1); \\
		get(2); \\
	} while (0)
#define MISLEADING_LONG(a) do { \\
		if (a) \\
			get(1); \\
			get(2); \\
	} while (0)
"""
# Statements of which gcc complains.
MISLEADING = {
    "a second statement": "\tif (a)\n\t\tget(1);\n\t\tget(2);\n",
    "a second statement behind else": "\tif (a)\n\t\tget(1);\n\telse\n\t\tget(2);\n\t\tget(3);\n",
    "a second statement in a loop": "\tfor (;a;)\n\t\ta--;\n\t\tget(2);\n",
    "a second statement of a macro's loop": "\teach(a)\n\t\tget(a);\n\t\tget(2);\n",
    "a second statement in blanks": "\twhile (a)\n\t\ta--;\n                get(2);\n",
    "a second statement on the line": "\tif (a)\n\t\tget(1); get(2);\n",
    "all on a line": "\tif (a) get(1); get(2);\n",
    "a macro's statement": "\tif (a)\n\t\tCALL;\n\t\tCALL;\n",
    "a macro's statement behind a plain one": "\tif (a)\n\t\tget(1);\n\t\tCALL;\n",
    "a macro's statement in a macro's loop": "\teach(a)\n\t\tCALL;\n\t\tCALL;\n",
    "macros' statements on a line": "\tif (a)\n\t\tCALL; CALL;\n",
    "two statements of a macro": "\tif (a)\n\t\tTWO;\n\tget(3);\n",
    "two statements of a macro in another": "\tNESTED;\n\tget(3);\n",
    "two statements of a macro behind an argument": "\tSAME(if (a)) TWO;\n",
    "two statements behind an attribute": "\tif (a)\n\tout: __attribute__((unused))\n\t\tTWO;\n",
    "two statements behind a choice of cases": "\tswitch (a)\n\tcase 1 ? 2 : 3:\n\t\tTWO;\n",
    "two statements in a nested function": "\tint own(int b)\n\t{\n\t\tif (b)\n\t\t\tTWO;\n\t\treturn b;\n\t}\n\tif (own(a))\n\t\tget(1);\n",
    "two statements behind a nested function": "\tint own(int b)\n\t{\n\t\treturn b;\n\t}\n\tif (own(a))\n\t\tTWO;\n",
    "within a macro": "\tMISLEADING_LONG(a);\n",
    "behind a condition and nothing": "\tfor (; a; a--);\n\t\tget(2);\n",
    "behind an empty loop": "\tfor (;\n\t     a; a--);\n\t\tget(2);\n",
    "within braces": "\tget(({\n\t\tif (a)\n\t\t\ta = 2;\n\t\t\ta = 3;\n\t\ta; }));\n",
    "within a loop that ends": "\tdo {\n\t\tif (a)\n\t\t\tget(1);\n\t\t\tget(2);\n\t} while (a--);\n",
    "below a case": "\tswitch (a) {\n\tcase 1:\n\t\tif (a)\n\t\t\tget(1);\n\t\t\tget(2);\n\t}\n",
    "behind a label": "\tif (a)\n\t\tgoto out;\nout:\n\tif (a)\n\t\tget(1);\n\t\tget(2);\n",
}
# Statements of which it does not, and which are answered.
PLAIN = {
    "a block": "\tif (a) {\n\t\tget(1);\n\t\tget(2);\n\t}\n\tget(3);\n",
    "one statement": "\tif (a)\n\t\tget(1);\n\tget(2);\n",
    "one of two": "\tif (a)\n\t\tget(1);\n\telse if (a > 2)\n\t\tget(2);\n\telse\n\t\tget(3);\n\tget(4);\n",
    "a chain": "\tfor (;a;)\n\t\tif (a)\n\t\t\ta--;\n\tget(2);\n",
    "a macro": "\tBOTH(a)\n\tWAIT(a);\n\tget(2);\n",
    "a macro's statement": "\tif (a)\n\t\tCALL;\n\tCALL;\n",
    "a macro's statement on the line": "\tif (a) CALL;\n\tCALL;\n",
    "a macro's condition": "\tIF_SET;\n\tget(3);\n",
    "a macro of several lines": "\tLONG(a);\n\tget(3);\n",
    "two statements of a macro behind braces": "\tif (a) {\n\t\tTWO;\n\t}\n",
    "a macro's condition in an argument": "\tSAME(if (a) get(1); get(2));\n\tBOTH_OF(if (a) get(1); get(2));\n",
    "a condition that is left out": "\tif (a)\n\t\tget(1);\n#if 0\n\tif (a > 2)\n#endif\n\t\tget(2);\n",
    "no indentation": "if (a)\nget(1);\nget(2);\n",
    "a macro's loop": "\teach(a)\n\t\tget(a);\n\tget(2);\n",
    "an empty loop": "\twhile (get(a))\n\t\t;\n\tget(2);\n",
    "a loop that ends": "\tdo\n\t\tget(1);\n\twhile (a--);\n\tget(3);\n",
    "the last": "\tif (a)\n\t\tget(1);\n",
    "a line of its own in a block": "\t{ if (a) get(1); get(2); }\n",
    "cases": "\tswitch (a) {\n\tcase 1:\n\t\tif (a)\n\t\t\tbreak;\n\tdefault:\n\t\tget(2);\n\t}\n",
    "conditions over lines": "\tif (a &&\n\t    get(2))\n\t\tget(1);\n\tget(3);\n",
}
QUICK_MISLEADING = (
    "a second statement",
    "a second statement of a macro's loop",
    "a macro's statement",
    "within a macro",
)
QUICK_PLAIN = ("one of two", "a macro", "a macro's statement on the line", "a condition that is left out")


@pytest.fixture
def bench(tmp_path: Path, program: Path) -> Bench:
    """A folder with the header, whose store is empty."""
    made = Bench(tmp_path / "bench", program)
    made.write(h_h=HEADER)
    return made


def function(statements: str, name: str = "entry") -> str:
    return f"int {name}(int a)\n{{\n{statements}\treturn a;\n}}\n"


@pytest.mark.parametrize("name", cases(MISLEADING, QUICK_MISLEADING))
def test_what_misleads_is_told_each_time_as_gcc_tells_it(bench: Bench, name: str) -> None:
    bench.write(a_c='#include "h.h"\n' + function(MISLEADING[name]))
    for _ in range(2):
        bench.compare_words("a.c", complains=True)
        assert set(bench.events()) == {"indentation"}


@pytest.mark.parametrize("name", cases(PLAIN, QUICK_PLAIN))
def test_what_does_not_mislead_is_answered(bench: Bench, name: str) -> None:
    bench.write(a_c='#include "h.h"\n' + function(PLAIN[name]))
    for _ in range(2):
        bench.compare_words("a.c", complains=False)
    assert bench.events()[-1] == "hit"


def test_a_file_whose_blanks_alone_have_changed_is_told_of(bench: Bench) -> None:
    plain = "\tif (a)\n\t\tget(1);\n\tget(2);\n"
    bench.write(a_c='#include "h.h"\n' + function(plain))
    bench.compare_words("a.c", complains=False)
    bench.write(a_c='#include "h.h"\n' + function(plain.replace("\tget(2)", "\t\tget(2)")))
    bench.compare_words("a.c", complains=True)


def test_a_header_that_misleads_is_told_of_in_each_file(bench: Bench) -> None:
    bench.write(
        h_h=HEADER + "static inline " + function(MISLEADING["a second statement"], "inner"),
        a_c='#include "h.h"\n' + function("\tget(2);\n"),
    )
    bench.compare_words("a.c", complains=True)
    bench.compare_words("a.c", complains=True)
