// SPDX-License-Identifier: GPL-2.0-or-later
// The top-level declarations of a file, and what each of them declares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "piece.h"

namespace front {

// How a piece declares a name.
enum class Declares : uint8_t {
    Ordinary,
    Nested,    // from within a body or parameters
    Struct,    // the tag alone
    Union,
    Enum,
    Tag,       // the tag with what it stands for
    LocalTag,  // the same, in a body
    Local,     // the tag alone, within a body or parameters
};

struct Pieces {
    std::vector<Piece> all;
    std::vector<uint32_t> names;  // that the pieces declare: names_at to names_end
    std::vector<Declares> how;

    // The pieces that declare a name are by_name[from[name]] to by_name[from[name + 1]], in order.
    std::vector<uint32_t> from, by_name;
    std::vector<Declares> how_by_name;  // beside by_name
};

// Returns why the file is not understood, or "".
std::string split(const Unit &unit, Pieces &pieces);

}
