# SPDX-License-Identifier: GPL-2.0-or-later
"""Sources that point to structures, and declarations that look at what pointers lead to, for the front's tests."""

from __future__ import annotations

from dataclasses import dataclass

# A structure that gets a field before its others, and sources that know of it. Whether the store still answers, and whether the
# source seemed to need less than it does ("mentioned").
FAR = """struct far { long first; int second; };
struct near { struct far *far; int width; struct near *next; };
extern struct far *get_far(struct near *near);
extern void put_far(struct far *far);
extern struct far there;
typedef struct far *far_t;
void *memcpy(void *to, const void *from, unsigned long size);
"""
MORE = ("long first;", "long more; long first;")


@dataclass(frozen=True, slots=True)
class Pointing:
    """A source that includes FAR, and whether its object depends on what is in a `struct far`."""

    name: str
    source: str
    hit: bool
    mentioned: bool = False


POINTING = [
    Pointing("passes it on", "void entry(struct near *a) { put_far(get_far(a)); }", hit=True),
    Pointing("keeps it", "struct far *kept; void entry(struct near *a) { kept = a->far; }", hit=True),
    Pointing("compares it", "int entry(struct near *a, struct far *b) { return a->far == b; }", hit=True),
    Pointing(
        "has a variable of its name",
        "int entry(struct near *a) { int far = a->width; return far; }",
        hit=True,
    ),
    Pointing(
        "has a list of them", "struct far *const list[4]; void *entry(int at) { return list[at]; }", hit=True
    ),
    Pointing("has a member", "long entry(struct near *a) { return a->far->first; }", hit=False),
    Pointing(
        "has a member of a call's result",
        "long entry(struct near *a) { return get_far(a)->first; }",
        hit=False,
    ),
    Pointing("has a member by a type's name", "long entry(far_t a) { return a->first; }", hit=False),
    Pointing(
        "has a member by a member's type's name",
        "struct own { far_t to; }; long entry(struct own *a) { return a->to->first; }",
        hit=False,
    ),
    Pointing(
        "has a member of what a member's function gives",
        "struct own { far_t (*give)(int first); }; long entry(struct own *a) { return a->give(1)->first; }",
        hit=False,
    ),
    Pointing(
        "has a member of what is in a list",
        "typedef struct own { struct far *list[2]; } own_t; long entry(own_t *a) { return a->list[1]->first; }",
        hit=False,
    ),
    Pointing(
        "has a member of a conversion",
        "long entry(void *a) { return ((struct far *)a)->first; }",
        hit=False,
    ),
    Pointing(
        "has a member through another's type",
        "struct own { struct far *to; }; long entry(struct own *a) { __typeof__(a->to) b = a->to; return b->first; }",
        hit=False,
    ),
    Pointing(
        "names a member of another",
        "struct own { long first; }; long entry(struct own *a) { return a->first; }",
        hit=True,
    ),
    Pointing(
        "names a member that both have",
        "struct own { long first; struct far *far; }; long entry(struct own *a) { return a->first; }",
        hit=True,
    ),
    Pointing("asks for its size", "int entry(void) { return sizeof(struct far); }", hit=False),
    Pointing(
        "asks for the size of what is there",
        "int entry(struct near *a) { return sizeof(*a->far); }",
        hit=False,
        mentioned=True,
    ),
    Pointing(
        "goes to the next",
        "struct far *entry(struct near *a) { return a->far + 1; }",
        hit=False,
        mentioned=True,
    ),
    Pointing("copies one", "void entry(struct far *a, struct far *b) { *a = *b; }", hit=False),
    Pointing(
        "copies one of two",
        "void entry(struct far *a, struct far *b) { a[0] = *(b + 0); }",
        hit=False,
        mentioned=True,
    ),
    Pointing("copies bytes of one", "void entry(struct far *a, void *b) { memcpy(a, b, 16); }", hit=False),
    Pointing(
        "copies bytes of a member's",
        "void entry(struct near *a, void *b) { memcpy(b, a->far, 16); }",
        hit=False,
    ),
    Pointing(
        "copies bytes after a cast",
        "void entry(void *a, void *b) { memcpy((struct far *)a, b, 16); }",
        hit=False,
    ),
    Pointing("has another name for it", "far_t entry(far_t a) { return a; }", hit=False),
    Pointing("takes an address", "void *entry(void) { return &there; }", hit=False),
    Pointing(
        "declares two at once", "extern struct far *some, any; void *entry(void) { return &any; }", hit=False
    ),
    Pointing(
        "declares two within", "void *entry(void) { extern struct far *some, any; return &any; }", hit=False
    ),
    Pointing(
        "finds where a member is",
        "long entry(void) { return __builtin_offsetof(struct far, second); }",
        hit=False,
    ),
    Pointing("begins one", "struct far entry = { .second = 1 };", hit=False),
    Pointing(
        "asks for its type",
        "int entry(struct far *a) { __typeof__(*a) b; return sizeof(b); }",
        hit=False,
    ),
]

