// SPDX-License-Identifier: GPL-2.0-or-later
// Reads a file with its headers as gcc -E and read_tokens() would, at a part of the cost.
#pragma once

#include <string>
#include <vector>

#include "arguments.h"
#include "tokens.h"

namespace front {

// Returns why gcc must preprocess, or "": then the unit is read, and these files were.
// builtins: what gcc -dM -E says to question().
std::string preprocess(const Plan &plan, const std::string &builtins, Unit &unit, std::vector<std::string_view> &files);

// Takes the tokens of a file that is done with as room for the next file's.
void reuse(std::vector<Token> tokens);

// From now on keeps what is read of headers for the next file: for a process that reads many.
void keep_segments();

}
