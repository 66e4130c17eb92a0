// SPDX-License-Identifier: GPL-2.0-or-later
// The tokens of a preprocessed file, each with the file and line that it came from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace front {

class Memory;

enum class Kind : uint8_t { Mark, Word, Number, Text, Pragma };

// Small, for a file has a million.
struct Token {
    const char *text;
    uint32_t size : 24;
    uint32_t kind_number : 8;
    uint32_t name;  // of a Word: its number among Names; of a Mark of one character: that
    uint32_t line;
    uint16_t file;
    uint16_t expansion = 0;  // the number of the innermost one that brought it, none near it has the same; known of what we read ourselves

    bool expanded() const { return expansion; }
    Kind kind() const { return static_cast<Kind>(kind_number); }
    std::string_view view() const { return {text, size}; }
    bool is(char mark) const { return kind() == Kind::Mark && name == static_cast<unsigned char>(mark); }
};

// 64 bits that tell a word from others: for sums that guard nothing.
uint64_t quick_hash(std::string_view word);

inline constexpr uint32_t NO_NAME = UINT32_MAX;

// Every distinct word once. Numbers from 0; words of the language come first, see words.h.
class Names {
public:
    Names();
    uint32_t number(std::string_view word) { return number(word, quick_hash(word)); }
    // hash: the word's.
    uint32_t number(std::string_view word, uint64_t hash);
    // The number of a word that has been seen, or -1.
    int64_t find(std::string_view word) const;
    std::string_view word(uint32_t number) const { return words_[number]; }
    uint64_t hash(uint32_t number) const { return hashes_[number]; }
    uint32_t count() const { return words_.size(); }

private:
    struct Slot {
        uint32_t tag, number;  // of its hash; plus 1, 0 being empty
    };

    void grow();
    bool is(const Slot &slot, uint32_t tag, std::string_view word) const;

    std::vector<std::string_view> words_;
    std::vector<uint64_t> hashes_;
    std::vector<Slot> slots_;
};

struct Source {
    std::string_view name;  // as the line markers spell it
    bool system;            // the compiler says less about it
    std::string_view text = {};  // what it contains, if we read it ourselves: unexpanded tokens stand there
};

// A macro that the preprocessor made use of, and where its line stands in the text.
struct UsedMacro {
    uint32_t name;
    std::string_view line;
};

struct Unit {
    std::string text;                // as gcc preprocessed it, or
    std::shared_ptr<Memory> memory;  // the texts that we read ourselves
    Names names;
    std::vector<Token> tokens;
    std::vector<Source> files;  // 0 is the input
    std::vector<UsedMacro> macros;
    std::vector<uint32_t> places;  // where in the text the tokens stand, if they were read from elsewhere
    std::string_view folder;  // the working directory, if the markers name it
    std::string release;      // the end of the kernel's release, where the tokens have PLACEHOLDER for it
    bool relined = false;     // a #line says where text comes from, so that no file has it there
    std::string reason;       // why the file was not understood, or ""

    // A token in the text.
    const char *place(uint32_t token) const { return places.empty() ? tokens[token].text : text.data() + places[token]; }
};

// Reads unit.text.
void read_tokens(Unit &unit);

// Whether unit.text, as gcc preprocessed it, has the unit's tokens and no others, each at its line of its file; notes places and macros,
// whose names may be new ones.
bool follow_tokens(Unit &unit);

}
