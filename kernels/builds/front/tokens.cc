// SPDX-License-Identifier: GPL-2.0-or-later
#include "tokens.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "words.h"

namespace front {

namespace {

constexpr uint32_t FEW = 1 << 15;

uint32_t mixed(std::string_view word) {
    uint64_t hash = 0xcbf29ce484222325;
    for (unsigned char byte : word)
        hash = (hash ^ byte) * 0x100000001b3;
    return hash ^ hash >> 32;
}

bool begins_word(unsigned char c) { return ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '$' || c >= 128; }
bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
bool in_word(unsigned char c) { return begins_word(c) || is_digit(c); }

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
            } else if (c == ' ' || c == '\t' || c == '\f' || c == '\v' || c == '\r') {
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
        std::string_view name = line.substr(open + 1, close - open - 1);
        line_ = std::strtoul(line.data() + 2, nullptr, 10) - 1;  // the line end that follows adds one
        if (unit_.files.size() == 1 && name.size() > 2 && name.substr(name.size() - 2) == "//") {
            unit_.folder = name;
            return;
        }
        auto known = numbers_.find(name);
        if (known == numbers_.end()) {
            if (unit_.files.size() == UINT16_MAX) {
                unit_.reason = "directive";
                return;
            }
            known = numbers_.emplace(name, unit_.files.size()).first;
            unit_.files.push_back(name);
        }
        file_ = known->second;
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
        for (auto mark : THREE)
            if (rest == mark)
                return 3;
        if (rest.size() > 1 && std::strchr("-+<>=!&|*/%^#:", rest[0]) && std::strchr("-+<>=&|#:", rest[1]))
            for (auto mark : TWO)
                if (rest.substr(0, 2) == mark)
                    return 2;
        return 1;
    }

    void add(Kind kind, size_t size) {
        uint32_t name = kind == Kind::Word ? unit_.names.number({at_, size}) : 0;
        unit_.tokens.push_back({at_, static_cast<uint32_t>(size), line_, name, file_, kind});
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

uint32_t Names::number(std::string_view word) {
    uint32_t hash = mixed(word), mask = slots_.size() - 1;
    for (uint32_t at = hash & mask;; at = (at + 1) & mask) {
        if (!slots_[at]) {
            words_.push_back(word);
            hashes_.push_back(hash);
            slots_[at] = words_.size();
            if (words_.size() * 2 > slots_.size())
                grow();
            return words_.size() - 1;
        }
        uint32_t number = slots_[at] - 1;
        if (hashes_[number] == hash && words_[number] == word)
            return number;
    }
}

int64_t Names::find(std::string_view word) const {
    uint32_t hash = mixed(word), mask = slots_.size() - 1;
    for (uint32_t at = hash & mask; slots_[at]; at = (at + 1) & mask)
        if (hashes_[slots_[at] - 1] == hash && words_[slots_[at] - 1] == word)
            return slots_[at] - 1;
    return -1;
}

void Names::grow() {
    std::vector<uint32_t> slots(slots_.size() * 2);
    uint32_t mask = slots.size() - 1;
    for (uint32_t number = 0; number < words_.size(); number++) {
        uint32_t at = hashes_[number] & mask;
        while (slots[at])
            at = (at + 1) & mask;
        slots[at] = number + 1;
    }
    slots_.swap(slots);
}

void read_tokens(Unit &unit) {
    unit.tokens.reserve(unit.text.size() / 5);
    Reader(unit).read();
    if (unit.reason.empty() && unit.files.empty())
        unit.reason = "directive";
}

}
