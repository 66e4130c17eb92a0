// SPDX-License-Identifier: GPL-2.0-or-later
#include "piece.h"

#include <algorithm>

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

bool names_member(const std::vector<Token> &tokens, const Piece &piece, uint32_t at) {
    if (at <= piece.first + 1 || at + 1 >= piece.end)
        return false;
    // Before a ':' or an attribute it could be a type.
    const Token &next = tokens[at + 1], &last = tokens[at - 1];
    if (!(next.is(';') || next.is(',') || next.is('[')) || !(is_name(last) || role_of(last) == Role::Type || last.is('*') || last.is('}')))
        return false;
    for (uint32_t end = at; end > piece.first; end = before(tokens, end, piece.first)) {
        const Token &token = tokens[end - 1];
        if (token.is(';') || token.is('{'))
            return true;
        // Of a width, a length, an argument or an operator's value.
        if (token.kind() != Kind::Word && !token.is('*') && !token.is(',') && !closes(token))
            return false;
    }
    return false;
}

bool may_be_declarator(const std::vector<Token> &tokens, const Piece &piece, uint32_t at) {
    while (--at > piece.first && (tokens[at].is('*') || role_of(tokens[at]) == Role::Qualifier))
        ;
    return tokens[at].is('(') || tokens[at].is(')');
}

// Whether this stands behind the ',' of __builtin_offsetof.
static bool is_offset(const std::vector<Token> &tokens, const Piece &piece, uint32_t at) {
    if (!tokens[at - 1].is(',') && !tokens[at - 1].is('['))
        return false;
    for (int depth = 0; at > piece.first; at--)
        if ((depth += step(tokens[at - 1])) > 0)
            return at > piece.first + 1 && tokens[at - 2].view() == "__builtin_offsetof";
    return false;
}

bool may_be_declared(const std::vector<Token> &tokens, const Piece &piece, uint32_t at) {
    if (at == piece.first || at + 1 >= piece.end)
        return true;
    // The body of a function in the old style, whose parameters stand in the piece before.
    if (piece.body == piece.first)
        return true;
    const Token &next = tokens[at + 1], &first = tokens[at - 1];
    // Without a body it is surely used only as a value: behind what no declarator has before it.
    if (at < piece.body && !first.is('=') && !first.is('&') && !first.is('{'))
        return true;
    // "(NAME)" may declare it, "[NAME] "…"" is an operand of assembly, "offsetof(TYPE, NAME)" has a member.
    if (first.is('(') && next.is(')'))
        return true;
    if ((first.is('[') && next.is(']') && at + 2 < piece.end && tokens[at + 2].kind() == Kind::Text) || is_offset(tokens, piece, at))
        return true;
    const bool ends = next.is(';') || next.is(',') || next.is('=') || next.is('[') || next.is(':');
    uint32_t before = at - 1;
    while (before > piece.first && (tokens[before].is('*') || role_of(tokens[before]) == Role::Qualifier))
        before--;
    const Token &last = tokens[before];
    if (last.kind() == Kind::Word)
        return role_of(last) != Role::Other || last.view() == "goto" || last.view() == "__auto_type" || last.view() == "register" || last.view() == "auto";
    if (last.is('('))
        return before + 1 < at;
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
    return at + 1 < end && opens(tokens[at + 1]) ? behind(tokens, at + 1, end) : std::min(at + 1, end);
}

bool is_other_name(const std::vector<Token> &tokens, uint32_t at) {
    if (at < 2 || tokens[at].kind() != Kind::Text || !tokens[at - 1].is('('))
        return false;
    for (auto word : {"alias", "__alias__", "weakref", "__weakref__", "ifunc", "__ifunc__"})
        if (tokens[at - 2].view() == word)
            return true;
    return false;
}

}
