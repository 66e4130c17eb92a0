// SPDX-License-Identifier: GPL-2.0-or-later
// The file of dependencies that gcc leaves for make.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"

namespace front {

// Where the plan wants it, or "".
std::string dependency_file(const Plan &plan);

// Its text; false where gcc would write a name in another way.
bool dependencies(const Plan &plan, const std::vector<std::string_view> &files, std::string &text);

}
