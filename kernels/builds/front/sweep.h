// SPDX-License-Identifier: GPL-2.0-or-later
// Goes through the objects of a finished build whose inputs have changed since, before make does.
#pragma once

#include "processes.h"
#include "settings.h"

namespace front {

// arguments: the folder of the objects, where make runs the compiler, and how many processes may work. An object that a compilation
// of today would make again gets the time of its newest input, so that make leaves it and all its recipe does; of others the answer
// is put beside them. Prints a line as make does for each object that stays. Returns a program's status.
int sweep(const Settings &settings, const Words &arguments);

}
