// SPDX-License-Identifier: GPL-2.0-or-later
// Macro expansion, in the order and with the blanks of gcc's.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "macros.h"

namespace front {

// Facts that change from file to file.
struct Surroundings {
    std::string_view file;       // as __FILE__ is spelt, with its quotes
    std::string_view base_file;
    uint32_t depth = 0;
};

// Who reads a directive that stands within the arguments of a macro; its '#' has been read.
class Directives {
public:
    virtual void within_arguments() = 0;

protected:
    ~Directives() = default;
};

class Expansion {
public:
    Expansion(Names &names, Memory &texts, Macros &macros, Directives &directives)
        : names_(names), texts_(texts), macros_(macros), directives_(directives), scanner(names, texts) {
        nothing_.form = end_.form = Form::Padding;
        nothing_.source = nullptr;
        nothing_.flags = end_.flags = 0;
        end_.form = Form::End;
    }

    // Calls emit for each token of what a macro's name in the text becomes, with its line and the number of the innermost expansion that
    // brought it; false if the name stands for itself.
    template <typename Emit> bool expand(const Lexeme &name, Macro &macro, Emit emit) {
        const Lexeme *kept = keep(name);
        const bool done = enter(*kept, macro, name.line);
        uint32_t line;
        while (!contexts_.empty()) {
            const Lexeme *token = next(line);
            // Behind the last context comes the text: a name there that begins a macro is its.
            emit(*token, line, expansion_);
        }
        lexemes_.reuse();
        return done;
    }

    // The next token, all macros expanded.
    const Lexeme *next(uint32_t &line);
    // In a condition: the next token, where no macro is expanded.
    const Lexeme *next_plain();
    bool in_macro() const { return !contexts_.empty(); }
    // What was read ahead of its turn.
    bool take_ahead(Lexeme &token);
    bool has_ahead() const { return has_ahead_; }
    // A number more of __COUNTER__, or several.
    uint64_t count(uint64_t numbers = 1) { return (counter_ += numbers) - numbers; }
    void reuse() { lexemes_.reuse(); }

    ~Expansion() {
        // Others go on with macros that a refused file left in the middle of their expansions.
        for (auto &context : contexts_)
            if (context.macro)
                context.macro->disabled = false;
    }

    Surroundings around;
    // Whether something was made that other files or places would make in another way.
    bool is_local = false;
    // What __has_attribute and __has_builtin say, by name: -1 where it is not known.
    std::vector<int8_t> attributes, builtins;

private:
    struct Context {
        const Lexeme *direct;         // tokens in a row, or
        const Lexeme *const *listed;  // their places
        const uint32_t *lines;        // theirs, or null: they are all on the macro's
        uint32_t at, count, line;
        Macro *macro;
        uint16_t expansion;
    };
    struct Argument {
        std::vector<const Lexeme *> first, expanded;
        std::vector<uint32_t> lines;
        const Lexeme *spelt = nullptr;
        uint32_t count = 0;
        bool left_out = false, is_expanded = false;
    };
    using Argument_list = std::vector<Argument>;

    Lexeme *keep(const Lexeme &token) { return new (lexemes_.list<Lexeme>(1)) Lexeme(token); }
    const Lexeme *padding(const Lexeme *source);
    const Lexeme *text_token();
    void back(const Lexeme *token);
    void pop();
    void push_one(const Lexeme *token, uint32_t line, uint16_t expansion);
    // From 1, and again from 1 after many: what is near another has another number.
    uint16_t new_expansion() { return expansions_++ % UINT16_MAX + 1; }
    uint16_t expansion_at_hand() const { return contexts_.empty() ? 0 : contexts_.back().expansion; }
    bool enter(const Lexeme &name, Macro &macro, uint32_t line);
    bool enter_function(Macro &macro, uint32_t line);
    bool is_called();
    void special(const Macro &macro, uint32_t line);
    const Lexeme *has(const std::vector<int8_t> &answers);
    uint32_t collect(const Macro &macro, Argument_list &arguments);
    void expand_argument(Argument &argument);
    void replace(Macro &macro, Argument_list &arguments, uint32_t line);
    void replace_one(const Macro &macro, Argument_list &arguments, const Lexeme *source);
    const Lexeme *spell(const Argument &argument);
    Lexeme *made(Form form, std::string_view text);
    const Lexeme *number(Special special, uint32_t line);
    void paste(const Lexeme *left);

    Names &names_;
    Memory &texts_;
    Macros &macros_;
    Directives &directives_;
    Memory lexemes_;  // of the expansion at hand
    std::vector<Context> contexts_;
    std::deque<Argument_list> frames_;
    size_t depth_ = 0;
    std::vector<const Lexeme *> replaced_;
    std::string spelt_;
    Lexeme nothing_, end_, ahead_;
    bool has_ahead_ = false;
    int plain_ = 0;
    uint64_t counter_ = 0;
    uint32_t expansions_ = 0;
    uint16_t expansion_ = 0;  // of the token that was read last

public:
    Scanner scanner;
};

}
