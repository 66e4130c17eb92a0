# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes of a header, made by a program: eighteen kinds, each at a random place."""

import random
import re

_MARKS = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\\\n|[{}();\n]", re.DOTALL)
_PROTOTYPE = re.compile(r"^(?:extern )?[a-z]\w+ [\w *]+\([^(){};#]*\);\n", re.MULTILINE)
_STRUCT = re.compile(r"^struct \w+ \{\n", re.MULTILINE)
_NUMBER = re.compile(r"^(?:#define\s+[A-Z]\w*\s+)(\d+)$", re.MULTILINE)
_BODY = re.compile(r"^\{\n", re.MULTILINE)
# Text put between two declarations; N is a number of the change's own.
ADDED = {
    "prototype": "extern int kp_N(int a, void *b);\n",
    "inline function": "static inline int kp_N(int a)\n{\n\treturn a + N;\n}\n",
    "inline function before all": "static inline int kp_N(int a)\n{\n\treturn a + N;\n}\n",
    "function with a static variable": "static inline int kp_N(int a)\n{\n\tstatic int n;\n\treturn a + n++;\n}\n",
    "function with an unused variable": "static inline int kp_N(int a)\n{\n\tint unused_N;\n\treturn a;\n}\n",
    "function that does not compile": "static inline int kp_N(void)\n{\n\treturn no_N(1) + none_N;\n}\n",
    "comment": "/* a comment\n * of two lines */\n",
    "empty lines": "\n\n\n",
    "macro": "#define KP_N N\n",
    "type": "typedef struct { int a; } kp_tN;\n",
    "enumeration": "enum kp_eN { KP_AN, KP_BN = 5 };\n",
    "variable": "extern unsigned long kp_vN;\n",
}
CHANGED = ("field", "constant", "removed", "swapped", "attribute", "statement")


def change(text: str, number: int, chance: random.Random) -> tuple[str, str] | None:
    """Return a kind of change and the header's new text; None where the header has no place for that kind."""
    kind = chance.choice([*ADDED, *CHANGED])
    if kind in ADDED:
        places = _between_declarations(text)
        if not places:
            return None
        at = places[0] if kind.endswith("before all") else chance.choice(places)
        return kind, text[:at] + ADDED[kind].replace("N", str(number)) + text[at:]
    new = _edit(kind, text, number, chance)
    return (kind, new) if new and new != text else None


def _between_declarations(text: str) -> list[int]:
    """Return the starts of lines outside all brackets and comments where a declaration may stand."""
    places, depth = [], 0
    for match in _MARKS.finditer(text):
        mark, before = match[0], text[match.start() - 1 : match.start()]
        depth += (mark in "{(") - (mark in "})")
        if mark == "\n" and depth == 0 and before and before in ";}\n":
            places.append(match.end())
    return places


def _edit(kind: str, text: str, number: int, chance: random.Random) -> str | None:
    pattern = {"field": _STRUCT, "constant": _NUMBER, "statement": _BODY}.get(kind, _PROTOTYPE)
    matches = list(pattern.finditer(text))
    if not matches:
        return None
    match, other = chance.choice(matches), chance.choice(matches)
    before, after = text[: match.start()], text[match.end() :]
    if kind == "field":
        return f"{before}{match[0]}\tunsigned long kp_f{number};\n{after}"
    if kind == "constant":
        return text[: match.start(1)] + str(int(match[1]) + 1) + text[match.end(1) :]
    if kind == "statement":
        return f"{before}{match[0]}\tbarrier();\n{after}"
    if kind == "removed":
        return before + after
    if kind == "attribute":
        return f"{before}{match[0][:-2]} __attribute__((cold));\n{after}"
    if other.start() <= match.start():
        return None
    return before + text[match.end() : other.end()] + match[0] + text[other.end() :]
