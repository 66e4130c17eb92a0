// SPDX-License-Identifier: GPL-2.0-or-later
#include "checks.h"

#include <algorithm>
#include <cstddef>

#include "looks.h"

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
    // The same in whatever order.
    void join(const Sum &sum) {
        one += sum.one;
        other += sum.other;
        filled = true;
    }
    explicit operator bool() const { return filled; }

    bool filled = false;
};

// Names that the kernel's macros make with a number of their own: which one is no matter.
constexpr std::string_view NUMBERED[] = {"__compiletime_assert_", "__UNIQUE_ID_"};

// What a complaint about a declaration can come from. The compiler looks into a structure by the name of a member, so what is behind
// a pointer is there as the members named. Some expressions look at the whole: a size, what '*' and '[' give, a type's copy. The types
// of all expressions come from what is named, so for these the structures that the names point to are there as they are.
class Summer {
public:
    Summer(const Unit &unit, const Pieces &pieces)
        : unit_(unit), tokens_(unit.tokens), pieces_(pieces), ordinary_(unit.names.count()), members_(unit.names.count()), tags_(unit.names.count()), tag_attributes_(unit.names.count()),
          behind_ordinary_(unit.names.count()), behind_members_(unit.names.count()), seen_(unit.names.count(), UINT32_MAX), doubted_(unit.names.count(), UINT32_MAX), uses_(unit.names.count()),
          followed_(unit.names.count()), tags_followed_(unit.names.count()), behind_seen_(2 * unit.names.count()), tag_words_(unit.names.count()),
          complete_(unit.names.count()), sums_(pieces.all.size()) {}

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
        return {std::move(runs), std::move(sums), std::move(uses_), std::move(behind_ordinary_), std::move(behind_members_)};
    }

