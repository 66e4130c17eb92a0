// SPDX-License-Identifier: GPL-2.0-or-later
// Whether a declaration may depend on more of the structures behind its pointers than on the members that it names.
#pragma once

#include "piece.h"

namespace front {

class Looks {
public:
    Looks(const std::vector<Token> &tokens, const Piece &piece) : tokens_(tokens), piece_(piece) {}

    // Whether this token may look at the whole of a structure. To be asked of each token of the piece, in order.
    bool at(uint32_t at);

private:
    bool sums_addresses(uint32_t at) const;
    bool defines(uint32_t at) const;
    void note_pointer(uint32_t at);
    bool second_declarator(const Token &token);

    const std::vector<Token> &tokens_;
    const Piece &piece_;
    int round_ = 0, loop_ = -1, pointed_ = -1;  // open parentheses: now, within the last "for", where a pointer was declared
};

}
