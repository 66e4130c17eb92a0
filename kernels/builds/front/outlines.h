// SPDX-License-Identifier: GPL-2.0-or-later
// Outlines of structures: a definition in which some members stand where they are, and the others are room.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pieces.h"

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

// "struct TAG" or "union TAG", of a piece that defines it.
std::string tag_of(const Unit &unit, const Piece &piece);
// The members' declarations of a piece that defines a structure and nothing else; none where it has few, or what an outline would not keep.
std::vector<Member> members_of(const Unit &unit, const Piece &piece);

// What makes the compiler tell a layout in assembly, under this name.
std::string layout_question(const Unit &unit, const Piece &piece, const std::vector<Member> &members, const std::string &name);
// Reads its answer; false where there is none.
bool read_layout(const std::string &assembly, const std::string &name, size_t members, Layout &layout);
// Functions by which gcc shows whether it takes a parameter apart that points to the structure of any of these pieces: one by one they pass
// it on, to where a field is read. gcc's IPA-SRA does so unless the structure is empty, has 64 KiB, a volatile field or an array without a
// size, at any depth (create_parameter_descriptors, type_internals_preclude_sra_p); or never, with some flags.
std::string example(const Unit &unit, const Pieces &pieces, const std::vector<uint32_t> &numbers);
// Whether it did, by the assembly of these functions.
bool takes_apart(const std::string &assembly, uint32_t number);

// The definition with the needed members, and a static assertion that they are where they were. The room is constant, so that nothing can
// copy the structure. sized: also that it has its size.
std::string outline(const Unit &unit, const Piece &piece, const std::vector<Member> &members, const std::vector<bool> &needed, const Layout &layout,
                    bool sized);

}
