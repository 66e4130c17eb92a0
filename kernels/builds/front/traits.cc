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
    Reader(const Unit &unit, const Pieces &pieces, const Reading &reading) : tokens_(unit.tokens), pieces_(pieces), reading_(reading) {
        for (auto word : VOLATILE)
            volatile_.push_back(unit.names.find(word));
    }

    // Returns the sum of a piece's traits, or "" if it has none.
    std::string read(uint32_t number) {
        const Piece &piece = pieces_.all[number];
        if (piece.body != piece.end || !may_have(piece))
            return "";
        std::string text;
        uint32_t first = piece.first;
        std::vector<size_t> opened;  // how long the text was at each brace
        bool has = false;            // whether a trait is in the braces that closed before
        for (uint32_t at = piece.first; at < piece.end; at++) {
            if (!tokens_[at].is(';') && !tokens_[at].is('{') && !tokens_[at].is('}'))
                continue;
            if (tokens_[at].is('{'))
                opened.push_back(text.size());
            add_declaration(first, at, has, text);
            has = tokens_[at].is('}') && !opened.empty() && text.size() > opened.back();
            if (tokens_[at].is('}') && !opened.empty())
                opened.pop_back();
            first = at + 1;
        }
        // A type that is asked for comes from declarations of any kind. IPA-SRA passes on no member of what has no size or 64 KiB (ISRA_ARG_SIZE_LIMIT).
        if (asks_for_type(piece) || (piece.hollows && (!is_surely_filled(piece) || may_be_large(piece))))
            text += reading_.sum(number);
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

    bool asks_for_type(const Piece &piece) const {
        return std::any_of(tokens_.begin() + piece.first, tokens_.begin() + piece.end, [](const Token &token) { return role_of(token) == Role::Typeof; });
    }

    // Whether one of its members is a number or a pointer.
    bool is_surely_filled(const Piece &piece) const {
        int depth = 0;
        bool filled = false, doubted = false;
        for (uint32_t at = piece.first; at < piece.end; at++) {
            const Token &token = tokens_[at];
            if (depth == 1 && token.is(';') && filled && !doubted)
                return true;
            if (depth == 1 && (token.is(';') || token.is('{')))
                filled = doubted = false;
            doubted |= token.is('[') || token.is(':') || token.is('{');
            filled |= depth == 1 && (role_of(token) == Role::Type || token.is('*'));
            depth += step(token);
        }
        return false;
    }

    // Whether it has an array of more elements than most, as far as numbers tell.
    bool may_be_large(const Piece &piece) const {
        bool within = false;
        for (uint32_t at = piece.first; at < piece.end; at++) {
            const Token &token = tokens_[at];
            if (token.is('[') || token.is(']'))
                within = token.is('[');
            else if (within && ((token.kind() == Kind::Number && token.size > 3) || token.view() == "<<"))
                return true;
        }
        return false;
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

    // Adds the declaration if it has a trait, and the sums of what it holds, or may: only its tokens tell whether it does.
    void add_declaration(uint32_t first, uint32_t end, bool has, std::string &text) const {
        const size_t before = text.size();
        bool several = false;
        for (uint32_t at = first; at < end; at++) {
            has |= is_volatile(tokens_[at]) || (tokens_[at].is('[') && at + 1 < end && tokens_[at + 1].is(']'));
            several |= tokens_[at].is(',');
        }
        for (uint32_t at = first; at < end; at++)
            if (is_name(tokens_[at]) && (several || !is_pointed_to(at + 1, end)))
                add_sum(tokens_[at].name, 0, text);
        for (uint32_t at = first; (has || text.size() > before) && at < end; at++)
            text.append(tokens_[at].view()).push_back(' ');
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
    const Reading &reading_;
    std::vector<int64_t> volatile_;
    std::unordered_map<uint32_t, std::string> sums_;  // by what the pieces declare
    std::unordered_map<uint32_t, std::vector<uint32_t>> types_;  // of a type's name, those that it stands for
};

}

Traits::Traits(const Unit &unit, const Pieces &pieces, const Reading &reading) {
    Reader reader(unit, pieces, reading);
    for (uint32_t number = 0; number < pieces.all.size(); number++)
        if (auto sum = reader.read(number); !sum.empty())
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
