/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that costs nothing until it is touched. */
#ifndef KPERFLAB_MEMORY_H
#define KPERFLAB_MEMORY_H

#include <stddef.h>

/* Zeroed bytes; ends the process, with a message, where there are none. */
void *zeroed_memory(size_t bytes);
/* The same, in place of `memory`, which was returned before or is NULL; memory of the same size stays where it is. */
void *zeroed_again(void *memory, size_t bytes_before, size_t bytes);

#endif
