// SPDX-License-Identifier: GPL-2.0-or-later
// Which structures an expression of a function's body may be the value of, or point to, as far as '*' and '[' give them: no name in it
// has the structure's type then. This follows the grammar of C's expressions (C11 6.5, and gcc's "({ })", "?:" and __builtin_choose_expr);
// what it does not follow counts with all its names.
#pragma once

#include <functional>
#include <vector>

#include "piece.h"

namespace front {

class Values {
public:
    // need: called with the tokens of each name, first and end, whose type leads to such a structure.
    Values(const Unit &unit, std::function<void(uint32_t, uint32_t)> need);

    // Reads an expression.
    void read_value(const Piece &piece, uint32_t first, uint32_t end);
    // Reads the arguments of a call, or an operand of assembly, within the parentheses that begin here.
    void read_arguments(const Piece &piece, uint32_t open);

private:
    // depth: how often what has the expression's value is followed, by '*' or '['.
    void read(uint32_t first, uint32_t end, int depth);
    bool read_within(uint32_t first, uint32_t end, int depth);
    bool read_parts(uint32_t first, uint32_t end, int depth);
    bool read_cast(uint32_t first, uint32_t end, int depth);
    void read_operand(uint32_t first, uint32_t end, int depth);
    void read_element(uint32_t first, uint32_t open, int depth);
    void read_list(uint32_t open, int depth);
    uint32_t last_part(uint32_t first, uint32_t end) const;
    uint32_t last_statement(uint32_t first, uint32_t end) const;
    uint32_t after_operand(uint32_t at, uint32_t end) const;
    bool is_cast(uint32_t open, uint32_t end) const;
    uint32_t behind(uint32_t at) const { return front::behind(tokens_, at, end_); }

    const std::vector<Token> &tokens_;
    const std::function<void(uint32_t, uint32_t)> need_;
    const int64_t choose_, generic_;
    uint32_t end_ = 0;  // of the piece
};

}
