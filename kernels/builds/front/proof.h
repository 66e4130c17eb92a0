// SPDX-License-Identifier: GPL-2.0-or-later
// Answers that are compiled all the same.
#pragma once

#include <string>

#include "processes.h"

namespace front {

// True once in so many calls, by chance, so that no file is always or never among them; 0 is never.
bool is_drawn(unsigned among);

// Whether two objects are the same but for their debugging information.
bool same_code(const std::string &one, const std::string &other, const Temporary &temporary);

}
