// SPDX-License-Identifier: GPL-2.0-or-later
// One top-level declaration of a file, and what its tokens may be.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "tokens.h"
#include "words.h"

namespace front {

struct Piece {
    uint32_t first, end;  // tokens
    uint32_t names_at, names_end;
    bool always;  // makes code or data by itself, or is not understood
    bool code;    // the compiler may name its lines
    bool mixed;   // its tokens are from several files
    bool header;  // no token of it is in the input itself
    uint16_t file;
    uint32_t line, last_line;  // of the first file, or of all if it is mixed
    bool locals;   // has variables of static storage within a function: the compiler numbers them through the file
    bool pragma;   // has a pragma, be it within
    bool nested;   // declares, within a body or parameters, what the whole file has
    bool awaits;   // the compiler complains if no later declaration completes it
    bool idle;     // the compiler complains if nobody mentions it
    bool valued;   // has a '=', be it of an enumerator, or braces that are those of a value
    bool hollows;  // defines one structure and nothing else, so a declaration of its tag may do
    uint32_t body; // where a function's body begins, else end
};

inline Role role_of(const Token &token) {
    return token.kind() == Kind::Word && token.name < std::size(WORDS) ? WORDS[token.name].role : Role::Name;
}

struct Steps {
    int8_t of[256] = {};
    constexpr Steps() {
        for (unsigned char c : std::string_view("([{"))
            of[c] = 1;
        for (unsigned char c : std::string_view(")]}"))
            of[c] = -1;
    }
};
inline constexpr Steps STEPS;

// 1 of a bracket that opens, -1 of one that closes.
inline int step(const Token &token) { return token.kind() == Kind::Mark ? STEPS.of[token.name] : 0; }
inline bool opens(const Token &token) { return step(token) > 0; }
inline bool closes(const Token &token) { return step(token) < 0; }

// One behind what begins at a token: it alone, or all between brackets.
uint32_t behind(const std::vector<Token> &tokens, uint32_t at, uint32_t end);

// Where that begins which ends before a token.
uint32_t before(const std::vector<Token> &tokens, uint32_t end, uint32_t first);

// Whether a text is the other name in alias("NAME"), weakref("NAME") or ifunc("NAME").
bool is_other_name(const std::vector<Token> &tokens, uint32_t at);

// Whether a member's name comes next.
inline bool is_member_mark(const Token &token) { return token.is('.') || token.view() == "->"; }

// Whether a name in a piece is a tag's, or a member's behind a mark: names of their own, that no variable has.
inline bool is_tag_or_member(const std::vector<Token> &tokens, const Piece &piece, uint32_t at) {
    return at > piece.first && (is_member_mark(tokens[at - 1]) || role_of(tokens[at - 1]) == Role::Tagged);
}

inline bool is_name(const Token &token) { return token.kind() == Kind::Word && role_of(token) == Role::Name; }

// Whether "struct NAME *" or "union NAME *" names a tag here.
bool is_pointed(const std::vector<Token> &tokens, const Piece &piece, uint32_t at);

// Whether a structure may have a member of this name, by what comes after it.
bool may_be_member(const std::vector<Token> &tokens, const Piece &piece, uint32_t at);

// Of a name in a piece without a body and values: whether it is what a member is called, and so mentions nothing.
bool names_member(const std::vector<Token> &tokens, const Piece &piece, uint32_t at);

// Of a name within parentheses: whether they may be those of "(*NAME)", and not of parameters.
bool may_be_declarator(const std::vector<Token> &tokens, const Piece &piece, uint32_t at);

// Whether another declarator comes behind the one, or the declaration, that begins at a token.
bool has_second_declarator(const std::vector<Token> &tokens, const Piece &piece, uint32_t at);

// Whether a name may be declared here, or be a label, and is not surely used.
bool may_be_declared(const std::vector<Token> &tokens, const Piece &piece, uint32_t at);

// Whether this begins what stands in parentheses or behind a ',', but not in those of a "for".
bool is_parameter(const std::vector<Token> &tokens, const Piece &piece, uint32_t at);

// Calls back with the place of each name that is declared from this declarator on; a parameter's has no other behind it.
template <typename Found> void each_declared(const std::vector<Token> &tokens, const Piece &piece, uint32_t at, bool parameter, Found found);

// One after the attribute that begins at a token, or `end`.
uint32_t after_attribute(const std::vector<Token> &tokens, uint32_t at, uint32_t end);

template <typename Found> void each_declared(const std::vector<Token> &tokens, const Piece &piece, uint32_t at, bool parameter, Found found) {
    while (at < piece.end) {
        while (at < piece.end && (tokens[at].is('*') || tokens[at].is('(') || role_of(tokens[at]) == Role::Qualifier || role_of(tokens[at]) == Role::Attribute))
            at = role_of(tokens[at]) == Role::Attribute ? after_attribute(tokens, at, piece.end) : at + 1;
        if (at >= piece.end || !is_name(tokens[at]))
            return;
        found(at++);
        if (parameter)
            return;
        bool inner = false;
        for (int depth = 0; at < piece.end && !(depth == 0 && tokens[at].is(',')); at++) {
            depth += step(tokens[at]);
            // "(*NAME)" closes what was skipped.
            if (depth < 0 && !inner && !tokens[at].is('}'))
                inner = true, depth = 0;
            if (depth < 0 || (depth == 0 && tokens[at].is(';')))
                return;
        }
        at++;
    }
}

// Whether the callback finds something in a part of a piece that may hold an expression: all of a piece with a body, a value or an operator,
// else widths, lengths and what stands behind keywords. All other names are declared, or those of types.
template <typename Found> bool any_expression(const std::vector<Token> &tokens, const Piece &piece, Found found) {
    bool is_whole = piece.body != piece.end;
    std::vector<std::pair<uint32_t, uint32_t>> parts;
    for (uint32_t at = piece.first, next; at < piece.end && !is_whole; at = next) {
        const Token &token = tokens[at];
        const Role role = role_of(token);
        next = at + 1;
        if (token.is('['))
            next = behind(tokens, at, piece.end);
        else if (token.is(':'))
            while (next < piece.end && !tokens[next].is(';') && !tokens[next].is(',') && !closes(tokens[next]))
                next = behind(tokens, next, piece.end);
        else if (role == Role::Typeof || role == Role::Attribute || role == Role::Asm || role == Role::Other)
            next = after_attribute(tokens, at, piece.end);
        else
            is_whole = token.kind() == Kind::Text || token.kind() == Kind::Pragma ||
                       (token.kind() == Kind::Mark && token.view() != "..." && std::string_view("(){},;:*").find(token.view()) == std::string_view::npos);
        if (next > at + 1)
            parts.emplace_back(at, next);
    }
    if (is_whole)
        return found(piece.first, piece.end);
    return std::any_of(parts.begin(), parts.end(), [&](auto &part) { return found(part.first, part.second); });
}

}
