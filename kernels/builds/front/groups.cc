// SPDX-License-Identifier: GPL-2.0-or-later
#include "groups.h"

#include <utility>

#include "builtins.h"
#include "condition.h"

namespace front {

namespace {

constexpr std::pair<std::string_view, Directive> DIRECTIVES[] = {
    {"define", Directive::Define}, {"endif", Directive::Endif}, {"ifdef", Directive::Ifdef}, {"if", Directive::If},
    {"else", Directive::Else}, {"include", Directive::Include}, {"ifndef", Directive::Ifndef}, {"undef", Directive::Undef},
    {"elif", Directive::Elif}, {"pragma", Directive::Pragma},
};

}

Directive directive_of(std::string_view word) {
    for (auto &[text, directive] : DIRECTIVES)
        if (text == word)
            return directive;
    return Directive::Other;
}

void Groups::read(Directive what, Progress &file, bool within) {
    file_ = &file;
    within_ = within;
    if (what == Directive::If || what == Directive::Ifdef || what == Directive::Ifndef)
        open(what);
    else
        end(what);
}

bool Groups::asks(Directive what) {
    if (what == Directive::If || what == Directive::Elif) {
        const bool holds = condition_holds(expansion_, macros_, defined_, warns_);
        if (!within_)
            expansion_.reuse();
        return holds;
    }
    Lexeme name;
    scanner_.next(name);
    if (name.form != Form::Word || name.name == defined_ || name.view() == "__VA_ARGS__" || name.view() == "__VA_OPT__")
        throw Unfit{"own-directive"};
    if (!macros_.find(name.name) && name.view().substr(0, 5) == "__has" && !is_asked(name.view()))
        throw Unfit{OWN_HAS};
    scanner_.expect_end();
    if (file_->guarded == Guarded::Begins) {
        file_->guarded = Guarded::Within;
        file_->guard = name.name;
    }
    return (macros_.find(name.name) != nullptr) == (what == Directive::Ifdef);
}

void Groups::open(Directive what) {
    const bool holds = asks(what);
    file_->groups.push_back({holds, false});
    if (!holds)
        skip();
}

// #elif, #else or #endif where the group so far was read.
void Groups::end(Directive what) {
    if (file_->groups.empty())
        throw Unfit{"own-directive"};
    if (what == Directive::Endif)
        return close();
    next_part(what);
    if (what == Directive::Elif)
        scanner_.skip_line();
    skip();
}

// Begins the part behind #elif or #else.
Group &Groups::next_part(Directive what) {
    unguard();
    Group &group = file_->groups.back();
    if (group.last)
        throw Unfit{"own-directive"};
    group.last = what == Directive::Else;
    if (group.last)
        scanner_.expect_end();
    return group;
}

void Groups::close() {
    scanner_.expect_end();
    file_->groups.pop_back();
    if (file_->guarded == Guarded::Within && file_->groups.empty())
        file_->guarded = Guarded::Behind;
}

void Groups::unguard() {
    if (file_->guarded == Guarded::Within && file_->groups.size() == 1)
        file_->guarded = Guarded::No;
}

// Skips groups up to one that is to be read, or to the end of all.
void Groups::skip() {
    std::vector<bool> inner;  // groups within, and whether each is at its last part
    for (;;) {
        scanner_.directive = false;
        if (!scanner_.next_directive())
            throw Unfit{"own-directive"};
        scanner_.directive = true;
        const std::string_view word = scanner_.directive_word();
        const Directive what = directive_of(word);
        if (what == Directive::If || what == Directive::Ifdef || what == Directive::Ifndef) {
            inner.push_back(false);
        } else if (what == Directive::Endif && !inner.empty()) {
            inner.pop_back();
        } else if (what == Directive::Endif) {
            return close();
        } else if (what == Directive::Else || what == Directive::Elif) {
            if (inner.empty() && goes_on(what))
                return;
            if (!inner.empty() && inner.back())
                throw Unfit{"own-directive"};
            if (!inner.empty())
                inner.back() = what == Directive::Else;
        } else if (word == "elifdef" || word == "elifndef") {
            throw Unfit{"own-directive"};
        }
        scanner_.skip_line();
    }
}

// Whether the group behind this #else or #elif is to be read.
bool Groups::goes_on(Directive what) {
    Group &group = next_part(what);
    if (group.taken)
        return false;
    return group.taken = what == Directive::Else || asks(what);
}

}
