// SPDX-License-Identifier: GPL-2.0-or-later
// What #if and #elif ask.
#pragma once

#include "expansion.h"

namespace front {

// Reads the rest of the line. warns: gcc would complain of a name that is no macro.
bool condition_holds(Expansion &expansion, Macros &macros, uint32_t defined, bool warns);

}
