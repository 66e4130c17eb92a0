// SPDX-License-Identifier: GPL-2.0-or-later
// The declarations of a preprocessed file, which of them its own text reaches, and what follows from that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "assembly.h"
#include "checks.h"
#include "digest.h"
#include "pieces.h"

namespace front {

class Declarations {
public:
    Unit unit;
    Reading reading;
    std::vector<bool> kept;    // by piece: reached
    std::vector<bool> hollow;  // by piece: a structure of which the tag is enough
    Pieces pieces;

    // Begins anew with another unit.
    void take(Unit next);

    // Splits the unit, and marks what is reached; returns why it cannot, or "".
    std::string find_kept();
    bool is_split() const { return is_split_; }
    // Keeps all that is mentioned in any way, with nothing hollow.
    void keep_mentioned();
    bool has_hollow() const;

    // Adds all of the file that has a say in its object.
    void add_kept(Blake2b &hash) const;
    // A character for each token that is kept: whether a macro brought it.
    std::string expanded() const;
    // Where the kept functions stand, in their order.
    std::vector<Place> places() const;

    bool is_unused(uint32_t number) const { return pieces.all[number].header && !kept[number]; }
    // Whether something uses each thing that must be used.
    bool all_used() const;
    // What to compile: the kept, those that have a say in the numbers of variables, and these numbers; and what of that is hollow.
    std::vector<bool> to_compile(const std::vector<uint32_t> &numbers, std::vector<bool> &hollow_there) const;
    // Marks these pieces and the pragmas, and what they and the marked reach.
    void mark(const std::vector<uint32_t> &numbers, std::vector<bool> &marked) const;
    // The marked pieces as a preprocessed file, with the tags of hollow ones.
    std::string text(const std::vector<bool> &marked, const std::vector<bool> &hollow_there = {}) const;

private:
    std::string tags(const Piece &piece) const;
    std::vector<uint32_t> idle(const std::vector<bool> &marked) const;
    void add_marker(const Token &token, std::string &written) const;
    void add_gcc_text(const Piece &piece, size_t &macro, std::string &written) const;
    void add_tokens(const Piece &piece, std::string &written) const;
    void add_places(const Piece &piece, std::vector<Place> &list) const;

    bool is_split_ = false;
};

}
