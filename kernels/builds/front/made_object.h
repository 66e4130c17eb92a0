// SPDX-License-Identifier: GPL-2.0-or-later
// An object of a finished build, as kbuild's ".NAME.o.cmd" describes it (scripts/basic/fixdep.c).
#pragma once

#include <string>

#include "processes.h"

namespace front {

struct MadeObject {
    std::string path;
    Words arguments;  // of the compiler
    Words inputs;
    Words symbols;  // files of the config's symbols, which need not be there

    // False where the file is not one that this compiler's call left, or has words that only a shell understands.
    bool read(const std::string &path_of_command, const std::string &compiler);
};

}
