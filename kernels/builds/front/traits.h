// SPDX-License-Identifier: GPL-2.0-or-later
// What gcc asks of a structure as a whole, whichever members a file names. IPA-SRA passes on no member of a structure that has a volatile
// field or an array without a size (type_internals_preclude_sra_p), and the structure's own alignment decides how a member's place is written
// as a sum (start_record_layout).
#pragma once

#include <string>
#include <unordered_map>

#include "checks.h"
#include "pieces.h"

namespace front {

class Traits {
public:
    Traits() = default;
    Traits(const Unit &unit, const Pieces &pieces, const Reading &reading);

    // The same text only where these are the same: the attributes of a piece that defines a structure, and the declarations in it, or in what
    // it holds, in which something is volatile or has no size. All that a piece needs where it has a typeof.
    std::string of(const Unit &unit, uint32_t number, const Piece &piece) const;

private:
    std::unordered_map<uint32_t, std::string> sums_;  // by piece; few have any
};

}
