// SPDX-License-Identifier: GPL-2.0-or-later
// What of a file the compiler has read before without a complaint, in this file or in another.
#pragma once

#include <string>
#include <vector>

#include "pieces.h"

namespace front {

// Consecutive pieces of one header. The sum is over all that the compiler's complaints about them can come from: their
// tokens, what was declared before of the names and members that they mention, and the pragmas in force. Bodies of other functions are
// not among it, nor are numbers that only tell where in the file something stands.
struct Run {
    uint32_t first, end;
    std::string sum;  // first PATH bytes that the runs of one file share
};

inline constexpr size_t PATH = 8, SUM = 16;

// A structure that a type leads to: by a pointer, or as a whole that was not yet known there.
struct Behind {
    uint32_t tag;
    bool whole;
    bool operator==(const Behind &other) const { return tag == other.tag && whole == other.whole; }
};

struct Reading {
    std::vector<Run> runs;
    std::string sums;  // of the pieces, SUM bytes each
    std::string sum(uint32_t piece) const { return sums.substr(piece * SUM, SUM); }
    std::vector<uint32_t> uses;  // by name, how many pieces mention it that do not declare it, after one that does
    // By name, what the types of all that it declares lead to: as something ordinary, and as a member of any structure.
    std::vector<std::vector<Behind>> ordinary, members;
};

Reading read_runs(const Unit &unit, const Pieces &pieces);

}
