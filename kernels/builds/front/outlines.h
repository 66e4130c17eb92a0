// SPDX-License-Identifier: GPL-2.0-or-later
// Outlines of structures: a definition in which some members stand where they are, and the others are room.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "piece.h"

namespace front {

// A declaration of members in a structure's definition, with its ';'.
struct Member {
    uint32_t first, end;     // tokens
    uint32_t name, last;     // tokens: the first name and the last one; NO_NAME where there is none to ask for
    bool bits;               // of fields that share bytes with others
};

// Which declarations of members are needed, by the piece that defines the structure.
using Parts = std::map<uint32_t, std::vector<bool>>;

// Structures of which a file does not need all.
struct Hollows {
    std::vector<bool> is;  // by piece
    Parts parts;           // of those that are more than a tag
    bool operator!=(const Hollows &other) const { return is != other.is || parts != other.parts; }
};

// Where a structure's members are, in bytes.
struct Layout {
    uint64_t size = 0, alignment = 0;
    std::vector<uint64_t> begins, ends;  // UNKNOWN where it has no such name

    static constexpr uint64_t UNKNOWN = UINT64_MAX;
};

// "struct TAG", of a piece that defines it.
std::string tag_of(const Unit &unit, const Piece &piece);
// The members' declarations of a piece that defines a structure and nothing else; none where it has few, or what an outline would not keep.
std::vector<Member> members_of(const Unit &unit, const Piece &piece);

// What makes the compiler tell a layout in assembly, under this name.
std::string layout_question(const Unit &unit, const Piece &piece, const std::vector<Member> &members, const std::string &name);
// Reads its answer; false where there is none.
bool read_layout(const std::string &assembly, const std::string &name, size_t members, Layout &layout);

// The definition with the needed members, and a static assertion that they are where they were. The room is constant, so that nothing can
// copy the structure. sized: also that it has its size.
std::string outline(const Unit &unit, const Piece &piece, const std::vector<Member> &members, const std::vector<bool> &needed, const Layout &layout,
                    bool sized);

}
