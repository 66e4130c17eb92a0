// SPDX-License-Identifier: GPL-2.0-or-later
#include "tokens.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "memory.h"
#include "preprocessed_text.h"
#include "words.h"

namespace front {

namespace {

constexpr uint32_t FEW = 1 << 15;

uint64_t fold(uint64_t one, uint64_t other) {
    unsigned __int128 product = static_cast<unsigned __int128>(one) * other;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

class Collector : public PreprocessedText<Collector> {
public:
    using PreprocessedText::PreprocessedText;

    void file(std::string_view name, bool enters, bool returns, bool system) {
        if (unit_.files.size() == 1 && name.size() > 2 && name.substr(name.size() - 2) == "//") {
            unit_.folder = name;
            return;
        }
        if (!unit_.files.empty() && name == unit_.files[file_].name)
            return;
        auto known = numbers_.find(name);
        if (known == numbers_.end()) {
            if (unit_.files.size() == UINT16_MAX) {
                unit_.reason = "directive";
                return;
            }
            known = numbers_.emplace(name, unit_.files.size()).first;
            unit_.files.push_back({name, enters && system});
        }
        unit_.relined |= known->second && name[0] != '<' && !enters && !returns;
        file_ = known->second;
        unit_.files[file_].system &= system || !enters;
    }

    void macro_used(std::string_view name, std::string_view line) { unit_.macros.push_back({unit_.names.number(name), line}); }

    void token_here(Kind kind, size_t size) {
        uint32_t name = 0;
        if (kind == Kind::Word)
            name = unit_.names.number({at_, size});
        else if (kind == Kind::Mark && size == 1)
            name = static_cast<unsigned char>(*at_);
        unit_.tokens.push_back({at_, static_cast<uint32_t>(size), static_cast<uint32_t>(kind), name, line_, file_});
    }

private:
    uint16_t file_ = 0;
    std::unordered_map<std::string_view, uint16_t> numbers_;
};

// Goes along tokens that are there already.
class Follower : public PreprocessedText<Follower> {
public:
    using PreprocessedText::PreprocessedText;

    bool is_same() const {
        return unit_.reason.empty() && !file_.empty() && unit_.places.size() == unit_.tokens.size() && foldered_ == !unit_.folder.empty();
    }

    void file(std::string_view name, bool enters, bool returns, bool system) {
        if (unit_.files.empty() || (file_.empty() && name != unit_.files[0].name))
            return refuse();
        if (alone_ && !file_.empty() && name.size() > 2 && name.substr(name.size() - 2) == "//") {
            foldered_ = true;
            return name == unit_.folder ? void() : refuse();
        }
        // What is a system's, or has its place by a #line, we do not read ourselves.
        if (system || (name != file_ && name[0] != '<' && name != unit_.files[0].name && !enters && !returns))
            return refuse();
        alone_ &= name == unit_.files[0].name;
        file_ = name;
        known_ = UINT32_MAX;
    }

    // The text may go before the names do.
    void macro_used(std::string_view name, std::string_view line) {
        const int64_t known = unit_.names.find(name);
        unit_.macros.push_back({known >= 0 ? static_cast<uint32_t>(known) : unit_.names.number(unit_.memory->copy(name)), line});
    }

    void token_here(Kind kind, size_t size) {
        const size_t number = unit_.places.size();
        if (number >= unit_.tokens.size())
            return refuse();
        const Token &token = unit_.tokens[number];
        if (token.file != known_ && unit_.files[token.file].name != file_)
            return refuse();
        known_ = token.file;
        if (token.kind() != kind || token.size != size || token.line != line_ || std::memcmp(token.text, at_, size))
            return refuse();
        unit_.places.push_back(at_ - unit_.text.data());
    }

private:
    void refuse() { unit_.reason = "other"; }

    bool foldered_ = false;
    bool alone_ = true;      // no file but the input was named yet
    std::string_view file_;
    uint32_t known_ = UINT32_MAX;
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

uint32_t Names::number(std::string_view word, uint64_t hash) {
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
    Collector(unit).read();
    if (unit.reason.empty() && unit.files.empty())
        unit.reason = "directive";
}

bool follow_tokens(Unit &unit) {
    unit.places.clear();
    unit.places.reserve(unit.tokens.size());
    unit.macros.clear();
    Follower follower(unit);
    follower.read();
    return follower.is_same();
}

}
