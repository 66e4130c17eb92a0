// SPDX-License-Identifier: GPL-2.0-or-later
#include "macros.h"

#include <algorithm>

namespace front {

namespace {

bool same(const Lexeme &one, const Lexeme &other) {
    if (one.form != other.form || one.flags != other.flags || one.name != other.name)
        return false;
    return one.form == Form::Parameter || one.view() == other.view();
}

bool same(const Macro &one, const Macro &other) {
    return one.special == other.special && one.function == other.function && one.variadic == other.variadic &&
           one.count == other.count && one.parameter_count == other.parameter_count &&
           std::equal(one.parameters, one.parameters + one.parameter_count, other.parameters) &&
           std::equal(one.body, one.body + one.count, other.body, [](auto &a, auto &b) { return same(a, b); });
}

}

Macros::Macros(Names &names, Memory &texts, Definitions &definitions)
    : names_(&names), texts_(&texts), definitions_(&definitions), defined_(names.number("defined")), arguments_(names.number("__VA_ARGS__")),
      option_(names.number("__VA_OPT__")) {
    if (option_ != arguments_ + 1)
        throw Unfit{"own-definition"};
}

Macro *Definitions::only(const Macro &made, Memory &texts) {
    if (made.name >= by_name_.size())
        by_name_.resize(std::max<size_t>(made.name + 1, by_name_.size() * 2));
    Macro *&first = by_name_[made.name];
    for (Macro *macro = first; macro; macro = macro->other)
        if (same(*macro, made))
            return macro;
    Macro *macro = new (texts.list<Macro>(1)) Macro(made);
    macro->other = first;
    return first = macro;
}

void Macros::list_asked(std::vector<MacroValue> *asked) {
    asked_ = asked;
    list_++;
}

void Macros::note(uint32_t name, Macro *macro) {
    if (name >= noted_.size())
        noted_.resize(std::max<size_t>(name + 1, noted_.size() * 2));
    if (noted_[name] != list_) {
        noted_[name] = list_;
        asked_->push_back({name, macro});
    }
}

void Macros::put(uint32_t name, Macro *macro) {
    if (name >= by_name_.size())
        by_name_.resize(std::max<size_t>(name + 1, by_name_.size() * 2));
    by_name_[name] = macro;
}

void Macros::make_special(std::string_view name, Special special) {
    Macro made;
    made.name = names_->number(name);
    made.special = special;
    put(made.name, definitions_->only(made, *texts_));
}

// gcc has words of its own about these.
void Macros::refuse_own_names(const Lexeme &token) {
    if (token.form != Form::Word || token.name == defined_ || token.name == arguments_ || token.name == option_)
        throw Unfit{"own-definition"};
    auto text = token.view();
    auto *macro = find(token.name);
    if (text.substr(0, 7) == "__STDC_" || text == "__STDC__" || (macro && macro->special != Special::No))
        throw Unfit{"own-definition"};
}

void Macros::undefine(Scanner &scanner) {
    Lexeme token;
    scanner.next(token);
    refuse_own_names(token);
    scanner.expect_end();
    if (find(token.name))
        put(token.name, nullptr);
}

void Macros::define_all(std::string_view lines) {
    Scanner scanner(*names_, *texts_);
    scanner.begin(lines, 0);
    scanner.directive = true;
    while (scanner.next_directive()) {
        if (scanner.directive_word() != "define")
            throw Unfit{"own-builtins"};
        Lexeme name;
        scanner.next(name);
        if (name.form != Form::Word)
            throw Unfit{"own-builtins"};
        Macro made;
        made.name = name.name;
        Lexeme token;
        scanner.next(token);
        if (token.is('(') && !(token.flags & WHITE)) {
            made.function = true;
            parameters(scanner, made);
            scanner.next(token);
        }
        body(scanner, made, token);
        put(made.name, definitions_->only(made, *texts_));
    }
}

void Macros::define(Scanner &scanner) {
    Lexeme name, token;
    scanner.defining = true;
    scanner.next(name);
    refuse_own_names(name);
    Macro made;
    made.name = name.name;
    parameters_.clear();
    scanner.next(token);
    if (token.is('(') && !(token.flags & WHITE)) {
        made.function = true;
        if (!parameters(scanner, made))
            throw Unfit{"own-definition"};
        scanner.next(token);
    } else if (token.form != Form::End && !(token.flags & WHITE)) {
        throw Unfit{"own-definition"};
    }
    body(scanner, made, token);
    scanner.defining = false;
    if (auto *known = find(name.name)) {
        if (!same(*known, made))
            throw Unfit{"own-redefinition"};
        return;
    }
    put(name.name, definitions_->only(made, *texts_));
}

bool Macros::parameters(Scanner &scanner, Macro &macro) {
    parameters_.clear();
    for (;;) {
        Lexeme token, after;
        scanner.next(token);
        if (token.is(')') && parameters_.empty())
            break;
        if (token.is("...")) {
            macro.variadic = true;
            parameters_.push_back(arguments_);
            scanner.next(after);
            if (!after.is(')'))
                return false;
            break;
        }
        if (token.form != Form::Word || token.name == arguments_ || token.name == option_ ||
            std::find(parameters_.begin(), parameters_.end(), token.name) != parameters_.end())
            return false;
        parameters_.push_back(token.name);
        scanner.next(after);
        if (after.is("...")) {
            macro.variadic = true;
            scanner.next(after);
            if (!after.is(')'))
                return false;
        }
        if (after.is(')'))
            break;
        if (!after.is(','))
            return false;
    }
    macro.parameter_count = parameters_.size();
    auto *kept = texts_->list<uint32_t>(parameters_.size());
    std::copy(parameters_.begin(), parameters_.end(), kept);
    macro.parameters = kept;
    return true;
}

void Macros::body(Scanner &scanner, Macro &macro, Lexeme token) {
    if (!macro.function)
        parameters_.clear();
    tokens_.clear();
    bool pasting = false;
    for (; token.form != Form::End; scanner.next(token)) {
        bool parameter = false;
        if (token.form == Form::Word) {
            auto place = std::find(parameters_.begin(), parameters_.end(), token.name);
            parameter = place != parameters_.end();
            if (parameter) {
                token.form = Form::Parameter;
                token.name = place - parameters_.begin();
            } else if (token.name == arguments_ || token.name == option_) {
                throw Unfit{"own-definition"};
            }
        }
        if (macro.function && !tokens_.empty() && tokens_.back().is('#')) {
            if (!parameter)
                throw Unfit{"own-definition"};
            token.flags = (token.flags & ~WHITE) | (token.flags & WHITE ? SPACED : 0) | SPELT | (tokens_.back().flags & WHITE);
            tokens_.pop_back();
            // What is before it may be pasted to it.
        }
        if (token.is("##")) {
            if (tokens_.empty() || pasting)
                throw Unfit{"own-definition"};
            tokens_.back().flags |= PASTED | (token.flags & WHITE ? SPACED : 0);
            macro.pasting = pasting = true;
            continue;
        }
        pasting = false;
        tokens_.push_back(token);
    }
    if (pasting || (macro.function && !tokens_.empty() && tokens_.back().is('#')))
        throw Unfit{"own-definition"};
    if (!tokens_.empty())
        tokens_[0].flags &= ~WHITE;
    auto *kept = texts_->list<Lexeme>(tokens_.size());
    std::copy(tokens_.begin(), tokens_.end(), kept);
    macro.body = kept;
    macro.count = tokens_.size();
}

}
