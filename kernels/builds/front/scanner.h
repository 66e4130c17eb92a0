// SPDX-License-Identifier: GPL-2.0-or-later
// The tokens of a source file before preprocessing. What is seldom or odd is refused: then gcc reads the file.
#pragma once

#include <cstdint>
#include <string_view>

#include "memory.h"
#include "tokens.h"

namespace front {

// Thrown where our own preprocessor does not know what gcc's would do.
struct Unfit {
    const char *reason;
};

// gcc -E and gcc -c may answer __has_builtin differently, and no text tells.
inline constexpr const char *OWN_HAS = "own-has";

enum class Form : uint8_t { Mark, Word, Number, Text, Pragma, Padding, Parameter, End };

// Of a token, as the preprocessor knows them.
enum : uint8_t {
    SPACED = 64,     // in a macro's body: a blank stood before its ##, or behind its #
    FIRST = 1,       // of its line
    WHITE = 2,       // behind a blank
    PASTED = 4,      // with what follows, by ##
    SPELT = 8,       // a parameter behind #
    NO_EXPAND = 16,  // a macro's name within that macro's expansion
    COUNTED = 32,    // its text ends in a number of __COUNTER__
};

struct Lexeme {
    union {
        const char *text;
        const Lexeme *source;  // of Padding: whose blank it stands for, or null
    };
    uint32_t size;
    uint32_t name;  // as in Token; of a Parameter: its number
    uint32_t line;  // of what macros made up and is COUNTED: that number
    Form form;
    uint8_t flags;

    std::string_view view() const { return {text, size}; }
    bool is(char mark) const { return form == Form::Mark && name == static_cast<unsigned char>(mark); }
    bool is(std::string_view mark) const { return form == Form::Mark && view() == mark; }
};

enum class Arguments : uint8_t { No, Sought, Read };

// A text that ends in a newline and a null behind it, and has a newline before it.
class Scanner {
public:
    Scanner(Names &names, Memory &texts) : names_(&names), texts_(&texts) {}
    void begin(std::string_view text, uint32_t line) {
        at_ = text.data();
        end_ = at_ + text.size();
        line_ = line;
        fresh_ = true;
    }

    // End at the end of the text, and in a directive at that of its line.
    void next(Lexeme &token);
    // Behind the next # that begins a line and is not within a comment; false at the end.
    bool next_directive();
    // The word here, behind blanks and comments, or "".
    std::string_view directive_word();
    void skip_line();
    // Refuses what else is on the line.
    void expect_end();
    // "name" or <name>, or "" for neither.
    std::string_view header_name(bool &angled);

    bool at_end() const { return at_ >= end_; }
    const char *at() const { return at_; }
    uint32_t line() const { return line_; }

    bool directive = false;
    // gcc complains of two names but in the definition of a macro with variable arguments: these, one after the other.
    uint32_t guarded_name = UINT32_MAX - 1;
    bool defining = false;
    Arguments arguments = Arguments::No;

private:
    void comment();
    void line_comment();
    void escaped_line();
    void skip_blanks();
    void skip_quoted();
    void word(Lexeme &token);
    void number(Lexeme &token);
    void quoted(Lexeme &token, const char *open);
    void mark(Lexeme &token);
    void finish(Lexeme &token, Form form, const char *stop) {
        token.form = form;
        token.text = at_;
        token.size = stop - at_;
        at_ = stop;
    }

    Names *names_;
    Memory *texts_;
    const char *at_ = nullptr, *end_ = nullptr;
    uint32_t line_ = 0;
    bool fresh_ = true;
};

// Reads one token that is a whole text; false if it is several or none. The text must end in a newline.
bool read_one(Names &names, Memory &texts, std::string_view text, Lexeme &token);

}
