/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef KPERFLAB_REPLAY_REPORT_H
#define KPERFLAB_REPLAY_REPORT_H

#include <cstdio>

#include "replay.h"

/* Prints the result of a replay as one JSON document of bounded size (workers/microscope/contention.py reads it). */
void print_report(FILE *out, Replay &replay);

#endif
