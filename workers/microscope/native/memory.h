/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that costs nothing until it is touched. */
#ifndef KPERFLAB_MEMORY_H
#define KPERFLAB_MEMORY_H

#include <stddef.h>

/* Zeroed bytes, which are never given back; ends the process, with a message, where there are none. */
void *zeroed_memory(size_t bytes);

#endif
