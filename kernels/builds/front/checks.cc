// SPDX-License-Identifier: GPL-2.0-or-later
#include "checks.h"

#include <array>
#include <cstddef>

namespace front {

namespace {

// Two sums of 64 bits. Nobody gains by forging one: it says only that a text needs no second look for warnings.
struct Sum {
    uint64_t one = 0x243f6a8885a308d3, other = 0x13198a2e03707344;

    void add(uint64_t value) {
        one = (one ^ value) * 0x9e3779b97f4a7c15;
        one ^= one >> 32;
        other = (other + value) * 0xd6e8feb86659fd93;
        other ^= other >> 29;
    }
    void add(const Sum &sum) {
        add(sum.one);
        add(sum.other);
    }
    explicit operator bool() const { return filled; }

    bool filled = false;
};

// Names that the kernel's macros make with a number of their own: which one is no matter.
constexpr std::string_view NUMBERED[] = {"__compiletime_assert_", "__UNIQUE_ID_"};

class Summer {
public:
    Summer(const Unit &unit, const Pieces &pieces)
        : unit_(unit), pieces_(pieces), ordinary_(unit.names.count()), tags_(unit.names.count()),
          seen_(unit.names.count(), UINT32_MAX), uses_(unit.names.count()), sums_(pieces.all.size()) {}

    Reading run() {
        for (uint32_t number = 0; number < pieces_.all.size(); number++)
            add(number);
        for (uint32_t number = 0; number < pieces_.all.size(); number++)
            if (pieces_.all[number].awaits)
                await(number);
        std::vector<Run> runs;
        std::string sums;
        sums.reserve(sums_.size() * SUM);
        for (auto &sum : sums_)
            sums += bytes(sum);
        for (uint32_t number = 0; number < pieces_.all.size();) {
            uint32_t end = number;
            auto &file = unit_.files[pieces_.all[number].file];
            Sum sum;
            uint64_t path = quick_hash(file.name);
            sum.add(path);
            while (end < pieces_.all.size() && pieces_.all[end].file == pieces_.all[number].file)
                sum.add(sums_[end++]);
            if (pieces_.all[number].file)
                runs.push_back({number, end, std::string(reinterpret_cast<const char *>(&path), PATH).append(bytes(sum))});
            number = end;
        }
        return {std::move(runs), std::move(sums), std::move(uses_)};
    }

private:
    static std::string_view bytes(const Sum &sum) {
        static_assert(offsetof(Sum, other) == sizeof sum.one && offsetof(Sum, filled) == SUM);
        return {reinterpret_cast<const char *>(&sum), SUM};
    }

    void add(uint32_t number) {
        const Piece &piece = pieces_.all[number];
        Sum sum, head;
        sum.add(pragmas_);
        sum.add(unit_.files[piece.file].system);
        numbered_.clear();
        for (uint32_t at = piece.first; at < piece.end; at++) {
            if (at == piece.body)
                head = sum;
            const Token &token = unit_.tokens[at];
            if (token.kind() == Kind::Word)
                word(number, token.name, sum);
            else if (token.kind() == Kind::Mark)
                sum.add(token.name ? token.name : quick_hash(token.view()));
            else if (token.kind() == Kind::Pragma)
                pragma(token.view(), sum);
            else if (!(token.kind() == Kind::Number && is_operand(piece, at)))
                sum.add(quick_hash(token.view()));
        }
        sums_[number] = sum;
        for (uint32_t at = piece.names_at; at < piece.names_end; at++)
            if (seen_[pieces_.names[at]] == number) {
                seen_[pieces_.names[at]] = UINT32_MAX;
                uses_[pieces_.names[at]]--;
            }
        declare(piece, piece.body < piece.end && !piece.nested ? head : sum);
    }

    void word(uint32_t number, uint32_t name, Sum &sum) {
        const bool known = bool(ordinary_[name]) || bool(tags_[name]);
        sum.add(known ? unit_.names.hash(name) : own(name));
        if (seen_[name] == number || !known)
            return;
        seen_[name] = number;
        uses_[name]++;
        sum.add(ordinary_[name]);
        sum.add(tags_[name]);
    }

    // What stands for a name that nothing declared before.
    uint64_t own(uint32_t name) {
        auto text = unit_.names.word(name);
        if (text[0] == '_')
            for (auto prefix : NUMBERED) {
                if (text.substr(0, prefix.size()) != prefix)
                    continue;
                size_t end = text.find_last_not_of("0123456789") + 1;
                size_t place = 0;
                while (place < numbered_.size() && numbered_[place] != name)
                    place++;
                if (place == numbered_.size())
                    numbered_.push_back(name);
                return quick_hash(text.substr(0, end)) + place + 1;
            }
        return unit_.names.hash(name);
    }

    // The number in "i" (123), as of a line: assembly takes any.
    bool is_operand(const Piece &piece, uint32_t at) const {
        const Token *token = &unit_.tokens[at];
        if (at < piece.first + 2 || at + 1 >= piece.end || token->size > 6 || !token[-1].is('(') || !token[1].is(')') ||
            token[-2].view() != "\"i\"" || *token->text == '0')
            return false;
        for (char c : token->view())
            if (c < '0' || c > '9')
                return false;
        return true;
    }

    // Pushed and popped, for a header that leaves things as they were leaves what comes after it alone.
    void pragma(std::string_view text, Sum &sum) {
        sum.add(quick_hash(text));
        if (text == "#pragma GCC diagnostic push") {
            pushed_.push_back(pragmas_);
        } else if (text == "#pragma GCC diagnostic pop" && !pushed_.empty()) {
            pragmas_ = pushed_.back();
            pushed_.pop_back();
        } else {
            pragmas_.add(quick_hash(text));
        }
    }

    void declare(const Piece &piece, const Sum &sum) {
        for (uint32_t at = piece.names_at; at < piece.names_end; at++) {
            uint32_t name = pieces_.names[at];
            Declares how = pieces_.how[at];
            Sum &known = how == Declares::Ordinary || how == Declares::Nested ? ordinary_[name] : tags_[name];
            if (how == Declares::Local || how == Declares::LocalTag)
                continue;
            if (how == Declares::Ordinary || how == Declares::Nested)
                known.add(sum);
            else if (how == Declares::Tag)
                known = sum;
            else if (!known)
                known.add(static_cast<uint64_t>(how));
            known.filled = true;
        }
    }

    void await(uint32_t number) {
        const Piece &piece = pieces_.all[number];
        for (uint32_t at = piece.first; at < piece.end; at++) {
            if (unit_.tokens[at].kind() != Kind::Word)
                continue;
            uint32_t name = unit_.tokens[at].name;
            for (uint32_t by = pieces_.from[name]; by < pieces_.from[name + 1]; by++)
                if (pieces_.by_name[by] > number)
                    sums_[number].add(sums_[pieces_.by_name[by]]);
        }
    }

    const Unit &unit_;
    const Pieces &pieces_;
    std::vector<Sum> ordinary_, tags_;  // of what declared a name so far
    std::vector<uint32_t> seen_;        // the last piece that mentioned a name
    std::vector<uint32_t> uses_;
    std::vector<Sum> sums_;
    std::vector<uint32_t> numbered_;
    Sum pragmas_;
    std::vector<Sum> pushed_;
};

}

Reading read_runs(const Unit &unit, const Pieces &pieces) { return Summer(unit, pieces).run(); }

}
