# SPDX-License-Identifier: GPL-2.0-or-later
"""Declarations in forms that a splitter may misread, each of which could change what a file compiles to.

T is a name that the file uses, E what the declaration does to it, N a number of its own, D another declaration.
"""

import random
import re

EFFECTS = (
    "__attribute__((cold))",
    "__attribute__((weak))",
    "__attribute__((noreturn))",
    "__attribute__((const))",
    '__attribute__((visibility("hidden")))',
    'asm("kp_other")',
    "__attribute__((__warn_unused_result__)) __attribute__((__weak__))",
    "[[gnu::weak]]",
    "",
)
DECLARATIONS = (
    "extern __typeof__(T) T E;",
    "E extern __typeof__(T) T;",
    "extern E __typeof__(T) T;",
    "extern __typeof__(T) kpN, T E;",
    "extern __typeof__(T) kpN, *kp_pN, (*kp_qN)[2], T E;",
    "extern __typeof__(T) T E, kpN;",
    "__typeof__(T) T E;",
    "__typeof__(T) kpN, T E;",
    "__typeof__(T) extern T E;",
    "extern __typeof__(T) (T) E;",
    "extern __typeof__(T)\n#pragma GCC poison kp_poisonN\nT E;",
    "__extension__ extern __typeof__(T) T E;",
    "typedef __typeof__(T) kp_tN; extern kp_tN T E;",
    "typedef __typeof__(T) kp_tN; kp_tN T E;",
    "typedef __typeof__(T) kp_tN, kp_uN; kp_uN kpN, T E;",
    "kp_tN extern T E;\n",
    "kp_tN T E;\n",
)
BODIES = (
    "static inline int kp_fN(void) { D return 1; }",
    "static inline int kp_fN(int a) { if (a) { D } return 1; }",
    "static inline int kp_fN(int a) { return a + ({ D 1; }); }",
    "static inline int kp_fN(void) { for (;;) { D break; } return 1; }",
    "static inline int kp_fN(int a) { switch (a) { default:; D } return 1; }",
    "static inline int kp_fN(int a) { lab:; D if (a--) goto lab; return 1; }",
    "static __attribute__((unused)) int kp_fN(void) { int b = 1; D return b; }",
    "extern inline __attribute__((gnu_inline)) int kp_fN(void) { D return 1; }",
    "static inline int kp_fN(a) int a; { D return a; }",
    "static inline struct kp_sN { int b; } kp_fN(void) { D return (struct kp_sN){ 1 }; }",
    "static inline int kp_fN(int a) { int kp_b(void) { D return a; } return kp_b(); }",
    "static inline int kp_fN(void) <% D return 1; %>",
    "typedef __typeof__(T) kp_tN; static inline int kp_fN(void) { D return 1; }",
)
OTHERS = (
    "static const int kpN [[gnu::used]] = 1;",
    "static const int kpN __attribute__((used)) = 1;",
    "__attribute__((used)) static const int kpN = 1;",
    "static const int __attribute__((__used__)) kpN = 1;",
    "static const int kp_aN = 2, kpN __attribute__((used)) = 1;",
    "static const struct { int a; } __attribute__((used)) kpN = { 1 };",
    "static const struct __attribute__((packed)) { int a; } kpN __attribute__((used)) = { 1 };",
    "static inline int kpN(void) __attribute__((used)); static inline int kpN(void) { return 2; }",
    "static inline int kpN(void) { return 2; } static inline int kpN(void) __attribute__((used));",
    "static inline int kpN(void) { return 2; } extern __typeof__(kpN) kp_aN __attribute__((alias(\"kpN\")));",
    "extern __typeof__(T) kp_aN __attribute__((alias(\"T\")));",
    "inline int kpN(void) { return 1; } extern int kpN(void);",
    "extern int kpN(void); inline int kpN(void) { return 1; }",
    "extern inline int kpN(void) { return 3; }",
    "int kpN; extern int kpN;",
    "int kpN[4], kp_aN(void);",
    "int kp_aN(void), kpN;",
    "int (*kpN)(void);",
    "int (kpN) = sizeof(struct kp_sN { int a; });",
    "struct kp_sN { int a; } kpN;",
    "enum kp_eN { KP_AN, KP_BN = sizeof(struct { int b; }) } kpN = KP_BN;",
    "typedef int kp_tN, (*kp_uN)(void); kp_tN kpN; kp_uN kp_aN;",
    "kpN() { return 1; }",
    "int kpN(a, b) int a; long b; { return a + b; }",
    "static int kpN(void) { return 4; } static const void *kp_aN __attribute__((used)) = kpN;",
    "static inline int *kpN(void) { static int s; return &s; }",
    "static inline const char *kpN(void) { return __func__; }",
    "static inline int kpN(int a) { static void *to[] = { &&l }; goto *to[a]; l: return 1; }",
    "asm(\".globl kpN\");",
    "__asm__ volatile(\".pushsection .kp; .long 1; .popsection\");",
    "_Static_assert(1, \"one\"); int kpN;",
    "; int kpN;",
    "#pragma weak T",
    "#pragma weak kpN=T",
    "#pragma redefine_extname T kp_other",
    "#pragma GCC visibility push(hidden)\nextern __typeof__(T) T;\n#pragma GCC visibility pop",
    "#pragma GCC visibility push(hidden)",
    "#pragma pack(push, 1)",
    "#pragma GCC optimize (\"O1\")",
    "#pragma clang section bss=\".kp\"",
    "extern __typeof__(T) __attribute__((section(\".kp\"))) T;",
    "double exp(double) asm(\"kp_exp\"); static inline double kpN(double a) { return exp(a); }",
    "long popcount(long) asm(\"kp_popcount\");",
    "register unsigned long kpN asm(\"r15\");",
    "_Thread_local int kpN;",
    "static const int kpN<:2:> = <% 1, 2 %>; int kp_aN;",
    "struct kp_sN <% int a; %>; int kpN = sizeof(struct kp_sN);",
    "static const int kp_aN = 1; static const int *const kpN __attribute__((used)) = &kp_aN;",
    "_Noreturn extern __typeof__(T) T;",
    "static inline __attribute__((always_inline)) int kpN(void) { return 1; } int kp_aN(void) { return kpN(); }",
)  # fmt: skip
# The input uses these as well: what they mean must not be lost.
USES = (
    "double kp_uN(double a) { return __builtin_exp(a); }",
    "int kp_uN(long a) { return __builtin_popcountl(a); }",
    "int kp_uN(void) { extern __typeof__(T) T; return (long)&T; }",
    "void *kp_uN(void) { return &T; }",
    "void *kp_uN(void) { extern int kp_zN(void); return &kp_zN; }",
)


def declarations(names: list[str], number: int, chance: random.Random) -> str:
    """Return one or two declarations about these names, with a number of their own."""
    some = []
    for at in range(chance.choice((1, 1, 1, 2))):
        text = chance.choice(OTHERS)
        if chance.random() < 0.7:
            text = chance.choice(DECLARATIONS)
            if chance.random() < 0.6:
                text = chance.choice(BODIES).replace(" D ", f" {text} ")
            text = re.sub(r"\bE\b", chance.choice(EFFECTS), text)
        some.append(_named(text, names, number * 4 + at, chance))
    return "\n".join(some)


def use(names: list[str], number: int, chance: random.Random) -> str:
    """Return a function for the input itself."""
    return _named(chance.choice(USES), names, number, chance)


def _named(text: str, names: list[str], number: int, chance: random.Random) -> str:
    name = chance.choice(names)
    return re.sub(r"(?<=[a-zA-Z_])N\b|\bT\b", lambda match: name if match[0] == "T" else str(number), text)