private:
    static std::string_view bytes(const Sum &sum) {
        static_assert(offsetof(Sum, other) == sizeof sum.one && offsetof(Sum, filled) == SUM);
        return {reinterpret_cast<const char *>(&sum), SUM};
    }

    // A sum under way, of a piece or of a member, with the structures behind what it named.
    struct Part {
        Sum sum;
        std::vector<Behind> behind;

        // Empties it, but for its room: there is one for each piece and member.
        Part &begin() {
            sum = {};
            behind.clear();
            return *this;
        }
    };

    void add(uint32_t number) {
        const Piece &piece = pieces_.all[number];
        Part &part = whole_part_.begin(), &head = head_part_.begin();
        part.sum.add(pragmas_);
        part.sum.add(unit_.files[piece.file].system);
        numbered_.clear();
        part_++;
        Looks looks(tokens_, piece);
        bool wide = piece.always, wide_head = false;
        for (uint32_t at = piece.first; at < piece.end; at++) {
            if (at == piece.body) {
                head = part;
                wide_head = wide;
            }
            wide = wide || looks.at(at);
            const Token &token = tokens_[at];
            if (token.kind() == Kind::Word)
                count_use(number, piece, at);
            token_in(piece, at, part);
        }
        const bool has_body = piece.body < piece.end;
        close(part, wide, has_body);
        sums_[number] = part.sum;
        for (uint32_t at = piece.names_at; at < piece.names_end; at++)
            if (seen_[pieces_.names[at]] == number && doubted_[pieces_.names[at]] != number) {
                seen_[pieces_.names[at]] = UINT32_MAX;
                uses_[pieces_.names[at]]--;
            }
        if (has_body && !piece.nested) {
            close(head, wide_head, false);
            std::swap(part, head);
            wide = wide_head;
        }
        hand_on(part, wide);
        declare(piece, part);
        learn_members(piece);
    }

    // Counts a piece that surely uses a name. If in doubt the compiler complains of the text, and then the source is compiled.
    void count_use(uint32_t number, const Piece &piece, uint32_t at) {
        const uint32_t name = tokens_[at].name;
        if (role_of(tokens_[at]) == Role::Attribute)
            attribute_end_ = after_attribute(tokens_, at, piece.end);
        if (!(ordinary_[name] || tags_[name]) || doubted_[name] == number || at < attribute_end_ || (at > piece.first && is_member_mark(tokens_[at - 1])))
            return;
        const bool counted = seen_[name] == number;
        seen_[name] = number;
        if (may_be_declared(tokens_, piece, at)) {
            doubted_[name] = number;
            uses_[name] -= counted;
        } else {
            uses_[name] += !counted;
        }
    }

    void token_in(const Piece &piece, uint32_t at, Part &part) {
        const Token &token = tokens_[at];
        if (token.kind() == Kind::Word)
            word(piece, at, part);
        else if (token.kind() == Kind::Mark)
            part.sum.add(token.name ? token.name : quick_hash(token.view()));
        else if (token.kind() == Kind::Pragma)
            pragma(token.view(), part.sum);
        else if (!(token.kind() == Kind::Number && is_operand(piece, at)))
            part.sum.add(quick_hash(token.view()));
    }

    void word(const Piece &piece, uint32_t at, Part &part) {
        const uint32_t name = tokens_[at].name;
        const bool known = ordinary_[name] || tags_[name];
        part.sum.add(known ? unit_.names.hash(name) : own(name));
        note_tag(piece, at, part.sum);
        if (at == piece.first)
            return ordinary(name, part);
        const Token &before = tokens_[at - 1];
        if (before.is('.') || before.view() == "->") {
            part.sum.add(members_[name]);
            point(behind_members_[name], part);
        } else if (at == tag_at_) {
            tag(name, is_pointed(tokens_, piece, at), part);
        } else {
            ordinary(name, part);
        }
    }

    void ordinary(uint32_t name, Part &part) {
        if (!ordinary_[name] || followed_[name] == part_)
            return;
        followed_[name] = part_;
        part.sum.add(ordinary_[name]);
        point(behind_ordinary_[name], part);
    }

    void tag(uint32_t name, bool pointed, Part &part) {
        if (tags_[name])
            part.sum.add(tag_attributes_[name]);
        if (pointed || !complete_[name])
            point(Behind{name, !pointed}, part);
        if (!pointed && tags_[name] && tags_followed_[name] != part_) {
            tags_followed_[name] = part_;
            part.sum.add(tags_[name]);
        }
    }

    void point(const std::vector<Behind> &list, Part &part) {
        for (auto &behind : list)
            point(behind, part);
    }

    void point(const Behind &behind, Part &part) {
        uint32_t &seen = behind_seen_[2 * behind.tag + behind.whole];
        if (seen == part_)
            return;
        seen = part_;
        part.behind.push_back(behind);
    }

    // Adds what is behind pointers: the structures, or in a body only whether they are known, for nothing counts in steps of an unknown one.
    void close(Part &part, bool wide, bool body) const {
        for (auto [tag, whole] : part.behind)
            if (wide || whole)
                part.sum.add(tags_[tag]);
            else if (body)
                part.sum.add(complete_[tag]);
    }

    // What looks at a whole structure may be of its type: then who has it has the structure, though only a '*' stood behind its tag here,
    // and it is not known yet.
    static void hand_on(Part &part, bool wide) {
        for (auto &behind : part.behind)
            behind.whole |= wide;
    }

    // Finds the tag after a "struct", which is an error where another word stood before it.
    void note_tag(const Piece &piece, uint32_t at, Sum &sum) {
        if (role_of(tokens_[at]) != Role::Tagged)
            return;
        uint32_t tag = at + 1;
        while (tag < piece.end && role_of(tokens_[tag]) == Role::Attribute)
            tag = after_attribute(tokens_, tag, piece.end);
        if (tag >= piece.end || !is_name(tokens_[tag]))
            return;
        tag_at_ = tag;
        uint32_t &first = tag_words_[tokens_[tag].name];
        if (!first)
            first = tokens_[at].name + 1;
        else if (first != tokens_[at].name + 1)
            sum.add(first);
    }

    // What is between a brace or semicolon and the next semicolon of a structure, from `first` on.
    struct Level {
        uint32_t first;
        Sum path;  // of the tokens that lead to its brace
        std::vector<uint32_t> names;
    };

    // Notes the members of the structures that a piece defines, and perhaps other names: each with its own declaration, the tokens that
    // lead to it, and the attributes.
    void learn_members(const Piece &piece) {
        std::vector<Level> levels;
        Sum attributes;
        int round = 0;
        for (uint32_t at = piece.first; at < piece.body && at < piece.end; at++) {
            const Token &token = tokens_[at];
            round += token.is('(') - token.is(')');
            if (token.is('{')) {
                if (levels.empty())
                    attributes = attributes_of(piece);
                Sum path = levels.empty() ? attributes : levels.back().path;
                for (uint32_t before = levels.empty() ? piece.first : levels.back().first; before < at; before++)
                    path.add(quick_hash(tokens_[before].view()));
                levels.push_back({at + 1, path, {}});
            } else if (levels.empty()) {
                continue;
            } else if (token.is('}')) {
                levels.pop_back();
            } else if (token.is(';')) {
                learn(piece, levels.back(), at);
                levels.back().first = at + 1;
                levels.back().names.clear();
            } else if (may_be_member(tokens_, piece, at) && (!round || may_be_declarator(tokens_, piece, at))) {
                levels.back().names.push_back(token.name);
            }
        }
    }

    void learn(const Piece &piece, const Level &level, uint32_t end) {
        if (level.names.empty())
            return;
        Part &part = member_part_.begin();
        part.sum.add(level.path);
        part_++;
        for (uint32_t at = level.first; at < end; at++)
            if (tokens_[at].kind() != Kind::Pragma)
                token_in(piece, at, part);
        for (auto name : level.names) {
            members_[name].join(part.sum);
            join(behind_members_[name], part.behind);
        }
    }

    static void join(std::vector<Behind> &list, const std::vector<Behind> &more) {
        for (auto &behind : more)
            if (std::find(list.begin(), list.end(), behind) == list.end())
                list.push_back(behind);
    }

    Sum attributes_of(const Piece &piece) const {
        Sum sum = pragmas_;
        for (uint32_t at = piece.first; at < piece.end; at++)
            if (role_of(tokens_[at]) == Role::Attribute)
                for (const uint32_t end = after_attribute(tokens_, at, piece.end); at + 1 < end; at++)
                    sum.add(quick_hash(tokens_[at].view()));
        return sum;
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

    void declare(const Piece &piece, const Part &part) {
        for (uint32_t at = piece.names_at; at < piece.names_end; at++) {
            const uint32_t name = pieces_.names[at];
            const Declares how = pieces_.how[at];
            if (how == Declares::Local || how == Declares::LocalTag)
                continue;
            if (how == Declares::Ordinary || how == Declares::Nested) {
                ordinary_[name].add(part.sum);
                ordinary_[name].filled = true;
                join(behind_ordinary_[name], part.behind);
            } else if (how == Declares::Tag) {
                tags_[name] = part.sum;
                tags_[name].filled = true;
                tag_attributes_[name] = attributes_of(piece);
                complete_[name] = true;
            } else if (!tags_[name]) {
                tags_[name].add(static_cast<uint64_t>(how));
                tags_[name].filled = true;
            }
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
    const std::vector<Token> &tokens_;
    const Pieces &pieces_;
    std::vector<Sum> ordinary_, members_, tags_;  // by name, of all that declared it so far
    std::vector<Sum> tag_attributes_;  // by a tag that is defined
    std::vector<std::vector<Behind>> behind_ordinary_, behind_members_;
    std::vector<uint32_t> seen_, doubted_;  // the last piece that mentioned a name; that may have declared it
    std::vector<uint32_t> uses_;
    uint32_t attribute_end_ = 0;
    uint32_t part_ = 0, tag_at_ = UINT32_MAX;  // the number of the part under way; where the tag after the last "struct" stands
    std::vector<uint32_t> followed_, tags_followed_, behind_seen_;  // the last part whose sum has a name; a tag; whose `behind` has one
    std::vector<uint32_t> tag_words_;  // the word that stood before a tag first, and 1; 0 where none did
    std::vector<uint8_t> complete_;    // whether a tag was defined
    std::vector<Sum> sums_;
    Part whole_part_, head_part_, member_part_;  // of the piece and the member under way
    std::vector<uint32_t> numbered_;
    Sum pragmas_;
    std::vector<Sum> pushed_;
};

}

Reading read_runs(const Unit &unit, const Pieces &pieces) { return Summer(unit, pieces).run(); }

}
