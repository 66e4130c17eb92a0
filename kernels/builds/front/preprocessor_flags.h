// SPDX-License-Identifier: GPL-2.0-or-later
// What the flags of a command line say to the preprocessor.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "arguments.h"

namespace front {

struct PreprocessorFlags {
    std::vector<std::pair<std::string, bool>> folders;  // of headers, in order; whether for names in quotes alone
    std::vector<std::string> macros;                    // directives that define or undefine one
    std::vector<std::string> included;                  // files to be read first
    std::vector<std::string> renamed;                   // OLD=NEW, beginnings of __FILE__
    bool warns_undefined = false;                       // of a macro in #if
    bool warns_trigraphs = true;                        // in comments, and in what is skipped, too
};

// Throws Unfit where a flag, or the environment, says something that our preprocessor does not know.
PreprocessorFlags read_preprocessor_flags(const Plan &plan);

}
