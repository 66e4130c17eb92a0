// SPDX-License-Identifier: GPL-2.0-or-later
// Which declarations make nothing by themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "piece.h"

namespace front {

// Returns whether nothing comes of a piece by itself, however little of it is used. Adds the names that it declares, and notes in the
// piece whether the compiler complains if nobody mentions or completes it.
bool is_passive(const Unit &unit, Piece &piece, std::vector<uint32_t> &names);

}
