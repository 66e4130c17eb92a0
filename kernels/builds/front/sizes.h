// SPDX-License-Identifier: GPL-2.0-or-later
// Structures on whose size a piece may depend in a way that the compiler does not tell of (Compiler::tree): values outside of functions,
// attributes, types that a function defines, variables and values that are copies, '++' and '--'.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checks.h"
#include "piece.h"
#include "values.h"

namespace front {

class Sizes {
public:
    // need: called with the tag of each such structure.
    Sizes(const Unit &unit, const Reading &reading, std::function<void(uint32_t)> need);

    // These tokens of a piece come next.
    void begin(const Piece &piece, uint32_t first, uint32_t end);
    void read(uint32_t at);
    // All of them were read.
    void end();
    // The piece says that what has this name points to the structure.
    void point(uint32_t name, uint32_t tag) { locals_[name].push_back(tag); }
    // Tags of what may have the member behind this '.' or "->": of NAME, its call or its element; none where that is not known.
    std::vector<uint32_t> owners(uint32_t mark) const;

private:
    bool measures(const Token &token) const { return token.kind() == Kind::Word && measures_[token.name]; }
    uint32_t behind(uint32_t at) const { return front::behind(tokens_, at, piece_->end); }
    uint32_t before(uint32_t end) const { return front::before(tokens_, end, piece_->first); }
    uint32_t operand_before(uint32_t end) const;
    bool is_taken(uint32_t at) const;
    void read_count(uint32_t at);
    void read_operand(uint32_t at);
    uint32_t read_typeof(uint32_t at);
    void read_auto(uint32_t at);
    void read_named_type(uint32_t at);
    void read_restrict(uint32_t at);
    void read_choice(uint32_t at);
    void read_volatile(uint32_t at);
    bool is_sum(uint32_t first, uint32_t at) const;
    void read_sums(uint32_t at, uint32_t end);
    void need_value(uint32_t first, uint32_t end);
    void read_value(uint32_t first, uint32_t end);
    void read_sizes(uint32_t first, uint32_t end);
    void read_definition(uint32_t at);
    std::vector<uint32_t> leads_to(uint32_t at) const;
    uint32_t deciding_member(uint32_t first, uint32_t end) const;
    void lead(uint32_t name, uint32_t first, uint32_t end);
    void need_all(uint32_t first, uint32_t end);

    const std::vector<Token> &tokens_;
    const Reading &reading_;
    const std::function<void(uint32_t)> need_;
    std::vector<bool> measures_;  // names that ask for a size
    int64_t auto_, argument_;
    Values values_;
    const Piece *piece_ = nullptr;
    bool measured_ = false;  // what is before a body was read
    uint32_t asked_ = 0;  // where a question for a type or a size ends
    std::vector<std::pair<uint32_t, uint32_t>> values_at_;  // to be read once all names of the piece are known
    std::unordered_map<uint32_t, std::vector<uint32_t>> locals_;  // of the piece's own names, tags of what they point to
};

}
