// SPDX-License-Identifier: GPL-2.0-or-later
#include "piece.h"

namespace front {

uint32_t behind(const std::vector<Token> &tokens, uint32_t at, uint32_t end) {
    for (int depth = 0; at < end; at++)
        if ((depth += step(tokens[at])) <= 0)
            return at + 1;
    return at;
}

uint32_t before(const std::vector<Token> &tokens, uint32_t end, uint32_t first) {
    int depth = step(tokens[--end]);
    while (depth < 0 && end > first)
        depth += step(tokens[--end]);
    return end;
}

bool is_pointed(const std::vector<Token> &tokens, const Piece &piece, uint32_t at) {
    if (at == piece.first || role_of(tokens[at - 1]) != Role::Tagged || tokens[at - 1].view() == "enum")
        return false;
    uint32_t next = at + 1;
    while (next < piece.end && role_of(tokens[next]) == Role::Qualifier)
        next++;
    return next < piece.end && tokens[next].is('*');
}

bool may_be_member(const std::vector<Token> &tokens, const Piece &piece, uint32_t at) {
    if (!is_name(tokens[at]) || at == piece.first || at + 1 >= piece.end || role_of(tokens[at - 1]) == Role::Tagged)
        return false;
    const Token &next = tokens[at + 1];
    return next.is(';') || next.is(',') || next.is('[') || next.is(':') || next.is(')') || role_of(next) == Role::Attribute;
}

bool may_be_declarator(const std::vector<Token> &tokens, const Piece &piece, uint32_t at) {
    while (--at > piece.first && (tokens[at].is('*') || role_of(tokens[at]) == Role::Qualifier))
        ;
    return tokens[at].is('(') || tokens[at].is(')');
}

bool may_be_declared(const std::vector<Token> &tokens, const Piece &piece, uint32_t at) {
    if (at == piece.first || at + 1 >= piece.end)
        return true;
    const Token &next = tokens[at + 1];
    const bool ends = next.is(';') || next.is(',') || next.is('=') || next.is('[') || next.is(':');
    uint32_t before = at - 1;
    while (before > piece.first && (tokens[before].is('*') || role_of(tokens[before]) == Role::Qualifier))
        before--;
    const Token &last = tokens[before];
    if (last.kind() == Kind::Word)
        return role_of(last) != Role::Other || last.view() == "goto";
    if (last.is('('))
        return before + 1 < at && before > piece.first && tokens[before - 1].kind() == Kind::Word && role_of(tokens[before - 1]) != Role::Other;
    const bool begins = last.is(';') || last.is('{') || last.is('}');
    return last.is(')') || last.view() == "&&" || (begins && next.is(':')) || ((last.is(',') || last.is('}')) && ends) || (last.is('{') && next.is(','));
}

bool is_parameter(const std::vector<Token> &tokens, const Piece &piece, uint32_t at) {
    while (at > piece.first && role_of(tokens[at - 1]) == Role::Qualifier)
        at--;
    return at > piece.first + 1 && (tokens[at - 1].is(',') || (tokens[at - 1].is('(') && tokens[at - 2].view() != "for"));
}

bool has_second_declarator(const std::vector<Token> &tokens, const Piece &piece, uint32_t at) {
    for (int depth = 0; at < piece.end && depth >= 0 && !(depth == 0 && tokens[at].is(';')); at++) {
        if (depth == 0 && tokens[at].is(','))
            return true;
        depth += step(tokens[at]);
    }
    return false;
}

uint32_t after_attribute(const std::vector<Token> &tokens, uint32_t at, uint32_t end) {
    int depth = 0;
    for (at++; at < end; at++) {
        depth += opens(tokens[at]);
        if (closes(tokens[at]) && --depth <= 0)
            return at + 1;
        if (!depth)
            return at;
    }
    return end;
}

}
