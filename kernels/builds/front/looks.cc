// SPDX-License-Identifier: GPL-2.0-or-later
#include "looks.h"

#include <algorithm>

namespace front {

namespace {

constexpr std::string_view STATEMENTS[] = {"if", "else", "for", "while", "do", "switch", "case", "default", "break", "continue", "goto", "return", "register"};

// Whether a '*' after this token gives what is pointed to, or may.
bool is_operator_after(const Token &token) {
    if (token.kind() == Kind::Word)
        return role_of(token) == Role::Other;
    return token.kind() != Kind::Number && !token.is(']');
}

}

bool Looks::at(uint32_t at) {
    const Token &token = tokens_[at];
    if (token.kind() == Kind::Word) {
        const Role role = role_of(token);
        if (role == Role::Name)
            note_pointer(at);
        if (role == Role::Typeof || role == Role::Asm || (role == Role::Tagged && at > piece_.body && defines(at)) ||
            (role == Role::Attribute && sums_addresses(at)))
            return true;
        if (role != Role::Other)
            return false;
        // What is constant may be of a size: in a body only here.
        if (token.view() == "case" && sums_addresses(at))
            return true;
        if (token.view() == "for")
            loop_ = round_ + 1;
        return at < piece_.body || std::find(std::begin(STATEMENTS), std::end(STATEMENTS), token.view()) == std::end(STATEMENTS);
    }
    if (token.kind() != Kind::Mark)
        return false;
    if (second_declarator(token))
        return true;
    if ((token.is('[') || (token.is(':') && at < piece_.body)) && sums_addresses(at))
        return true;
    if (at < piece_.body)
        return token.is('.') || token.is('=') || token.view() == "->" || (token.is('[') && at > piece_.first && tokens_[at - 1].is(')'));
    return token.is('[') || (token.is('*') && is_operator_after(tokens_[at - 1]));
}

// Whether a body has a type of its own here, of which enumerators and widths are constants.
bool Looks::defines(uint32_t at) const {
    for (at++; at < piece_.end && (is_name(tokens_[at]) || role_of(tokens_[at]) == Role::Attribute);)
        at = is_name(tokens_[at]) ? at + 1 : after_attribute(tokens_, at, piece_.end);
    return at < piece_.end && tokens_[at].is('{');
}

// Whether this bound or constant may be made of an address: "[(unsigned long)((struct NAME *)0 + 1)]".
bool Looks::sums_addresses(uint32_t at) const {
    bool sum = false, address = false;
    for (at++; at + 1 < piece_.end && !tokens_[at].is(']') && !tokens_[at].is(';') && !tokens_[at].is('{'); at++) {
        sum |= tokens_[at].is('+') || tokens_[at].is('-') || tokens_[at].is('[');
        address |= tokens_[at].is('&') || (tokens_[at + 1].is(')') && (tokens_[at].is('*') || (is_name(tokens_[at]) && tokens_[at - 1].is('('))));
    }
    return sum && address;
}

void Looks::note_pointer(uint32_t at) {
    if (pointed_ < 0 && (!round_ || round_ == loop_) && is_pointed(tokens_, piece_, at))
        pointed_ = round_;
}

// Whether this ',' may begin a declarator that is no pointer, after one that is.
bool Looks::second_declarator(const Token &token) {
    round_ += token.is('(') - token.is(')');
    if (token.is(';') || round_ < pointed_)
        pointed_ = -1;
    return token.is(',') && round_ == pointed_;
}

}
