// SPDX-License-Identifier: GPL-2.0-or-later
// What of a file, besides what it uses, the compiler has not yet read without a complaint.
#pragma once

#include "reach.h"
#include "store.h"

namespace front {

// Consecutive pieces of one header.
struct Run {
    uint32_t first, end;
    std::string hash;
};

std::vector<Run> runs_of(const Unit &unit, const Pieces &pieces);

// Keeps what compare needs of the runs.
bool keep_runs(const Store &store, const Unit &unit, const Pieces &pieces, const std::vector<Run> &runs);

// Marks every piece that is not as in the runs before, or mentions what is not, directly or by way of others.
// False when the runs before are no longer known.
bool changed(const Store &store, const Unit &unit, const Pieces &pieces, const std::vector<Run> &runs,
             const std::vector<std::string> &before, std::vector<bool> &marked);

}
