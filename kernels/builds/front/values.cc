// SPDX-License-Identifier: GPL-2.0-or-later
#include "values.h"

#include <utility>

namespace front {

namespace {

bool is_mark(const Token &token, std::string_view mark) { return token.kind() == Kind::Mark && token.view() == mark; }

bool is_prefix(const Token &token) {
    return token.is('*') || token.is('&') || token.is('+') || token.is('-') || token.is('!') || token.is('~') || is_mark(token, "++") ||
           is_mark(token, "--") || is_mark(token, "&&");
}

// A qualifier among expressions, not types.
bool is_extension(const Token &token) { return token.view() == "__extension__"; }

bool begins_type(const Token &token) {
    const Role role = role_of(token);
    return role == Role::Type || role == Role::Tagged || role == Role::Typeof || (role == Role::Qualifier && !is_extension(token));
}

}

Values::Values(const Unit &unit, std::function<void(uint32_t, uint32_t)> need)
    : tokens_(unit.tokens), need_(std::move(need)), choose_(unit.names.find("__builtin_choose_expr")), generic_(unit.names.find("_Generic")) {}

void Values::read_value(const Piece &piece, uint32_t first, uint32_t end) {
    end_ = piece.end;
    read(first, end, 0);
}

void Values::read_arguments(const Piece &piece, uint32_t open) {
    end_ = piece.end;
    read_list(open, 0);
}

// Each expression between commas, or behind the ':' of what _Generic chooses from.
void Values::read_list(uint32_t open, int depth) {
    const uint32_t end = behind(open) - 1;
    for (uint32_t first = open + 1, at = first; at <= end; at = at < end ? behind(at) : at + 1)
        if (at == end || tokens_[at].is(',')) {
            read(first, at, depth);
            first = at + 1;
        }
}

void Values::read(uint32_t first, uint32_t end, int depth) {
    if (first >= end || read_within(first, end, depth) || read_parts(first, end, depth))
        return;
    const Token &token = tokens_[first];
    if (is_extension(token))
        return read(first + 1, end, depth);
    if (after_operand(first, end) != end) {
        // A sum or the like: it may point to a structure, but is none.
        if (depth)
            need_(first, end);
    } else if (token.is('*')) {
        read(first + 1, end, depth + 1);
    } else if (is_prefix(token)) {
        if (depth)
            read(first + 1, end, depth - token.is('&'));
    } else if (!read_cast(first, end, depth)) {
        read_operand(first, end, depth);
    }
}

// Whether this is in parentheses, which are read.
bool Values::read_within(uint32_t first, uint32_t end, int depth) {
    if (!tokens_[first].is('(') || behind(first) != end)
        return false;
    if (tokens_[first + 1].is('{'))
        read(last_statement(first + 2, end - 2), end - 3, depth);
    else
        read(first + 1, end - 1, depth);
    return true;
}

// Whether this consists of parts, of which those are read that may be the whole's value.
bool Values::read_parts(uint32_t first, uint32_t end, int depth) {
    uint32_t part = first, assigned = first;
    bool several = false;
    for (uint32_t at = first; at < end; at = behind(at))
        if (tokens_[at].is(','))
            assigned = part = at + 1;
        else if (tokens_[at].is('='))
            assigned = at + 1;
    for (uint32_t at = part; at < end; at = behind(at))
        several |= tokens_[at].is('?') || tokens_[at].is(':');
    if (!several) {
        if (assigned != first)
            read(assigned, end, depth);
        return assigned != first;
    }
    // Of "A ? B : C" it is B or C, and of "LABEL: B" B; A is read where it may be the value, in "A ?: C".
    for (uint32_t at = part, begin = part; at <= end; at = at < end ? behind(at) : at + 1)
        if (at == end || tokens_[at].is('?') || tokens_[at].is(':')) {
            if (begin > part || (at + 1 < end && tokens_[at].is('?') && tokens_[at + 1].is(':')))
                read(begin, at, depth);
            begin = at + 1;
        }
    return true;
}

// Whether this is a cast. A structure's type that is named there is for the piece's reader to see, but for one behind more '*'.
bool Values::read_cast(uint32_t first, uint32_t end, int depth) {
    if (!is_cast(first, end))
        return false;
    const uint32_t type_end = behind(first) - 1;
    uint32_t type = first + 1;
    while (role_of(tokens_[type]) == Role::Qualifier)
        type++;
    const bool asks = role_of(tokens_[type]) == Role::Typeof;
    const uint32_t asked = asks ? behind(type + 1) : type;
    for (uint32_t at = asked; at < type_end; at++) {
        depth -= tokens_[at].is('*');
        // "(*)[2]"
        if (tokens_[at].is('(') || tokens_[at].is('['))
            return need_(type, type_end), true;
    }
    if (depth < 0)
        return true;
    if (asks && !begins_type(tokens_[type + 2]))
        read(type + 2, asked - 1, depth);
    else
        need_(type, type_end);
    return true;
}

// A name, a member, an element, a call, or a choice that the compiler makes.
void Values::read_operand(uint32_t first, uint32_t end, int depth) {
    const uint32_t open = last_part(first, end);
    const Token &last = tokens_[end - 1], &before = tokens_[open - (open > first)];
    const bool chosen = open == first + 1 && before.kind() == Kind::Word && (before.name == choose_ || before.name == generic_);
    if (last.is(']'))
        read_element(first, open, depth);
    else if (last.is(')') && chosen)
        read_list(open, depth);
    else if (depth && (is_mark(last, "++") || is_mark(last, "--")))
        read(first, end - 1, depth);
    else if (depth && is_name(last))
        need_(end - 1, end);
    else if (depth && last.is(')') && is_name(before))
        need_(open - 1, open);
    else if (depth)
        need_(first, end);
}

// An element of a list, which may also be written as "NUMBER[LIST]".
void Values::read_element(uint32_t first, uint32_t open, int depth) {
    const uint32_t end = behind(open) - 1;
    read(first, open, depth + 1);
    const bool number = open == first + 1 && tokens_[first].kind() == Kind::Number;
    if (number || (after_operand(open + 1, end) == end && is_name(tokens_[end - 1])))
        read(open + 1, end, depth + 1);
}

// Where the last token, or the last parentheses, of these begin.
uint32_t Values::last_part(uint32_t first, uint32_t end) const {
    while (behind(first) < end)
        first = behind(first);
    return first;
}

// Where the last statement begins of those between braces.
uint32_t Values::last_statement(uint32_t first, uint32_t end) const {
    uint32_t last = first;
    for (uint32_t at = first; at < end;) {
        const uint32_t next = behind(at);
        // Behind a block comes a statement, but behind "(TYPE){ … }" an operator.
        const bool block = next < end && tokens_[next - 1].is('}') && !tokens_[next].is('.') && !tokens_[next].is('[') && !tokens_[next].is(',');
        if (next < end - 1 && (tokens_[at].is(';') || block))
            last = next;
        at = next;
    }
    return last;
}

// One after the operand that begins here, with what stands before and behind it.
uint32_t Values::after_operand(uint32_t at, uint32_t end) const {
    while (at < end && (is_prefix(tokens_[at]) || is_cast(at, end)))
        at = is_prefix(tokens_[at]) ? at + 1 : behind(at);
    if (at < end)
        at = behind(at);
    while (at < end && (tokens_[at].is('(') || tokens_[at].is('[') || tokens_[at].is('{') || is_member_mark(tokens_[at]) ||
                        is_mark(tokens_[at], "++") || is_mark(tokens_[at], "--")))
        at = is_member_mark(tokens_[at]) ? at + 2 : behind(at);
    return at;
}

// Whether a type in parentheses begins here, and something behind it.
bool Values::is_cast(uint32_t open, uint32_t end) const {
    if (!tokens_[open].is('(') || behind(open) >= end)
        return false;
    const Token &last = tokens_[behind(open) - 2], &next = tokens_[behind(open)];
    if (begins_type(tokens_[open + 1]) || last.is('*'))
        return true;
    // "(NAME) OPERAND"
    return behind(open) == open + 3 && is_name(last) && (next.kind() == Kind::Word || next.kind() == Kind::Number);
}

}
