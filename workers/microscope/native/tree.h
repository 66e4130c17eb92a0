/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The call tree of everything that was executed: nodes are functions, each below the one that called it. */
#ifndef KPERFLAB_TREE_H
#define KPERFLAB_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* Where trees begin. What has no known caller stands below the root of its sort. */
enum root { ROOT_NONE, ROOT_PROGRAM, ROOT_THREAD, ROOT_INTERRUPT, ROOTS };

struct node {
	uint64_t function; /* its first address; of a root, its number */
	uint32_t parent;
	uint32_t padding;
	uint64_t instructions; /* executed in the function itself, inside windows */
	uint64_t calls;
};

extern struct node *nodes;

void tree_begin(uint32_t most);
/* The node of a function below another; `parent` itself once no more nodes fit (see tree_is_full()). */
uint32_t tree_child(uint32_t parent, uint64_t function);
uint32_t tree_size(void);
bool tree_is_full(void);

#endif
