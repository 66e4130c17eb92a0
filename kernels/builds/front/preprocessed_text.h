// SPDX-License-Identifier: GPL-2.0-or-later
// Reads a text that gcc preprocessed: its tokens, the files and lines that they came from, the macros it tells of.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tokens.h"

namespace front {

inline constexpr uint32_t LARGEST_TOKEN = (1 << 24) - 1;

enum : uint8_t { BEGINS_WORD = 1, DIGIT = 2, BLANK = 4, BEGINS_MARK = 8, GOES_ON_MARK = 16 };

struct Classes {
    uint8_t of[256] = {};
    constexpr Classes() {
        for (int c = 0; c < 256; c++)
            if (((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '$' || c >= 128)
                of[c] = BEGINS_WORD;
        for (int c = '0'; c <= '9'; c++)
            of[c] = DIGIT;
        for (int c : {' ', '\t', '\f', '\v', '\r'})
            of[c] = BLANK;
        for (unsigned char c : std::string_view("-+<>=!&|*/%^#:."))
            of[c] |= BEGINS_MARK;
        for (unsigned char c : std::string_view("-+<>=&|#:."))
            of[c] |= GOES_ON_MARK;
    }
};
inline constexpr Classes CLASSES;

inline uint8_t of(unsigned char c) { return CLASSES.of[c]; }
inline bool begins_word(unsigned char c) { return CLASSES.of[c] & BEGINS_WORD; }
inline bool is_digit(unsigned char c) { return CLASSES.of[c] & DIGIT; }
inline bool in_word(unsigned char c) { return CLASSES.of[c] & (BEGINS_WORD | DIGIT); }

// Own gets each token, each change of the file and each macro that is told of, and may end it all by a reason.
template <typename Own> class PreprocessedText {
public:
    explicit PreprocessedText(Unit &unit) : unit_(unit), at_(unit.text.data()), end_(at_ + unit.text.size()) {}

    void read() {
        bool fresh = true;  // nothing but blanks on this line yet
        while (at_ < end_ && unit_.reason.empty()) {
            unsigned char c = *at_;
            if (c == '\n') {
                line_++;
                at_++;
                fresh = true;
            } else if (CLASSES.of[c] & BLANK) {
                at_++;
            } else if (c == '#' && fresh) {
                directive();
            } else {
                fresh = false;
                token(c);
            }
        }
    }

protected:
    Unit &unit_;
    const char *at_, *end_;
    uint32_t line_ = 1;

private:
    Own &own() { return static_cast<Own &>(*this); }

    void directive() {
        const char *stop = static_cast<const char *>(std::memchr(at_, '\n', end_ - at_));
        if (!stop) {
            unit_.reason = "directive";
            return;
        }
        std::string_view line(at_, stop - at_);
        if (line.substr(0, 7) == "#pragma")
            add(Kind::Pragma, line.size());
        else if (line.size() > 2 && line[1] == ' ' && is_digit(line[2]))
            marker(line);
        else if (line.substr(0, 8) == "#define " || line.substr(0, 7) == "#undef ")
            macro(line);
        else
            unit_.reason = "directive";
        at_ = stop;
    }

    // # LINE "FILE" FLAGS says where the next line came from.
    void marker(std::string_view line) {
        size_t open = line.find('"'), close = line.rfind('"');
        if (open == line.npos || close <= open) {
            unit_.reason = "directive";
            return;
        }
        line_ = std::strtoul(line.data() + 2, nullptr, 10) - 1;  // the line end that follows adds one
        // 1 enters a file and 2 comes back to it; 3 is a system's.
        const std::string_view flags = line.substr(close + 1);
        auto has = [&](char flag) { return flags.find(flag) != flags.npos; };
        own().file(line.substr(open + 1, close - open - 1), has('1'), has('2'), has('3'));
    }

    void macro(std::string_view line) {
        size_t begin = line.find(' ') + 1, end = begin;
        while (end < line.size() && in_word(line[end]))
            end++;
        own().macro_used(line.substr(begin, end - begin), line);
    }

    void add(Kind kind, size_t size) {
        if (size > LARGEST_TOKEN)
            unit_.reason = "token";
        else
            own().token_here(kind, size);
        at_ += size;
    }

    void token(unsigned char c) {
        if (begins_word(c)) {
            const char *stop = at_ + 1;
            while (stop < end_ && in_word(*stop))
                stop++;
            // L"text" and the like are one token each with their text.
            if (stop < end_ && (*stop == '"' || *stop == '\'') && stop - at_ <= 2)
                return quoted(stop);
            add(Kind::Word, stop - at_);
        } else if (is_digit(c) || (c == '.' && at_ + 1 < end_ && is_digit(at_[1]))) {
            number();
        } else if (c == '"' || c == '\'') {
            quoted(at_);
        } else if (c == '\\' || c == '`' || c == '@' || c < 32) {
            unit_.reason = "token";
        } else {
            add(Kind::Mark, mark_size());
        }
    }

    void number() {
        const char *stop = at_ + 1;
        while (stop < end_ && (in_word(*stop) || *stop == '.' ||
                               ((*stop == '+' || *stop == '-') && std::strchr("eEpP", stop[-1]))))
            stop++;
        add(Kind::Number, stop - at_);
    }

    void quoted(const char *open) {
        const char *stop = open + 1;
        while (stop < end_ && *stop != *open && *stop != '\n')
            stop += *stop == '\\' ? 2 : 1;
        if (stop >= end_ || *stop != *open) {
            unit_.reason = "token";
            return;
        }
        std::string_view text(at_, stop + 1 - at_);
        // The assembler would read a file that no key names.
        if (text.find(".inc") != text.npos)
            unit_.reason = "incbin";
        add(Kind::Text, text.size());
    }

    size_t mark_size() const {
        static constexpr std::string_view THREE[] = {"<<=", ">>=", "..."};
        static constexpr std::string_view TWO[] = {"->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
                                                   "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##", "::"};
        std::string_view rest(at_, std::min<size_t>(3, end_ - at_));
        if (rest.size() < 2 || !(of(rest[0]) & BEGINS_MARK) || !(of(rest[1]) & GOES_ON_MARK))
            return 1;
        for (auto mark : THREE)
            if (rest == mark)
                return 3;
        for (auto mark : TWO)
            if (rest.substr(0, 2) == mark)
                return 2;
        return 1;
    }
};

}
