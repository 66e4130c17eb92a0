/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The call tree of everything that was executed: nodes are functions, each below the one that called it. */
#ifndef KPERFLAB_TREE_H
#define KPERFLAB_TREE_H

#include <stdbool.h>
#include <stdint.h>

#define MOST_CPUS 256
/* Node numbers are smaller than two to this. */
#define NODE_BITS 20

/* Where trees begin. A function without a known caller stands below the root of its sort. */
enum root { ROOT_NONE, ROOT_PROGRAM, ROOT_THREAD, ROOT_INTERRUPT, ROOTS };

/* Never changes once it is in the tree. */
struct node {
	uint64_t function; /* its first address; of a root, its number */
	uint32_t parent;
	uint32_t padding;
};

/* Of a node, on one virtual CPU. */
struct counts {
	uint64_t instructions; /* executed in the function itself, inside windows */
	uint64_t calls;
};

extern struct node *nodes;

/* most: at most two to NODE_BITS. */
void tree_begin(uint32_t most);
/* A number that changes with each tree_begin(). */
uint32_t tree_number(void);
/* The node of a function below another; `parent` itself once no more nodes fit (see tree_is_full()). */
uint32_t tree_child(uint32_t parent, uint64_t function);
/* A virtual CPU's counts by node, which only its own thread changes. */
struct counts *tree_counts(unsigned int cpu);
/* A node's counts on all virtual CPUs together. */
struct counts tree_sum(uint32_t node);
uint32_t tree_size(void);
bool tree_is_full(void);

#endif
