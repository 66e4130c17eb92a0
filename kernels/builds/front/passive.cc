// SPDX-License-Identifier: GPL-2.0-or-later
#include "passive.h"

namespace front {

namespace {

// Reads one piece as "specifiers, declarators". Whatever else it is stays in always.
class Declaration {
public:
    Declaration(const Unit &unit, Piece &piece, std::vector<uint32_t> &names)
        : tokens_(unit.tokens), piece_(piece), names_(names), at_(piece.first) {}

    bool is_passive() {
        if (!specifiers())
            return false;
        // A name alone, with attributes, is a variable without a type.
        if (tokens_[at_].is(';'))
            return at_ + 1 == piece_.end && !named_;
        if (!typed_)
            return false;
        const bool all_unused = unused_;  // and not the first declarator alone
        for (;;) {
            bool function = false, value = false;
            unused_ = all_unused;
            pointed_ = const_pointer_ = false;
            if (!declarator(function))
                return false;
            if (!suffixes(function, value))
                return false;
            if (at_ >= piece_.end)
                return false;
            const bool constant = !function && (pointed_ ? const_pointer_ : const_);
            // Of a constant in a header the compiler does not say that nobody uses it.
            piece_.idle = static_ && !inline_ && !unused_ && !typedef_ && !constant;
            if (tokens_[at_].is('{'))
                return function && !value && !typedef_ && inline_ && (static_ || (extern_ && gnu_inline_));
            piece_.awaits = static_ || inline_;
            // Of other static things the compiler says at the end of a file that nobody uses them.
            if (!(typedef_ || (static_ && (inline_ || unused_ || constant)) || (extern_ && !value) || (function && !value && !inline_ && !static_)))
                return false;
            if (tokens_[at_].is(';'))
                return at_ + 1 == piece_.end;
            if (!tokens_[at_].is(','))
                return false;
            at_++;
        }
    }

private:
    bool here() const { return at_ < piece_.end; }

    // Moves behind a pair of brackets.
    bool skip_pair() {
        if (!here() || !opens(tokens_[at_]))
            return false;
        at_ = behind(tokens_, at_, piece_.end);
        return here();
    }

    bool attribute() {
        uint32_t begin = at_++;
        if (!here() || !tokens_[at_].is('(') || !skip_pair())
            return false;
        for (uint32_t at = begin; at < at_; at++)
            unused_ |= tokens_[at].view() == "unused" || tokens_[at].view() == "__unused__";
        for (uint32_t at = begin; at < at_; at++)
            gnu_inline_ |= tokens_[at].view() == "gnu_inline" || tokens_[at].view() == "__gnu_inline__";
        return true;
    }

    bool tagged() {
        at_++;
        bool unused = unused_;
        while (here() && role_of(tokens_[at_]) == Role::Attribute)
            if (!attribute())
                return false;
        unused_ = unused;
        bool named = here() && is_name(tokens_[at_]);
        at_ += named;
        bool body = here() && tokens_[at_].is('{');
        typed_ = true;
        return body ? skip_pair() : named && here();
    }

    bool specifiers() {
        while (here()) {
            switch (role_of(tokens_[at_])) {
            case Role::Typedef: typedef_ = true; at_++; break;
            case Role::Extern: extern_ = true; at_++; break;
            case Role::Static: static_ = true; at_++; break;
            case Role::Inline: inline_ = true; at_++; break;
            case Role::Qualifier: const_ |= is_const(); at_++; break;
            case Role::Type: typed_ = true; at_++; break;
            case Role::Attribute:
                if (!attribute())
                    return false;
                break;
            case Role::Typeof:
                at_++;
                typed_ = true;
                if (!here() || !tokens_[at_].is('(') || !skip_pair())
                    return false;
                break;
            case Role::Tagged:
                if (typed_ || !tagged())
                    return false;
                break;
            case Role::Name:
                if (typed_ || !is_name(tokens_[at_]))
                    return here();
                if (!type_name())
                    return false;
                break;
            default: return false;
            }
        }
        return false;
    }

    // A name in a type's place, unless it may be what is declared, its type left out.
    bool type_name() {
        at_++;
        typed_ = named_ = true;
        if (!here())
            return false;
        const Token &next = tokens_[at_];
        if (next.is('(')) {
            if (at_ + 1 >= piece_.end)
                return false;
            const Token &inner = tokens_[at_ + 1];
            return inner.is('*') || inner.is('(') || role_of(inner) == Role::Attribute;
        }
        return next.kind() == Kind::Word || next.is('*');
    }

    bool is_const() const { return tokens_[at_].view() == "const"; }

    bool pointers() {
        for (; here(); at_++) {
            Role role = role_of(tokens_[at_]);
            if (role == Role::Attribute) {
                if (!attribute())
                    return false;
                at_--;
            } else if (tokens_[at_].is('*')) {
                pointed_ = true;
                const_pointer_ = false;
            } else if (role == Role::Qualifier) {
                const_pointer_ |= is_const();
            } else {
                return true;
            }
        }
        return false;
    }

    bool declarator(bool &function) {
        if (!pointers())
            return false;
        if (is_name(tokens_[at_])) {
            names_.push_back(tokens_[at_++].name);
            function = here() && tokens_[at_].is('(');
            return here();
        }
        if (!tokens_[at_].is('('))
            return false;
        uint32_t begin = at_;
        while (here() && tokens_[at_].is('(')) {
            at_++;
            if (!pointers())
                return false;
        }
        if (!here() || !is_name(tokens_[at_]))
            return false;
        names_.push_back(tokens_[at_].name);
        at_ = begin;
        return skip_pair();
    }

    bool suffixes(bool function, bool &value) {
        bool parameters = false;
        while (here()) {
            const Token &token = tokens_[at_];
            Role role = role_of(token);
            if (role == Role::Attribute) {
                if (!attribute())
                    return false;
            } else if (role == Role::Asm) {
                // Another name in assembly may be that of a function which the compiler calls of its own accord.
                return false;
            } else if (token.is('(') || token.is('[')) {
                parameters |= token.is('(');
                if (!skip_pair())
                    return false;
            } else if (token.is('=')) {
                value = true;
                return initializer();
            } else {
                return !function || parameters;
            }
        }
        return false;
    }

    bool initializer() {
        while (here() && !tokens_[at_].is(',') && !tokens_[at_].is(';')) {
            if (opens(tokens_[at_])) {
                if (!skip_pair())
                    return false;
            } else if (closes(tokens_[at_++])) {
                return false;
            }
        }
        return here();
    }

    const std::vector<Token> &tokens_;
    Piece &piece_;
    std::vector<uint32_t> &names_;
    uint32_t at_;
    bool typedef_ = false, extern_ = false, static_ = false, inline_ = false, typed_ = false, named_ = false, gnu_inline_ = false;
    bool unused_ = false, const_ = false, pointed_ = false, const_pointer_ = false;
};

}

bool is_passive(const Unit &unit, Piece &piece, std::vector<uint32_t> &names) { return Declaration(unit, piece, names).is_passive(); }

}
