// SPDX-License-Identifier: GPL-2.0-or-later
// The macros that are defined.
#pragma once

#include <string_view>
#include <vector>

#include "scanner.h"

namespace front {

enum class Special : uint8_t { No, Line, File, BaseFile, Level, Counter, HasAttribute, HasBuiltin, Other };

struct Macro {
    const Lexeme *body = nullptr;
    const uint32_t *parameters = nullptr;  // names
    uint32_t name = 0, count = 0, parameter_count = 0;
    Special special = Special::No;
    bool function = false, variadic = false;
    bool disabled = false;  // within its own expansion
    bool pasting = false;   // has ##
    Macro *other = nullptr;  // another that had the same name, see Definitions
};

// A macro, and what it stands for: null for none.
struct MacroValue {
    uint32_t name;
    Macro *macro;
};

// All definitions that were met, equal ones once.
class Definitions {
public:
    Macro *only(const Macro &made, Memory &texts);

private:
    std::vector<Macro *> by_name_;
};

class Macros {
public:
    Macros(Names &names, Memory &texts, Definitions &definitions);

    // Of "__VA_ARGS__", and of "__VA_OPT__" behind it.
    uint32_t arguments_name() const { return arguments_; }
    uint32_t defined_name() const { return defined_; }

    Macro *find(uint32_t name) {
        Macro *macro = value(name);
        if (asked_)
            note(name, macro);
        return macro;
    }
    // The same, without a note of it.
    Macro *value(uint32_t name) const { return name < by_name_.size() ? by_name_[name] : nullptr; }
    void set(const MacroValue &value) { put(value.name, value.macro); }

    // From here on lists each macro that is asked for, with its value now. Null ends that.
    void list_asked(std::vector<MacroValue> *asked);

    // Reads what follows #define to the end of its line.
    void define(Scanner &scanner);
    // What follows #undef.
    void undefine(Scanner &scanner);
    // The built-in macros, as gcc -dM lists them: those are no redefinitions.
    void define_all(std::string_view lines);
    void make_special(std::string_view name, Special special);

private:
    void put(uint32_t name, Macro *macro);
    bool parameters(Scanner &scanner, Macro &macro);
    void body(Scanner &scanner, Macro &macro, Lexeme token);
    void join(const Macro &macro, size_t from);
    void refuse_own_names(const Lexeme &token);
    void note(uint32_t name, Macro *macro);

    Names *names_;
    Memory *texts_;
    Definitions *definitions_;
    uint32_t defined_, arguments_, option_;
    std::vector<Macro *> by_name_;
    std::vector<MacroValue> *asked_ = nullptr;
    std::vector<uint32_t> noted_;       // by name, the last list that has it
    uint32_t list_ = 0;
    std::vector<Lexeme> tokens_;        // of the body at hand
    std::vector<uint32_t> parameters_;  // of the macro at hand
};

}