# Declarations after FAR that nobody uses, and a change of `struct far` with which they do not compile.
BEHIND = {
    "a structure that was unknown where its pointer is": (
        "struct hand { struct late *held; };\nstruct late { struct far inner; };\n"
        "static inline int behind(struct hand *hand) { return hand->held->inner.second; }\n",
        "int second;",
        "int third;",
    ),
    "a function's result": (
        "struct far *give(void);\nstatic inline int behind(void) { return give()->second; }\n",
        "int second;",
        "int third;",
    ),
    "a member of a member": (
        "struct hand { struct far *held; };\nstatic inline int behind(struct hand *hand) { return hand->held->second; }\n",
        "int second;",
        "int third;",
    ),
    "another name for the pointer": (
        "static inline int behind(far_t held) { return held->second; }\n",
        "int second;",
        "int third;",
    ),
    "a size": (
        "struct hand { struct far *held; };\nextern int behind[sizeof(((struct hand *)0)->held->second)];\n",
        "int second;",
        "int third;",
    ),
    "a second declarator": (
        "struct behind { struct far *far, whole; };\n",
        "{ long first; int second; }",
        "",
    ),
    "a constant member by its pointer": (
        "static inline void behind(struct near *a) { a->far->second = 1; }\n",
        "int second;",
        "const int second;",
    ),
    "all of it at once": (
        "static inline void behind(struct far *a, struct far *b) { if (a) *a = *b; }\n",
        "int second;",
        "const int second;",
    ),
    "one of several": (
        "static inline void behind(struct far *a) { a[0] = a[1]; }\n",
        "int second;",
        "const int second;",
    ),
    "a type named before it is known": (
        "typedef struct later later_t;\nstruct later { struct far inner; };\n"
        "static inline void behind(later_t *a, later_t *b) { *a = *b; }\n",
        "int second;",
        "const int second;",
    ),
    "a variable of a type named before it is known": (
        "typedef struct later later_t;\nstruct later { struct far inner; };\n"
        "static inline void behind(void) { later_t a = {{1, 2}}; (void)a; }\n",
        "{ long first; int second; }",
        "{ long first; }",
    ),
    "its size within a body": (
        "static inline int behind(struct near *a) { return sizeof(char[sizeof(*a->far) == 16 ? 1 : -1]); }\n",
        "int second;",
        "int second[4];",
    ),
    "steps of its size": (
        "static inline struct far *behind(struct near *a) { return a->far + 1; }\n",
        "struct far { long first; int second; };",
        "struct far;",
    ),
    "a second declarator within a body": (
        "static inline void *behind(void) { struct far *held, whole = {1, 2}; held = &whole; return held->first ? 0 : held; }\n",
        "{ long first; int second; }",
        "{ long first; }",
    ),
    "a second declarator of a loop": (
        "static inline void behind(void) { for (struct far *held = 0, whole = {1, 2}; held != &whole; held++); }\n",
        "{ long first; int second; }",
        "{ long first; }",
    ),
    "an address in it": (
        "static inline int *behind(struct near *a) { return &a->far->second; }\n",
        "{ long first; int second; }",
        "{ char first; int second; } __attribute__((packed))",
    ),
    "another kind of tag": ("extern void behind(struct far *far);\n", "struct far {", "union far {"),
}
