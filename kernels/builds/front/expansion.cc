// SPDX-License-Identifier: GPL-2.0-or-later
#include "expansion.h"

namespace front {

namespace {

constexpr size_t DEEPEST = 1000;

}

bool Expansion::take_ahead(Lexeme &token) {
    if (!has_ahead_)
        return false;
    token = ahead_;
    has_ahead_ = false;
    return true;
}

const Lexeme *Expansion::padding(const Lexeme *source) {
    auto *token = lexemes_.list<Lexeme>(1);
    token->form = Form::Padding;
    token->flags = 0;
    token->source = source;
    return token;
}

const Lexeme *Expansion::text_token() {
    auto *token = lexemes_.list<Lexeme>(1);
    for (;;) {
        if (!take_ahead(*token))
            scanner.next(*token);
        if (scanner.arguments != Arguments::Read || token->form == Form::End || !(token->flags & FIRST) || !token->is('#'))
            return token;
        // A directive within arguments.
        const int plain = plain_;
        plain_ = 0;
        scanner.arguments = Arguments::No;
        directives_.within_arguments();
        scanner.arguments = Arguments::Read;
        plain_ = plain;
    }
}

// Puts back the token that was read last.
void Expansion::back(const Lexeme *token) {
    if (!contexts_.empty()) {
        contexts_.back().at--;
    } else if (token->form != Form::End) {
        ahead_ = *token;
        has_ahead_ = true;
    }
}

void Expansion::pop() {
    Macro *macro = contexts_.back().macro;
    contexts_.pop_back();
    // Of several contexts of one expansion the last allows the macro again.
    if (macro && (contexts_.empty() || contexts_.back().macro != macro))
        macro->disabled = false;
}

void Expansion::push_one(const Lexeme *token, uint32_t line, uint16_t expansion) {
    auto **place = lexemes_.list<const Lexeme *>(1);
    *place = token;
    contexts_.push_back({nullptr, place, nullptr, 0, 1, line, nullptr, expansion});
}

const Lexeme *Expansion::next_plain() {
    uint32_t line;
    plain_++;
    const Lexeme *token = next(line);
    plain_--;
    return token;
}

const Lexeme *Expansion::next(uint32_t &line) {
    for (;;) {
        const Lexeme *token;
        const uint16_t expansion = expansion_at_hand();
        expansion_ = expansion;
        if (contexts_.empty()) {
            token = text_token();
            line = token->line;
        } else if (Context &context = contexts_.back(); context.at < context.count) {
            token = context.direct ? context.direct + context.at : context.listed[context.at];
            line = context.lines ? context.lines[context.at] : context.line;
            context.at++;
            if (token->flags & PASTED && token->form != Form::End) {
                paste(token);
                if (scanner.directive)
                    continue;
                return padding(token);
            }
        } else {
            pop();
            if (scanner.directive)
                continue;
            return &nothing_;
        }
        if (token->form != Form::Word || token->flags & NO_EXPAND)
            return token;
        Macro *macro = macros_.find(token->name);
        if (!macro)
            return token;
        is_local |= token->flags & COUNTED;
        if (macro->disabled) {
            Lexeme *flagged = keep(*token);
            flagged->flags |= NO_EXPAND;
            return flagged;
        }
        if (plain_ || !enter(*token, *macro, line)) {
            expansion_ = expansion;
            return token;
        }
        if (!scanner.directive)
            return padding(token);
    }
}

// Begins a macro's expansion; false if it is the name of a function without its arguments.
bool Expansion::enter(const Lexeme &, Macro &macro, uint32_t line) {
    if (macro.special != Special::No) {
        special(macro, line);
        return true;
    }
    if (contexts_.size() > DEEPEST)
        throw Unfit{"own-depth"};
    if (macro.function)
        return enter_function(macro, line);
    macro.disabled = true;
    contexts_.push_back({macro.body, nullptr, nullptr, 0, macro.count, line, &macro, new_expansion()});
    return true;
}

bool Expansion::enter_function(Macro &macro, uint32_t line) {
    const auto before = scanner.arguments;
    plain_++;
    scanner.arguments = Arguments::Sought;
    const bool called = is_called();
    if (!called) {
        scanner.arguments = before;
        plain_--;
        return false;
    }
    scanner.arguments = Arguments::Read;
    if (depth_ == frames_.size())
        frames_.emplace_back();
    auto &arguments = frames_[depth_++];
    const uint32_t count = collect(macro, arguments);
    scanner.arguments = before;
    plain_--;
    if (count > macro.parameter_count || (count < macro.parameter_count && !(macro.variadic && count + 1 == macro.parameter_count)))
        throw Unfit{"own-arguments"};
    if (macro.parameter_count) {
        replace(macro, arguments, line);
    } else {
        macro.disabled = true;
        contexts_.push_back({macro.body, nullptr, nullptr, 0, macro.count, line, &macro, new_expansion()});
    }
    depth_--;
    return true;
}

// Whether '(' comes next. Blanks on the way are kept for what follows.
bool Expansion::is_called() {
    const Lexeme *blank = nullptr, *token;
    uint32_t line;
    while ((token = next(line))->form == Form::Padding)
        if (!blank || !blank->source || (!(blank->source->flags & WHITE) && !token->source))
            blank = token;
    if (token->is('('))
        return true;
    back(token);
    if (blank)
        push_one(blank, 0, 0);
    return false;
}

// Reads arguments behind '('; returns how many.
uint32_t Expansion::collect(const Macro &macro, Argument_list &arguments) {
    if (arguments.size() < macro.parameter_count + 1)
        arguments.resize(macro.parameter_count + 1);
    for (auto &argument : arguments) {
        argument.first.clear();
        argument.lines.clear();
        argument.expanded.clear();
        argument.spelt = nullptr;
        argument.count = 0;
        argument.left_out = argument.is_expanded = false;
    }
    uint32_t number = 0;
    for (bool more = true; more; number++) {
        if (number && number >= macro.parameter_count)
            throw Unfit{"own-arguments"};
        auto &argument = arguments[number];
        for (int open = 0;;) {
            uint32_t line;
            const Lexeme *token = next(line);
            if (token->form == Form::End)
                throw Unfit{"own-arguments"};
            if (token->form == Form::Padding && argument.first.empty())
                continue;
            open += token->is('(');
            if (token->is(')') && open-- == 0) {
                more = false;
                break;
            }
            if (token->is(',') && !open && !(macro.variadic && number + 1 == macro.parameter_count))
                break;
            argument.first.push_back(token);
            argument.lines.push_back(line);
        }
        auto &first = argument.first;
        while (!first.empty() && first.back()->form == Form::Padding) {
            first.pop_back();
            argument.lines.pop_back();
        }
        argument.count = first.size();
        first.push_back(&end_);
        argument.lines.push_back(0);
    }
    if (number == 1 && !macro.parameter_count) {
        if (arguments[0].count)
            throw Unfit{"own-arguments"};
        return 0;
    }
    if (macro.variadic && (number < macro.parameter_count || (number == 1 && !arguments[0].count)))
        arguments[macro.parameter_count - 1].left_out = true;
    return number;
}

void Expansion::expand_argument(Argument &argument) {
    argument.is_expanded = true;
    if (!argument.count)
        return;
    contexts_.push_back({nullptr, argument.first.data(), argument.lines.data(), 0, argument.count + 1, 0, nullptr, 0});
    uint32_t line;
    for (const Lexeme *token; (token = next(line))->form != Form::End;)
        argument.expanded.push_back(token);
    contexts_.pop_back();
}

void Expansion::replace(Macro &macro, Argument_list &arguments, uint32_t line) {
    const Lexeme *limit = macro.body + macro.count;
    for (const Lexeme *source = macro.body; source < limit; source++) {
        if (source->form != Form::Parameter)
            continue;
        auto &argument = arguments[source->name];
        if (source->flags & SPELT) {
            if (!argument.spelt)
                argument.spelt = spell(argument);
        } else if (!(source->flags & PASTED) && !(source > macro.body && source[-1].flags & PASTED) && !argument.is_expanded) {
            expand_argument(argument);
        }
    }
    replaced_.clear();
    for (const Lexeme *source = macro.body; source < limit; source++) {
        if (source->form == Form::Parameter)
            replace_one(macro, arguments, source);
        else
            replaced_.push_back(source);
    }
    auto **list = lexemes_.list<const Lexeme *>(replaced_.size());
    std::copy(replaced_.begin(), replaced_.end(), list);
    macro.disabled = true;
    contexts_.push_back({nullptr, list, nullptr, 0, static_cast<uint32_t>(replaced_.size()), line, &macro, new_expansion()});
}

void Expansion::replace_one(const Macro &macro, Argument_list &arguments, const Lexeme *source) {
    auto &argument = arguments[source->name];
    const bool to_left = source > macro.body && source[-1].flags & PASTED;
    const Lexeme *const *from = &argument.spelt;
    size_t count = 1;
    ptrdiff_t flagged = -1;  // whose flag of pasting changes
    if (!(source->flags & SPELT)) {
        const bool plain = source->flags & PASTED || to_left;
        from = plain ? argument.first.data() : argument.expanded.data();
        count = plain ? argument.count : argument.expanded.size();
        if (!(source->flags & PASTED) && to_left && !replaced_.empty()) {
            if (replaced_.back()->is(',') && macro.variadic && source->name + 1 == macro.parameter_count) {
                // A comma before arguments that are left out goes too.
                if (argument.left_out)
                    replaced_.pop_back();
                else
                    flagged = replaced_.size() - 1;
            } else if (!count) {
                flagged = replaced_.size() - 1;
            }
        }
    }
    if (!scanner.directive && source > macro.body && !to_left)
        replaced_.push_back(padding(source));
    if (count) {
        replaced_.insert(replaced_.end(), from, from + count);
        if (source->flags & PASTED)
            flagged = replaced_.size() - 1;
    }
    if (!scanner.directive && !(source->flags & PASTED))
        replaced_.push_back(&nothing_);
    if (flagged >= 0) {
        Lexeme *token = keep(*replaced_[flagged]);
        token->flags = source->flags & PASTED ? token->flags | PASTED : token->flags & ~PASTED;
        replaced_[flagged] = token;
    }
}

Lexeme *Expansion::made(Form form, std::string_view text) {
    auto *token = lexemes_.list<Lexeme>(1);
    text = texts_.copy(text);
    token->form = form;
    token->text = text.data();
    token->size = text.size();
    token->name = token->line = 0;
    token->flags = 0;
    return token;
}

// What # makes of an argument.
const Lexeme *Expansion::spell(const Argument &argument) {
    spelt_ = '"';
    const Lexeme *source = nullptr;
    for (uint32_t at = 0; at < argument.count; at++) {
        const Lexeme *token = argument.first[at];
        if (token->form == Form::Padding) {
            if (!source || (!(source->flags & WHITE) && !token->source))
                source = token->source;
            continue;
        }
        if (spelt_.size() > 1 && (source ? source : token)->flags & WHITE)
            spelt_ += ' ';
        source = nullptr;
        is_local |= token->flags & COUNTED;
        for (char c : token->view()) {
            if (token->form == Form::Text && (c == '\\' || c == '"'))
                spelt_ += '\\';
            if (c < ' ')
                throw Unfit{"own-character"};
            spelt_ += c;
        }
    }
    spelt_ += '"';
    return made(Form::Text, spelt_);
}

void Expansion::paste(const Lexeme *left) {
    const uint32_t line = contexts_.back().line;
    const uint8_t white = left->flags & WHITE;
    const Lexeme *right;
    do {
        Context &context = contexts_.back();
        if (context.at >= context.count)
            throw Unfit{"own-paste"};
        right = context.direct ? context.direct + context.at : context.listed[context.at];
        context.at++;
        if (right->form == Form::Padding || right->form == Form::End || (left->is('/') && !right->is('=')))
            throw Unfit{"own-paste"};
        std::string_view spelt = texts_.copy(("\n" + std::string(left->view())).append(right->view()) + "\n\n").substr(1);
        Lexeme whole;
        if (!read_one(names_, texts_, spelt.substr(0, spelt.size() - 1), whole))
            throw Unfit{"own-paste"};
        whole.flags = white | (right->flags & COUNTED);
        whole.line = right->line;
        is_local |= left->flags & COUNTED;
        // What is made up so would be seen at another line by gcc, or is refused by it.
        if (whole.form == Form::Word && (whole.view() == "__VA_ARGS__" || whole.view() == "__VA_OPT__"))
            throw Unfit{"own-paste"};
        left = keep(whole);
    } while (right->flags & PASTED);
    Macro *macro = contexts_.back().macro;
    push_one(left, line, contexts_.back().expansion);
    contexts_.back().macro = macro;
}

void Expansion::special(const Macro &macro, uint32_t line) {
    const bool condition = scanner.directive;
    if (macro.special == Special::HasAttribute || macro.special == Special::HasBuiltin) {
        push_one(has(macro.special == Special::HasAttribute ? attributes : builtins), line, new_expansion());
    } else if (macro.special == Special::Other || condition) {
        throw Unfit{"own-special"};
    } else if (macro.special == Special::File || macro.special == Special::BaseFile) {
        is_local |= macro.special == Special::BaseFile;
        push_one(made(Form::Text, macro.special == Special::File ? around.file : around.base_file), line, new_expansion());
    } else {
        push_one(number(macro.special, line), line, new_expansion());
    }
}

const Lexeme *Expansion::number(Special special, uint32_t line) {
    is_local |= special == Special::Level;
    if (special != Special::Counter)
        return made(Form::Number, std::to_string(special == Special::Line ? line : around.depth));
    const uint64_t number = count();
    Lexeme *token = made(Form::Number, std::to_string(number));
    token->flags = COUNTED;
    token->line = number;
    return token;
}

const Lexeme *Expansion::has(const std::vector<int8_t> &answers) {
    const Lexeme *open = next_plain(), *name = next_plain(), *close = next_plain();
    if (!open->is('(') || name->form != Form::Word || !close->is(')') || macros_.find(name->name) || name->name >= answers.size() || answers[name->name] < 0)
        throw Unfit{OWN_HAS};
    return made(Form::Number, answers[name->name] ? "1" : "0");
}

}
