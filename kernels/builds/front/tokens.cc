// SPDX-License-Identifier: GPL-2.0-or-later
#include "tokens.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "words.h"

namespace front {

namespace {

constexpr uint32_t FEW = 1 << 15;
constexpr uint32_t LARGEST_TOKEN = (1 << 24) - 1;

uint64_t fold(uint64_t one, uint64_t other) {
    unsigned __int128 product = static_cast<unsigned __int128>(one) * other;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

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
constexpr Classes CLASSES;

uint8_t of(unsigned char c) { return CLASSES.of[c]; }
bool begins_word(unsigned char c) { return CLASSES.of[c] & BEGINS_WORD; }
bool is_digit(unsigned char c) { return CLASSES.of[c] & DIGIT; }
bool in_word(unsigned char c) { return CLASSES.of[c] & (BEGINS_WORD | DIGIT); }

class Reader {
public:
    explicit Reader(Unit &unit) : unit_(unit), at_(unit.text.data()), end_(at_ + unit.text.size()) {}

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

private:
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

    void macro(std::string_view line) {
        size_t begin = line.find(' ') + 1, end = begin;
        while (end < line.size() && in_word(line[end]))
            end++;
        unit_.macros.push_back({unit_.names.number(line.substr(begin, end - begin)), line});
    }

    // # LINE "FILE" FLAGS says where the next line came from.
    void marker(std::string_view line) {
        size_t open = line.find('"'), close = line.rfind('"');
        if (open == line.npos || close <= open) {
            unit_.reason = "directive";
            return;
        }
        std::string_view name = line.substr(open + 1, close - open - 1);
        line_ = std::strtoul(line.data() + 2, nullptr, 10) - 1;  // the line end that follows adds one
        if (unit_.files.size() == 1 && name.size() > 2 && name.substr(name.size() - 2) == "//") {
            unit_.folder = name;
            return;
        }
        if (!unit_.files.empty() && name == unit_.files[file_].name)
            return;
        // 1 enters a file and 2 comes back to it; 3 is a system's.
        std::string_view flags = line.substr(close + 1);
        bool enters = flags.find('1') != flags.npos, system = flags.find('3') != flags.npos;
        auto known = numbers_.find(name);
        if (known == numbers_.end()) {
            if (unit_.files.size() == UINT16_MAX) {
                unit_.reason = "directive";
                return;
            }
            known = numbers_.emplace(name, unit_.files.size()).first;
            unit_.files.push_back({name, enters && system});
        }
        unit_.relined |= known->second && name[0] != '<' && !enters && flags.find('2') == flags.npos;
        file_ = known->second;
        unit_.files[file_].system &= system || !enters;
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

    void add(Kind kind, size_t size) {
        if (size > LARGEST_TOKEN) {
            unit_.reason = "token";
            return;
        }
        uint32_t name = 0;
        if (kind == Kind::Word)
            name = unit_.names.number({at_, size});
        else if (kind == Kind::Mark && size == 1)
            name = static_cast<unsigned char>(*at_);
        unit_.tokens.push_back({at_, static_cast<uint32_t>(size), static_cast<uint32_t>(kind), 0, name, line_, file_});
        at_ += size;
    }

    Unit &unit_;
    const char *at_, *end_;
    uint32_t line_ = 1;
    uint16_t file_ = 0;
    std::unordered_map<std::string_view, uint16_t> numbers_;
};

}

Names::Names() : slots_(FEW) {
    for (auto &word : WORDS)
        number(word.text);
}

uint64_t quick_hash(std::string_view word) {
    constexpr uint64_t ONE = 0x9e3779b97f4a7c15, OTHER = 0xd6e8feb86659fd93;
    uint64_t hash = fold(word.size() ^ ONE, OTHER), part;
    const char *at = word.data();
    size_t size = word.size();
    for (; size > sizeof part; at += sizeof part, size -= sizeof part) {
        std::memcpy(&part, at, sizeof part);
        hash = fold(hash ^ part, ONE);
    }
    // The rest in two parts that may overlap: their size is in the hash.
    if (size >= sizeof(uint32_t)) {
        uint32_t one, other;
        std::memcpy(&one, at, sizeof one);
        std::memcpy(&other, at + size - sizeof other, sizeof other);
        part = static_cast<uint64_t>(one) << 32 | other;
    } else {
        part = 0;
        for (size_t byte = 0; byte < size; byte++)
            part = part << 8 | static_cast<unsigned char>(at[byte]);
    }
    return fold(hash ^ part, OTHER);
}

bool Names::is(const Slot &slot, uint32_t tag, std::string_view word) const {
    if (slot.tag != tag)
        return false;
    const std::string_view known = words_[slot.number - 1];
    return known.size() == word.size() && !std::memcmp(known.data(), word.data(), word.size());
}

uint32_t Names::number(std::string_view word) {
    const uint64_t hash = quick_hash(word);
    const uint32_t mask = slots_.size() - 1, tag = hash >> 32;
    for (uint32_t at = hash & mask;; at = (at + 1) & mask) {
        Slot &slot = slots_[at];
        if (!slot.number) {
            words_.push_back(word);
            hashes_.push_back(hash);
            slot = {tag, static_cast<uint32_t>(words_.size())};
            if (words_.size() * 2 > slots_.size())
                grow();
            return words_.size() - 1;
        }
        if (is(slot, tag, word))
            return slot.number - 1;
    }
}

int64_t Names::find(std::string_view word) const {
    const uint64_t hash = quick_hash(word);
    const uint32_t mask = slots_.size() - 1, tag = hash >> 32;
    for (uint32_t at = hash & mask; slots_[at].number; at = (at + 1) & mask)
        if (is(slots_[at], tag, word))
            return slots_[at].number - 1;
    return -1;
}

void Names::grow() {
    std::vector<Slot> slots(slots_.size() * 2);
    const uint32_t mask = slots.size() - 1;
    for (auto &slot : slots_) {
        if (!slot.number)
            continue;
        uint32_t at = hashes_[slot.number - 1] & mask;
        while (slots[at].number)
            at = (at + 1) & mask;
        slots[at] = slot;
    }
    slots_.swap(slots);
}

void read_tokens(Unit &unit) {
    // More than there will be: memory that is never written costs nothing, and moving a million tokens does.
    unit.tokens.reserve(unit.text.size() / 2 + 1);
    Reader(unit).read();
    if (unit.reason.empty() && unit.files.empty())
        unit.reason = "directive";
}

}
