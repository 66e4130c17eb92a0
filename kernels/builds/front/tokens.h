// SPDX-License-Identifier: GPL-2.0-or-later
// The tokens of a preprocessed file, each with the file and line that it came from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace front {

enum class Kind : uint8_t { Mark, Word, Number, Text, Pragma };

struct Token {
    const char *text;
    uint32_t size;
    uint32_t line;
    uint32_t name;  // of a Word: its number among Names
    uint16_t file;
    Kind kind;

    std::string_view view() const { return {text, size}; }
    bool is(char mark) const { return kind == Kind::Mark && size == 1 && *text == mark; }
};

// Every distinct word once. Numbers from 0; words of the language come first, see words.h.
class Names {
public:
    Names();
    uint32_t number(std::string_view word);
    // The number of a word that has been seen, or -1.
    int64_t find(std::string_view word) const;
    std::string_view word(uint32_t number) const { return words_[number]; }
    uint32_t count() const { return words_.size(); }

private:
    void grow();

    std::vector<std::string_view> words_;
    std::vector<uint32_t> hashes_;
    std::vector<uint32_t> slots_;  // number + 1; 0 is empty
};

struct Unit {
    std::string text;
    Names names;
    std::vector<Token> tokens;
    std::vector<std::string_view> files;  // as the line markers spell them; 0 is the input
    std::string_view folder;              // the working directory, if the markers name it
    std::string reason;                   // why the file was not understood, or ""
};

// Reads unit.text.
void read_tokens(Unit &unit);

}
