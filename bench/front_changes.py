# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes of a header, made by a program: of many kinds, each at a random place."""

import random
import re

_MARKS = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\\\n|[{}();\n]", re.DOTALL)
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
    "group": "#if defined(__x86_64__) && __STDC__ + 1 > 1\nextern int kp_N(int a);\n#else\nextern long kp_N(int);\n#endif\n",
    "macro of all sorts": (
        "#define KP_CALLN(a, ...) kp_##a(#a, ##__VA_ARGS__)\nextern int kp_fN(const char *, ...);\n"
        "static inline int kp_gN(void)\n{\n\treturn KP_CALLN(fN,\n\t\t1) + KP_CALLN(fN);\n}\n"
    ),
}
_PROTOTYPE = r"^(?:extern )?[a-z]\w+ [\w *]+\([^(){};#]*\);\n"
_FUNCTION = r"^static inline [^;{}#()]*\([^;{}#]*\)\n\{\n[^#]*?\n\}\n"
_COMMENT = r"^[ \t]*/\*(?:(?!\*/).)*\*/[ \t]*\n"
_FIELDS = r"^\t((?:unsigned |struct )?\w+[ \t]+\**\w+;\n)\t((?:unsigned |struct )?\w+[ \t]+\**\w+;\n)"
# What a change looks for, and what it puts there; N as above. Two places of a kind that moves things change seats.
CHANGED = {
    "prototype removed": (_PROTOTYPE, ""),
    "function removed": (_FUNCTION, ""),
    "macro removed": (r"^#[ \t]*define[ \t]+\w+.*(?<!\\)\n", ""),
    "comment removed": (_COMMENT, ""),
    "attribute removed": (
        r"\s*\b__(?:must_check|pure|cold|always_inline|printf\(\d+, ?\d+\)|init|malloc)\b",
        " ",
    ),
    "fields swapped": (_FIELDS, r"\t\g<2>\t\g<1>"),
    "statement": (r"^\{\n", "{\n\tbarrier();\n"),
    "result": (r"^\treturn ([^;#]+);\n", r"\treturn (\g<1>);\n\tbarrier();\n"),
    "condition": (r"^\tif \(([^;#{}]+)\)\n", r"\tif (!!(\g<1>))\n"),
    "field": (r"^struct \w+ \{\n", r"\g<0>\tunsigned long kp_fN;\n"),
    "field within": (
        r"^\t(?:unsigned (?:int|long)|int|u32|u64|struct \w+)[ \t]+\**\w+;\n",
        r"\g<0>\tunsigned long kp_fN;\n",
    ),
    "field's type": (r"^\t(?:unsigned int|int|bool|u8|u16|u32)(?=[ \t]+\w+;)", "\tunsigned long"),
    "prototype's type": (r"(?<=\()(?:unsigned int|int|bool)(?= \w+[,)][^{}]*?;\n)", "unsigned long"),
    "constant": (r"^(#[ \t]*define\s+[A-Z]\w*\s+)\d+$", r"\g<1>(N + 1)"),
    "enumerator": (r"^\t[A-Z]\w+,\n", r"\tKP_EN,\n\g<0>"),
    "macro's text": (r"^(#[ \t]*define[ \t]+\w+\([^()]*\)[ \t]+)(\w[^\\\n]*)(?<!\\)\n", r"\g<1>(\g<2>)\n"),
    "comment's text": (r"(?<=/\* )\w+(?=[^\n]*\*/\n)", "word N"),
    "attribute": (r"(?<=\))(?=;\n)", " __attribute__((cold))"),
    "group turned": (r"^#([ \t]*)ifdef[ \t]+(CONFIG_\w+)", r"#\g<1>ifndef \g<2>"),
    "group's condition": (r"^#([ \t]*)if[ \t]+([^\n/\\]+)$", r"#\g<1>if !(\g<2>)"),
    "macro undone": (r"^#[ \t]*define[ \t]+(\w+)[^\n]*(?<!\\)\n", r"\g<0>#undef \g<1>\n"),
    "type's attribute": (r"^\};\n", "} __attribute__((aligned(32)));\n"),
}
_PLAIN = (
    r"(?:unsigned (?:int|long|char|short)|int|long|bool|[us](?:8|16|32|64)|atomic_t|spinlock_t|struct \w+)"
)
# The same of structures alone: most leave the members' places as they are, and most files name no member that is changed.
STRUCTURES = {
    "volatile member": (rf"^\t(?={_PLAIN}[ \t]+\**\w+;\n)", "\tvolatile "),
    "array without a size at the end": (r"^(?=\};\n)", "\tchar kp_fN[];\n"),
    "empty member": (rf"^\t{_PLAIN}[ \t]+\**\w+;\n", r"\g<0>\tstruct { } kp_fN;\n"),
    "alignment by an attribute": (r"^\};\n", "} __attribute__((aligned(64)));\n"),
    "two members instead": (r"^\t(?:unsigned )?long([ \t]+\w+;\n)", r"\tunsigned int\g<1>\tint kp_fN;\n"),
    "another sign": (r"^\tint(?=[ \t]+\w+;\n)", "\tunsigned int"),
    "another pointer": (r"^\tstruct \w+[ \t]+\*(?=\w+;\n)", "\tvoid *"),
    "bytes instead": (
        r"^\t(?:unsigned )?long([ \t]+\w+);\n",
        r"\tchar\g<1>[8] __attribute__((aligned(8)));\n",
    ),
    "in a structure": (r"^\t(?:unsigned )?long([ \t]+\w+;\n)", r"\tstruct { long kp_fN; }\g<1>"),
    "one of two": (r"^\t((?:unsigned )?long[ \t]+\w+;\n)", r"\tunion { \g<1>\tvoid *kp_fN; };\n"),
    "bits": (r"^\t(?:unsigned )?int([ \t]+\w+);\n", r"\tint\g<1>:32;\n"),
    "bits that share a byte": (r"^\t(?:unsigned )?int([ \t]+\w+);\n", r"\tint\g<1>:3, kp_fN:29;\n"),
    "field at the end": (r"^(?=\};\n)", "\tchar kp_fN;\n"),
    "a list of two": (rf"^(\t{_PLAIN}[ \t]+\**\w+);\n", r"\g<1>[2];\n"),
}
MOVED = {"prototypes swapped": _PROTOTYPE, "functions swapped": _FUNCTION}
KINDS = (*ADDED, *CHANGED, *STRUCTURES, *MOVED)


