// SPDX-License-Identifier: GPL-2.0-or-later
// Which pieces a file's own text reaches through names, and hashes of them.
#pragma once

#include <string>
#include <vector>

#include "checks.h"
#include "outlines.h"
#include "pieces.h"

namespace front {

// Calls follow(name) for every name that a piece mentions, also within the texts of its attributes and pragmas.
template <typename Follow> void mentions(const Unit &unit, const Piece &piece, Follow follow);

// Marks what the marked pieces reach by any mention of a name.
void reach(const Unit &unit, const Pieces &pieces, std::vector<bool> &marked);

// Marks what the marked pieces reach as C resolves names: tags apart from other names, members not at all. Of a structure that they
// only point to, the tag is enough: it is hollow. Where a piece names one of its members and has something whose type leads to it, that
// member is needed, or the whole of an `entire` one. That nothing else needs its definition is for the compiler to confirm, which refuses
// to look for what it does not know.
void reach_as_used(const Unit &unit, const Pieces &pieces, const Reading &reading, const std::vector<bool> &entire, std::vector<bool> &marked,
                   Hollows &hollow);

// The tokens of a piece; those of code with the lines they are on, counted from the piece's first.
void add_content(const Unit &unit, const Piece &piece, std::string &content);

template <typename Follow> void mentions_in(const Unit &unit, std::string_view text, Follow follow) {
    auto in_word = [](unsigned char c) { return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    for (size_t at = 0; at < text.size();) {
        size_t stop = at;
        while (stop < text.size() && in_word(text[stop]))
            stop++;
        if (stop > at)
            if (auto name = unit.names.find(text.substr(at, stop - at)); name >= 0)
                follow(static_cast<uint32_t>(name));
        at = stop + 1;
    }
}

template <typename Follow> void mentions(const Unit &unit, const Piece &piece, Follow follow) {
    for (uint32_t at = piece.first; at < piece.end; at++) {
        const Token &token = unit.tokens[at];
        if (token.kind() == Kind::Word)
            follow(token.name);
        else if (token.kind() == Kind::Pragma || (token.kind() == Kind::Text && piece.always && piece.header))
            mentions_in(unit, token.view(), follow);
    }
}

}
