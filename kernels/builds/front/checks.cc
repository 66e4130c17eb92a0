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

// Of what declared a name: all that its complaints can come from, and the same but for what is behind pointers to structures.
struct Sums {
    Sum deep, shallow;

    void add(uint64_t value) {
        deep.add(value);
        shallow.add(value);
    }
    void add(const Sum &sum) {
        deep.add(sum);
        shallow.add(sum);
    }
    void add(const Sums &sums) {
        deep.add(sums.deep);
        shallow.add(sums.shallow);
    }
    explicit operator bool() const { return bool(deep); }
};

// Names that the kernel's macros make with a number of their own: which one is no matter.
constexpr std::string_view NUMBERED[] = {"__compiletime_assert_", "__UNIQUE_ID_"};

class Summer {
public:
    Summer(const Unit &unit, const Pieces &pieces)
        : unit_(unit), pieces_(pieces), ordinary_(unit.names.count()), tags_(unit.names.count()),
          seen_(unit.names.count(), UINT32_MAX), followed_(unit.names.count(), UINT32_MAX), uses_(unit.names.count()),
          tag_words_(unit.names.count()), sums_(pieces.all.size()) {}

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
        Sums sum, head;
        sum.add(pragmas_);
        sum.add(unit_.files[piece.file].system);
        numbered_.clear();
        bool simple = !piece.always, simple_head = false, pointed = false;
        int round = 0;
        for (uint32_t at = piece.first; at < piece.end; at++) {
            if (at == piece.body) {
                head = sum;
                simple_head = simple;
            }
            const Token &token = unit_.tokens[at];
            // Of several declarators the others may not be pointers.
            round += token.is('(') - token.is(')');
            pointed = !token.is(';') && (pointed || (!round && is_pointed(piece, at)));
            simple &= !looks_inside(token) && !(pointed && !round && token.is(','));
            if (token.kind() == Kind::Word)
                word(number, at, sum);
            else if (token.kind() == Kind::Mark)
                sum.add(token.name ? token.name : quick_hash(token.view()));
            else if (token.kind() == Kind::Pragma)
                pragma(token.view(), sum);
            else if (!(token.kind() == Kind::Number && is_operand(piece, at)))
                sum.add(quick_hash(token.view()));
        }
        const bool has_body = piece.body < piece.end;
        if (!simple || has_body)
            sum.shallow = sum.deep;
        if (!simple_head)
            head.shallow = head.deep;
        sums_[number] = sum.shallow;
        for (uint32_t at = piece.names_at; at < piece.names_end; at++)
            if (seen_[pieces_.names[at]] == number) {
                seen_[pieces_.names[at]] = UINT32_MAX;
                uses_[pieces_.names[at]]--;
            }
        declare(piece, has_body && !piece.nested ? head : sum);
    }

    // Whether a declaration with this token may look into what it points to, as the size of a member's member does.
    static bool looks_inside(const Token &token) {
        const Role role = role_of(token);
        return token.is('.') || token.is('=') || token.view() == "->" || role == Role::Typeof || role == Role::Other || role == Role::Asm;
    }

    void word(uint32_t number, uint32_t at, Sums &sum) {
        const uint32_t name = unit_.tokens[at].name;
        const bool known = bool(ordinary_[name]) || bool(tags_[name]);
        sum.add(known ? unit_.names.hash(name) : own(name));
        note_tag(pieces_.all[number], at);
        if (!known)
            return;
        if (seen_[name] != number) {
            seen_[name] = number;
            uses_[name]++;
            sum.deep.add(ordinary_[name].deep);
            sum.deep.add(tags_[name].deep);
        }
        if (is_pointed(pieces_.all[number], at)) {
            // No complaint about a pointer comes from what is in the structure.
            sum.shallow.add(tag_words_[name]);
        } else if (followed_[name] != number) {
            followed_[name] = number;
            sum.shallow.add(ordinary_[name].shallow);
            sum.shallow.add(tags_[name].shallow);
        }
    }

    // Keeps with which word a tag is defined here.
    void note_tag(const Piece &piece, uint32_t at) {
        const Token &token = unit_.tokens[at];
        if (role_of(token) != Role::Tagged)
            return;
        uint32_t tag = at + 1;
        while (tag < piece.end && role_of(unit_.tokens[tag]) == Role::Attribute)
            tag = after_attribute(unit_.tokens, tag, piece.end);
        if (tag + 1 < piece.end && is_name(unit_.tokens[tag]) && unit_.tokens[tag + 1].is('{'))
            tag_words_[unit_.tokens[tag].name] = token.name + 1;
    }

    // Whether "struct NAME *" names it here.
    bool is_pointed(const Piece &piece, uint32_t at) const {
        if (at == piece.first || role_of(unit_.tokens[at - 1]) != Role::Tagged || unit_.tokens[at - 1].view() == "enum")
            return false;
        uint32_t next = at + 1;
        while (next < piece.end && role_of(unit_.tokens[next]) == Role::Qualifier)
            next++;
        return next < piece.end && unit_.tokens[next].is('*');
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
    void pragma(std::string_view text, Sums &sum) {
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

    void declare(const Piece &piece, const Sums &sum) {
        for (uint32_t at = piece.names_at; at < piece.names_end; at++) {
            uint32_t name = pieces_.names[at];
            Declares how = pieces_.how[at];
            Sums &known = how == Declares::Ordinary || how == Declares::Nested ? ordinary_[name] : tags_[name];
            if (how == Declares::Local || how == Declares::LocalTag)
                continue;
            if (how == Declares::Ordinary || how == Declares::Nested)
                known.add(sum);
            else if (how == Declares::Tag)
                known = sum;
            else if (!known)
                known.add(static_cast<uint64_t>(how));
            known.deep.filled = true;
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
    std::vector<Sums> ordinary_, tags_;  // of what declared a name so far
    std::vector<uint32_t> seen_;         // the last piece that mentioned a name
    std::vector<uint32_t> followed_;     // the last whose shallow sum has what declared it
    std::vector<uint32_t> uses_;
    std::vector<uint32_t> tag_words_;  // the word with which a tag is defined, and 1; 0 where it is not
    std::vector<Sum> sums_;
    std::vector<uint32_t> numbered_;
    Sum pragmas_;
    std::vector<Sum> pushed_;
};

}

Reading read_runs(const Unit &unit, const Pieces &pieces) { return Summer(unit, pieces).run(); }

}
