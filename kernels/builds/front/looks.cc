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
        if (role == Role::Typeof || role == Role::Asm)
            return true;
        if (role != Role::Other)
            return false;
        if (token.view() == "for")
            loop_ = round_ + 1;
        return at < piece_.body || std::find(std::begin(STATEMENTS), std::end(STATEMENTS), token.view()) == std::end(STATEMENTS);
    }
    if (token.kind() != Kind::Mark)
        return false;
    if (second_declarator(token))
        return true;
    if (at < piece_.body)
        return token.is('.') || token.is('=') || token.view() == "->" || (token.is('[') && at > piece_.first && tokens_[at - 1].is(')'));
    return token.is('[') || (token.is('*') && is_operator_after(tokens_[at - 1]));
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
