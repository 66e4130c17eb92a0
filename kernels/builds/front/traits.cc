// SPDX-License-Identifier: GPL-2.0-or-later
#include "traits.h"

#include <algorithm>

#include "digest.h"

namespace front {

namespace {

// A chain of types' names is shorter in what people write.
constexpr int MOST_TYPES = 16;
constexpr std::string_view VOLATILE[] = {"volatile", "__volatile", "__volatile__"};

// Goes through the declarations in their order: what a structure holds is defined before it, though perhaps behind the name of its type.
class Reader {
public:
    Reader(const Unit &unit, const Pieces &pieces) : tokens_(unit.tokens), pieces_(pieces) {
        for (auto word : VOLATILE)
            volatile_.push_back(unit.names.find(word));
    }

    // Returns the sum of a piece's traits, or "" if it has none.
    std::string read(const Piece &piece) {
        if (piece.body != piece.end || !may_have(piece))
            return "";
        std::string text;
        uint32_t first = piece.first;
        for (uint32_t at = piece.first; at < piece.end; at++)
            if (tokens_[at].is(';') || tokens_[at].is('{') || tokens_[at].is('}')) {
                add_declaration(first, at, text);
                first = at + 1;
            }
        if (role_of(tokens_[piece.first]) == Role::Typedef)
            note_typedef(piece);
        if (text.empty())
            return "";
        const std::string sum = Blake2b(16).add(text).bytes();
        for (uint32_t at = piece.names_at; at < piece.names_end; at++)
            sums_[pieces_.names[at]] += sum;
        return sum;
    }

private:
    static bool is_tag(Declares how) { return how == Declares::Tag || how == Declares::LocalTag; }
    bool is_volatile(const Token &token) const {
        return token.kind() == Kind::Word && std::find(volatile_.begin(), volatile_.end(), token.name) != volatile_.end();
    }

    // Whether it defines a type, or declares what typeof may make one of.
    bool may_have(const Piece &piece) const {
        if (role_of(tokens_[piece.first]) == Role::Typedef)
            return true;
        for (uint32_t at = piece.names_at; at < piece.names_end; at++)
            if (is_tag(pieces_.how[at]))
                return true;
        return std::any_of(tokens_.begin() + piece.first, tokens_.begin() + piece.end,
                           [&](const Token &token) { return is_volatile(token) || role_of(token) == Role::Typeof; });
    }

    // Adds the declaration if it has a trait, and the sums of what it holds.
    void add_declaration(uint32_t first, uint32_t end, std::string &text) const {
        bool has = false, several = false;
        for (uint32_t at = first; at < end; at++) {
            has |= is_volatile(tokens_[at]) || (tokens_[at].is('[') && at + 1 < end && tokens_[at + 1].is(']'));
            several |= tokens_[at].is(',');
        }
        for (uint32_t at = first; has && at < end; at++)
            text.append(tokens_[at].view()).push_back(' ');
        for (uint32_t at = first; at < end; at++) {
            several |= role_of(tokens_[at]) == Role::Typeof;
            if (is_name(tokens_[at]) && (several || !is_pointed_to(at + 1, end)))
                add_sum(tokens_[at].name, 0, text);
        }
    }

    // Of a tag or a type's name: where one of them is meant, the other costs a compilation at the most.
    void add_sum(uint32_t name, int depth, std::string &text) const {
        if (auto sum = sums_.find(name); sum != sums_.end())
            text += sum->second;
        if (auto types = types_.find(name); types != types_.end() && depth < MOST_TYPES)
            for (auto type : types->second)
                add_sum(type, depth + 1, text);
    }

    // Of "typedef struct TAG NAME;" the tag may be defined later.
    void note_typedef(const Piece &piece) {
        for (uint32_t at = piece.first; at < piece.end && !tokens_[at].is('{') && !tokens_[at].is('('); at++)
            if (is_name(tokens_[at]) && !is_pointed_to(at + 1, piece.end))
                for (uint32_t name = piece.names_at; name < piece.names_end; name++)
                    if (pieces_.names[name] != tokens_[at].name)
                        types_[pieces_.names[name]].push_back(tokens_[at].name);
    }

    bool is_pointed_to(uint32_t at, uint32_t end) const {
        while (at < end && role_of(tokens_[at]) == Role::Qualifier)
            at++;
        return at < end && tokens_[at].is('*');
    }

    const std::vector<Token> &tokens_;
    const Pieces &pieces_;
    std::vector<int64_t> volatile_;
    std::unordered_map<uint32_t, std::string> sums_;  // by what the pieces declare
    std::unordered_map<uint32_t, std::vector<uint32_t>> types_;  // of a type's name, those that it stands for
};

}

Traits::Traits(const Unit &unit, const Pieces &pieces) {
    Reader reader(unit, pieces);
    for (uint32_t number = 0; number < pieces.all.size(); number++)
        if (auto sum = reader.read(pieces.all[number]); !sum.empty())
            sums_[number] = std::move(sum);
}

std::string Traits::of(const Unit &unit, uint32_t number, const Piece &piece) const {
    auto sum = sums_.find(number);
    std::string text = sum == sums_.end() ? "" : sum->second;
    auto add = [&](uint32_t at) { text.append(unit.tokens[at].view()).push_back(' '); };
    for (uint32_t at = piece.first; at < piece.end && !unit.tokens[at].is('{'); at++)
        add(at);
    for (uint32_t at = piece.end; at > piece.first && !unit.tokens[at - 1].is('}'); at--)
        add(at - 1);
    return text;
}

}