def change(text: str, kind: str, number: int, chance: random.Random) -> str | None:
    """Return the header's new text; None where it has no place for that kind of change.

    number: the change's own, from which it makes names.
    """
    if kind in ADDED:
        places = _between_declarations(text)
        if not places:
            return None
        at = places[0] if kind.endswith("before all") else chance.choice(places)
        return text[:at] + ADDED[kind].replace("N", str(number)) + text[at:]
    pattern, put = (MOVED[kind], "") if kind in MOVED else (CHANGED | STRUCTURES)[kind]
    matches = list(
        re.finditer(pattern, text, re.MULTILINE | (re.DOTALL if pattern == _COMMENT else re.NOFLAG))
    )
    if not matches:
        return None
    match, other = chance.choice(matches), chance.choice(matches)
    before, after = text[: match.start()], text[match.end() :]
    if kind not in MOVED:
        new = before + match.expand(re.sub(r"N\b", str(number), put)) + after
    elif other.start() < match.end():
        return None
    else:
        new = before + text[match.end() : other.end()] + match[0] + text[other.end() :]
    return new if new != text else None


def _between_declarations(text: str) -> list[int]:
    """Return the starts of lines outside all brackets and comments where a declaration may stand."""
    places, depth = [], 0
    for match in _MARKS.finditer(text):
        mark, before = match[0], text[match.start() - 1 : match.start()]
        depth += (mark in "{(") - (mark in "})")
        if mark == "\n" and depth == 0 and before and before in ";}\n":
            places.append(match.end())
    return places
