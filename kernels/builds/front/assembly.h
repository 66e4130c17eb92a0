// SPDX-License-Identifier: GPL-2.0-or-later
// The compiler's assembly with line numbers that can move.
#pragma once

#include <string>
#include <vector>

#include "piece.h"

namespace front {

// A piece of code whose lines the assembly may name: its number among the kept pieces of code is its place in the list.
struct Place {
    std::string_view file;
    uint32_t line, last_line;
};

// Rewrites assembly so that lines are given as "place:offset", and leaves of the debugging information what names a
// line. Returns whether every line was found in exactly one place, or in several that begin on one line.
bool loosen(std::string_view assembly, const std::vector<Place> &places, std::string &loose,
            std::vector<std::pair<uint32_t, uint32_t>> &together);

// The way back, with the lines on which the places begin now.
bool fix(std::string_view loose, const std::vector<uint32_t> &lines, std::string &assembly);

}
