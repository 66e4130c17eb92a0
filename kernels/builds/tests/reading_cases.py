# SPDX-License-Identifier: GPL-2.0-or-later
"""Sources that our preprocessor must read as gcc's does, and some that it must leave to gcc."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

HEADERS = {
    "h.h": "#ifndef H_H\n#define H_H\nint in_h;\n#define LATE(a) late a __LINE__\n#endif\n",
    "once.h": "#pragma once\nint in_once;\n",
    "level.h": "int level = __INCLUDE_LEVEL__; const char *file = __FILE__, *base = __BASE_FILE__;\n",
    "open.h": "LATE",
    "name.h": "#define SPLIT SPL",
    "empty.h": "",
    "sub/beside.h": '#include "other.h"\n#include "../h.h"\n',
    "sub/other.h": "int other;\n",
    "more/found.h": "int found = __LINE__;\n",
}

# Both must read these, and see the same.
READ = {
    "recursion": "#define a b\n#define b a\na b a b\n#define f(x) x f\nf(f)(1) f(f(2))(3)\n#define g g g\ng\n",
    "mutual functions": "#define F(x) G(x)\n#define G(x) F(x) x\nF(1) G(F)(2) F(G)(3)\n#define O() X\n#define X O\nX()() O()()()\n",
    "the standard's": (
        "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n#define z z[0]\n#define h g(~\n#define m(a) a(w)\n"
        "#define w 0,1\n#define t(a) a\n#define p() int\n#define q(x) x\n#define r(x,y) x ## y\n#define str(x) # x\n"
        "f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);\ng(x+(3,4)-w) | h 5) & m\n(f)^m(m);\n"
        'p() i[q()] = { q(1), r(2,3), r(4,), r(,5), r(,) };\nchar c[2][6] = { str(hello), str() };\nstr(strncmp("abc\\0d", "abc", \'\\4\') == 0)\n'
    ),
    "blanks in texts": '#define S(x) #x\n#define E(x) S(x)\n#define NO\n#define A a\nS( a  b ) S(a/**/b) S(\n a\n\tb ) E(A NO A) E(NO) E(-A) E(A-NO-A) S("a\\"\\n" \'\\\\\') E(-NO-) S()\n',
    "variable arguments": (
        "#define P(f, ...) p(f, ##__VA_ARGS__)\n#define Q(...) q(0, ##__VA_ARGS__) [__VA_ARGS__]\n#define N(a, r...) n(a, ##r) #r\n#define V(f, ...) v(f, __VA_ARGS__)\n"
        "P(1) P(1,) P(1, 2) P(1, 2, (3, 4)) Q() Q(1) Q(,) N(1) N(1, 2,  3) V(1, 2) V(1,) P(P(1), Q(2)) V(1)\n#define EMPTY\nP(1, EMPTY) Q(EMPTY)\n"
    ),
    "pastes": "#define C(a, b) a##b\n#define D(a, b) C(a, b)\n#define E\n#define xy done\nC(x, y) D(x, y) C(1, e) C(1.e, 5) C(<, <=) C(+, +) D(E, x) C(, x) C(x,) C(,) C(C, )(x, y) D(C(x, y), z) C(L, 'a') C(L, \"a\")\n",
    "three pastes": "#define C(a, b, c) a##b##c a ## c\n#define OBJ x ## y ## z\nC(1, 2, 3) C(, 2, 3) C(1, , 3) C(1, 2, ) C(a b, c d, e f) OBJ\n",
    "names of functions without arguments": '#include "h.h"\n#define F(x) [x]\nF LATE\nF\nLATE\n;F\n#define G F\nG G(1) G\n(2) G /* comment */ (3)\nF\n#include "empty.h"\n(4)\n',
    "a call over files": '#include "h.h"\n#include "open.h"\n(1)\n#include "name.h"\nSPLIT\n',
    "lines": "#define W(x) x __LINE__\nW(1 ||\n W(2) __LINE__\n ) __LINE__ after\n#define P(f, ...) p(f, ##__VA_ARGS__)\nP(1,\n __LINE__)\n#define HERE __LINE__\nW(HERE\n\n)\n",
    "lines of tokens": "#define F(a) a\nint F(a\n b) c; d F(\n) e\nx /* a\n b */ y\n/* a\n b */ z F(1)\nm \\\nn F \\\n(2) o\nF(1\n)F(2\n)\n",
    "directives in arguments": "#define F(a, b) a + b\nF(1,\n#ifdef NO\n 2\n#elif 1\n 3\n#else\n 4\n#endif\n) __LINE__\nF(\n#if 1\n 5, __LINE__\n#endif\n)\n",
    "conditions": (
        "#define T 1\n#define U 2u\n#define M(a) (a)\n#define NONE\n#if T && !defined(NO) && defined U && M(3) == 3\none\n#endif\n#if -1 < 0 && 1 - 2u > 0 || 0\ntwo\n#endif\n"
        "#if (2 || 1 / 0) && !(0 && 1 % 0) && (1 ? 2 : 3 / 0)\nthree\n#endif\n#if 0x7fffffffffffffff + 0 > 0 && 0xffffffffffffffff > 0 && 010 == 8 && 0b11 == 3 && ~0 == -1\nfour\n#endif\n"
        "#if 1 << 3 >> 2 == 2 && -8 >> 1 == -4 && (7 & 3 | 8 ^ 1) == 11 && 5 % 3 == 2 && 2 + 3 * 4 - 6 / 2 == 11\nfive\n#endif\n#if NO_SUCH || NO_SUCH + 1\nsix\n#endif\n"
        "#if 0\n#elif 0\nseven\n#elif T\neight\n#elif 1\nnine\n#else\nten\n#endif\n#if M (1) && T /* a\n comment */ && 1 // end\neleven\n#endif\n#ifndef T\n#else /* c */\ntwelve\n#endif // c\n"
        "#if 2 > 1u && 3 >= 3 && 1 <= 2 && 1 != 2 && +1\nthirteen\n#endif\n"
    ),
    "what is skipped": '#if 0\n\'a " /* x\' "\'/* y" b /* c\n#else no */ `@ \\x $\n#if garbage ( \n#else\n#endif\n#unknown\n#elif 1\nin\n# if 0\n"a"\n#endif\n#else\n# error no\n#endif\n#\n # /* null */\nend\n',
    "escaped lines": '#define LONG a \\\n b \\\n\tc\nLONG;\\\nint x = 1 +\\\n2;\n#if 1 && \\\n 1\nyes\n#endif\nchar *s = "one \\\ntwo";\n// comment\nx\n',
    "includes": '#include "h.h"\n#include "h.h"\n#include "once.h"\n#include "once.h"\n#include <found.h>\n#include "found.h"\n#include "sub/beside.h"\n#include "./h.h"\n#include "empty.h"\n#include /* c */ "level.h" // c\nint level_here = __INCLUDE_LEVEL__;const char *f = __FILE__;\n',
    "computed includes": (
        '#define S(x) #x\n#define STR(x) S(x)\n#define H "h.h"\n#include H\n#define SUB sub\n#define THIS other\n#define IN(n) STR(SUB/n.h)\n#include IN(THIS) // c\n'
        "#define UNDER(n) <n.h>\n#define FOUND(n) UNDER(n)\n#define FILE found\n#include FOUND(FILE)\n#include /* c */ FOUND(found)\n#include H\nint level = __INCLUDE_LEVEL__;\n"
    ),
    "questions outside of conditions": "#define I(x) x\nint a = __has_attribute(noinline) && __has_attribute(overloadable);\nint b = I(__has_builtin(__builtin_constant_p));\nint c[1 + __has_attribute(\nunused)];\n",
    "special macros": "#define C(a, b) a##b\n#define D(a, b) C(a, b)\n#define ID D(id_, __COUNTER__)\n#define TWICE(x) x x\nID ID TWICE(ID) TWICE(__COUNTER__) __COUNTER__\n#ifdef __COUNTER__\nyes\n#endif\n#if defined(__has_attribute) && __has_attribute(__noinline__) && !__has_attribute(overloadable) && __has_builtin(__builtin_constant_p)\nyes\n#endif\n#if __GNUC__ > 4 && __STDC_VERSION__ >= 201112L && defined(__x86_64__)\nyes\n#endif\n",
    "pragmas": '#pragma GCC  diagnostic   push\nint a;\n#pragma GCC diagnostic ignored "-Wunused"\n #pragma pack(push,  1)\nint b;\n#pragma pack(pop) /* c */\n#pragma GCC visibility push(hidden)\nc\n',
    "marks": "a->b+++c<<=d>>=e...f!=g==h&&i||j<<k>>l|=m^=n&=o%=p/=q*=r-=s+=t--u;[:]?x:y~z::w a.b.c 1.5e+3 0x1p-2 .5 1..2 1e+x a+ +b - -c\n#define EMPTY\n#define NEG -\n-NEG- -EMPTY- NEG-1 x EMPTY(y)\n",
    "redefined as it was": "#define A(x, y) x + y\n#define A(x, y) x  +  y\n#undef B\n#define B\n#define B /* c */\n#undef A\n#define A 1\nA B\n",
    "a macro's blanks": "#define F(x) x\n#define OBJ (x)\n#define G() g\nF (1) F\t(2) OBJ G( ) G(/* c */) F((1, 2)) F( ) F(()) F(F)(1)\n",
    "a name within its own arguments": "#define f(x) (x + f(x))\n#define g(x) f\nf(f(1)) g(1)(2) f(g(3)(4))\n#define AA BB\n#define BB AA\nf(AA) f(f)\n",
}

# gcc must be left these: reasons begin so.
REFUSED = {
    "a computed include of no file": ("#define H h.h\n#include H\n", "own-include"),
    "a computed include without an end": ("#define H <h.h\n#include H\n", "own-include"),
    "more behind a computed include": ('#define H "h.h"\n#include H more\n', "own-include"),
    "escapes in a computed include": ('#define H "sub\\\\beside.h"\n#include H\n', "own-include"),
    "a header that is not there": ('#include "none.h"\n', "own-include"),
    "include_next": ("#include_next <found.h>\n", "own-include"),
    "a pragma made by a macro": ('_Pragma("pack(1)") int a;\n', "own-special"),
    "the time": ("const char *a = __DATE__;\n", "own-special"),
    "a question about files": ("#if __has_include(<x.h>)\n#endif\nint a;\n", "own-special"),
    "another line": ('#line 7 "x"\nint a;\n', "own-directive"),
    "a line marker": ('# 7 "x"\nint a;\n', "own-directive"),
    "ident": ('#ident "x"\n', "own-directive"),
    "an error": ("#error no\n", "own-directive"),
    "a warning": ("#warning no\n", "own-directive"),
    "an unknown directive": ("#assert a(b)\n", "own-directive"),
    "a condition that is not closed": ("#if 1\nint a;\n", "own-directive"),
    "an end of nothing": ("int a;\n#endif\n", "own-directive"),
    "two ends": ("#if 0\n#else\n#else\n#endif\n", "own-directive"),
    "two ends that are skipped": ("#if 0\n#if 1\n#else\n#elif 1\n#endif\n#endif\n", "own-directive"),
    "words behind an end": ("#if 1\n#endif X\n", "own-directive"),
    "elifdef": ("#if 0\n#elifdef X\n#endif\n", "own-directive"),
    "a redefinition": ("#define A 1\n#define A 2\n", "own-redefinition"),
    "a redefinition by a blank": ("#define A x+y\n#define A x +y\n", "own-redefinition"),
    "a definition without a blank": ("#define A+1\n", "own-definition"),
    "a paste at an end": ("#define A(x) ##x\n", "own-definition"),
    "a text of what is not a parameter": ("#define A(x) #y\n", "own-definition"),
    "optional arguments": ("#define A(x, ...) x __VA_OPT__(,) __VA_ARGS__\nA(1) A(1, 2)\n", "own-definition"),
    "arguments of a macro without any": ("#define A(x) __VA_ARGS__\n", "own-definition"),
    "a special macro undone": ("#undef __FILE__\n", "own-definition"),
    "a special macro's name": ("#define __COUNTER__ 1\n", "own-definition"),
    "a wrong paste": ("#define A(x, y) x##y\nA(+, a)\n", "own-paste"),
    "too many arguments": ("#define A(x) x\nA(1, 2)\n", "own-arguments"),
    "too few arguments": ("#define A(x, y) x\nA(1)\n", "own-arguments"),
    "arguments without an end": ("#define A(x) x\nA(1\n", "own-arguments"),
    "a definition in arguments": ("#define A(x) x\nA(1\n#define B\n)\n", "own-arguments"),
    "a division by nothing": ("#if 1 / 0\n#endif\n", "own-condition"),
    "a sum that is too large": ("#if 0x7fffffffffffffff + 1\n#endif\n", "own-condition"),
    "a number that is too large": ("#if 9223372036854775808\n#endif\n", "own-condition"),
    "a sign that is lost": ("#if -1 > 1u\n#endif\n", "own-condition"),
    "a macro that asks": ("#define A defined(B)\n#if A\n#endif\n", "own-condition"),
    "a character in a condition": ("#if 'a' == 97\n#endif\n", "own-condition"),
    "a comma in a condition": ("#if (1, 2)\n#endif\n", "own-condition"),
    "a floating condition": ("#if 1.0\n#endif\n", "own-condition"),
    "an empty condition": ("#if\n#endif\n", "own-condition"),
    "a trigraph": ('char *a = "??=";\n', "own-trigraph"),
    "a digraph": ("int a<:1:>;\n", "own-mark"),
    "a raw text": ('char *a = R"(x)";\n', "own-prefix"),
    "a letter of another alphabet": ("int \u00e9;\n", "own-character"),
    "a name by number": ("int \\u00e9;\n", "own-backslash"),
    "a token over lines": ("int ab\\\ncd;\n", "own-backslash"),
    "a blank behind a backslash": ("int a; \\ \nint b;\n", "own-backslash"),
    "a text without an end": ('char *a = "x;\n', "own-quote"),
    "a text without an end that is skipped": ("#if 0\n#error don't\n#endif\nint a;\n", "own-quote"),
    "another end of a line": ("int a; /* b\rc */\n", "own-character"),
    "a character of no value": ("#if 0\na\0b\n#endif\n", "own-character"),
    "a name of arguments elsewhere": ("#define A(x)\nA(__VA_ARGS__) int a;\n", "own-definition"),
    "a mark of directives": ("#define A #\nA\n", "own-mark"),
    "a comment within one": ("/* a /* b */ int a;\n", "own-comment"),
    "a comment without an end": ("int a; /* b\n", "own-comment"),
    "a comment that turns text": ("int a; /* \u202e */\n", "own-direction"),
    "a comment of two lines": ("int a; // b \\\n c\n", "own-comment"),
    "a pragma that gcc reads": ("#pragma GCC poison x\n", "own-pragma"),
    "a file for the assembler": ('asm(".incbin \\"x\\"");\n', "own-incbin"),
}

_MACROS = "ABCDEF"
_BODIES = ("1", "0", "(A + B)", "B", "C A", "", "__LINE__", "c_##C", "__COUNTER__")


def _line(chance: Random, headers: Sequence[str]) -> str:
    one, other = chance.choice(_MACROS), chance.choice(_MACROS)
    ways = [
        f"#undef {one}\n#define {one} {chance.choice(_BODIES)}\n".replace("c_##C", "c_"),
        f"#ifndef {one}\n#define {one} {chance.choice(('1', '2', other))}\n#endif\n",
        f"#ifdef {one}\nint {one.lower()}_is_there;\n#elif defined({other})\nint {other};\n#else\nint none;\n#endif\n",
        f"#undef {one}\n",
        f"{one} {other}, PASTE({one}, {other}) UNIQUE(id) __LINE__ __FILE__\n",
        f"UNIQUE({one}) TEXT({other}) UNIQUE(x) PASTE(y, 2)\n",
        f"APPLY({one},\n {other})\n",
        f"static inline int f_{one}(int {other}) {{ return {one} + {other}; }}\n",
        "struct s { int a; long b; };\n",
    ]
    if headers:
        ways += [f'#include "{chance.choice(headers)}"\n'] * 3
        ways.append(f'#ifdef {one}\n#include "{chance.choice(headers)}"\n{other}\n#endif\n')
    return chance.choice(ways)


def made_headers(chance: Random) -> dict[str, str]:
    """Return headers by their names, the later ones with the earlier ones in them, that ask for macros and change them."""
    headers: dict[str, str] = {}
    for number in range(8):
        text = "".join(_line(chance, list(headers)) for _ in range(chance.randint(1, 5)))
        guard = chance.choice(("", "", "#pragma once\n", f"GUARD_{number}"))
        if guard.startswith("GUARD"):
            text = f"#ifndef {guard}\n#define {guard}\n{text}#endif\n"
        headers[f"made{number}.h"] = text if guard.startswith("GUARD") else guard + text
    return headers


def made_source(headers: Sequence[str], chance: Random) -> str:
    """Return a source that includes some of the headers in any order, with macros of its own before and between them."""
    text = (
        "#define CAT(a, b) a##b\n#define PASTE(a, b) CAT(a, b)\n#define UNIQUE(a) PASTE(PASTE(id_, a), __COUNTER__)\n"
        "#define STRING(x) #x\n#define TEXT(x) STRING(x)\n#define APPLY(f, x) f(x) x\nint first;\n"
    )
    return text + "".join(_line(chance, headers) for _ in range(chance.randint(3, 8))) + "int last;\n"
