/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of the kernel's inode cache: empty it, starve it, look at it. */
#ifndef STAT_WALK_CACHE_H
#define STAT_WALK_CACHE_H

#include <stdbool.h>

void drop_caches(bool pages_too);
void take_ballast(unsigned long inodes);
void report_cached(void);

#endif
