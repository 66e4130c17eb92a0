// SPDX-License-Identifier: GPL-2.0-or-later
// A compiler's command line, as far as it is understood.
#pragma once

#include <string>
#include <vector>

namespace front {

struct Plan {
    std::string reason;                // why the command is run as it is, or ""
    std::vector<std::string> compile;  // what has a say in the code
    std::vector<std::string> before;   // what only the preprocessor reads, dependency files among it
    std::string input, output;
    bool lines = false;                // line tables are wanted (-g1)
    bool aliases = false;              // what pointers point to tells the compiler nothing (-fno-strict-aliasing)
};

Plan read_arguments(const std::vector<std::string> &arguments);

}
