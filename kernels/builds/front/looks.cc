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
    const Role role = role_of(token);
    const bool statement = role == Role::Other && std::find(std::begin(STATEMENTS), std::end(STATEMENTS), token.view()) != std::end(STATEMENTS);
    if (second_declarator(at) || role == Role::Typeof || role == Role::Asm || (role == Role::Other && !statement))
        return true;
    if (at < piece_.body)
        return statement || token.is('.') || token.is('=') || token.view() == "->";
    return token.is('[') || (token.is('*') && is_operator_after(tokens_[at - 1]));
}

// Whether this ',' may begin a declarator that is no pointer, after one that is.
bool Looks::second_declarator(uint32_t at) {
    const Token &token = tokens_[at];
    round_ += token.is('(') - token.is(')');
    if (token.view() == "for")
        loop_ = round_ + 1;
    if (token.is(';') || round_ < pointed_)
        pointed_ = -1;
    else if (pointed_ < 0 && (!round_ || round_ == loop_) && is_pointed(tokens_, piece_, at))
        pointed_ = round_;
    return token.is(',') && round_ == pointed_;
}

}
