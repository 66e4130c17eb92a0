# SPDX-License-Identifier: GPL-2.0-or-later
# ruff: noqa: E101 - the C in here is indented as the kernel's is
import pytest

from kernels.repair.indentation import Indentation
from kernels.tests.damaging import POOL_C, POOL_C_AFTER, POOL_H

STATEMENTS = """\
int walk(struct tree *tree, int (*visit)(struct leaf *leaf, void *data),
	 void *data)
{
	struct leaf *leaf;
	int (*fn)(struct leaf *, void *) = visit;
	unsigned long flags, count = 0, very_long_name_of_a_variable,
		another;

	if (!tree)
		return -EINVAL;
	else if (tree->empty)
		return 0;
	else
		count++;

	for (leaf = first(tree); leaf; leaf = next(leaf))
		if (leaf->ready)
			count++;
		else
			count--;
	spin_lock_irqsave(&tree->lock, flags);

	do {
		count++;
	} while (count < 3);

	while (count) {
		/* a '{' or a "(" in a comment opens nothing */
		pr_debug("nor does { or ( in a string\\n");
		count--;
	}

	switch (tree->kind) {
	case TREE_A:
	case TREE_B: {
		int local = 1;

		count += local;
		break;
	}
	default:
		goto out;
	}
	if (tree->a &&
	    tree->b) {
		count = tree->a +
			tree->b;
	} else {
		/*
		 * Neither.
		 */
		count = call(tree,
			     call(tree->a, tree->b),
			     0);
	}
#ifdef CONFIG_TREE
	count = 0;
#endif
	return count == 0 ||
	       count == 1;
out:
	return fn(leaf, data);
}
EXPORT_SYMBOL_GPL(walk);

SYSCALL_DEFINE1(walk, int, number)
{
	return 0;
}
"""

DATA = """\
enum kind {
	KIND_A,
	KIND_B,
};

struct leaf {
	int a;	/* first of
		 * all
		 */
	union {
		long b;
		char c[8];
	};
};

static const struct operations leaf_operations = {
	.open	= leaf_open,
	.read	= leaf_read,
};

static int table[][2] = {
	{ 1, 2 },
	{ 3, 4 },
};

static inline void leaf_unlock(struct leaf *leaf)
	__releases(leaf)
{
	unlock(leaf);
}

static struct leaf *
leaf_find(struct tree *tree)
{
	return NULL;
}
"""


@pytest.mark.parametrize(
    "source",
    [POOL_C, POOL_C_AFTER, POOL_H, STATEMENTS, DATA],
    ids=["pool", "after", "header", "code", "data"],
)
def test_every_line_is_found_from_the_lines_before_it(source: str) -> None:
    layout = Indentation()
    for number, line in enumerate(source.split("\n"), 1):
        text = line.strip()
        if text:
            assert (number, layout.indent_for(text) + text) == (number, line.rstrip())
        layout.feed(line)


def test_continued_lines_begin_as_the_files_own_do() -> None:
    aligned, by_tabs = Indentation(), Indentation()
    for line in ["int first(struct a *a,", "\t  struct b *b);"]:
        aligned.feed(line)
    for line in ["int first(struct a *a,", "\t\tstruct b *b);"]:
        by_tabs.feed(line)
    for layout in (aligned, by_tabs):
        layout.feed("int another(struct a *a,")
    assert aligned.indent_for("struct b *b)") == "\t    "
    assert by_tabs.indent_for("struct b *b)") == "\t\t"


def test_a_replaced_line_shows_how_its_successor_begins() -> None:
    layout = Indentation()
    layout.feed("static struct leaf *leaf_find(struct tree *tree,")
    layout.replaced("\t\tint key)")
    assert layout.indent_for("int key, bool locked)") == "\t\t"


def test_a_macro_goes_on_with_a_tab() -> None:
    layout = Indentation()
    layout.feed("#define leaf_each(leaf, tree) \\")
    assert layout.indent_for("for (leaf = 0; leaf; leaf++)") == "\t"
    layout.feed("\tfor (leaf = 0; leaf; leaf++)")
    assert layout.indent_for("int next;") == ""
