// SPDX-License-Identifier: GPL-2.0-or-later
#include "reach.h"

namespace front {

void reach(const Unit &unit, const Pieces &pieces, std::vector<bool> &marked) {
    std::vector<bool> followed(unit.names.count());
    std::vector<uint32_t> work;
    for (uint32_t number = 0; number < pieces.all.size(); number++)
        if (marked[number])
            work.push_back(number);
    auto follow = [&](uint32_t name) {
        if (followed[name])
            return;
        followed[name] = true;
        for (uint32_t at = pieces.from[name]; at < pieces.from[name + 1]; at++) {
            uint32_t number = pieces.by_name[at];
            if (!marked[number]) {
                marked[number] = true;
                work.push_back(number);
            }
        }
    };
    while (!work.empty()) {
        uint32_t number = work.back();
        work.pop_back();
        mentions(unit, pieces.all[number], follow);
    }
}

void add_content(const Unit &unit, const Piece &piece, std::string &content) {
    auto number = [&](uint32_t value) { content.append(reinterpret_cast<const char *>(&value), sizeof value); };
    number(piece.end - piece.first);
    uint32_t line = piece.line;
    uint16_t file = piece.file;
    for (uint32_t at = piece.first; at < piece.end; at++) {
        const Token &token = unit.tokens[at];
        if (piece.code && (token.line != line || token.file != file)) {
            // No token is this long.
            number(UINT32_MAX);
            number(token.line - piece.line);
            if (token.file != file) {
                // Several files in one piece: their lines cannot move against each other.
                number(UINT32_MAX - 1);
                number(token.line);
                content.append(unit.files[token.file].name).push_back('\0');
            }
            line = token.line;
            file = token.file;
        }
        number(token.size);
        content.append(token.text, token.size);
    }
}

}
