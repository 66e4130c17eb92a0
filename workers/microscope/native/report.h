/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KPERFLAB_REPORT_H
#define KPERFLAB_REPORT_H

#include <stdbool.h>

/* Writes the call tree as PATH.NUMBER; complete or not at all. Returns false, with a message, if it cannot. */
bool report_tree(const char *path, unsigned int number, unsigned int windows_seen, bool whole);

#endif
