// SPDX-License-Identifier: GPL-2.0-or-later
#include "outlines.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace front {

namespace {

// Fewer are seldom changed, and seldom asked for less than all.
constexpr size_t FEWEST = 8;
// Attributes that say nothing of the code, or are said again.
constexpr std::string_view KNOWN[] = {"aligned", "__aligned__", "designated_init", "__designated_init__"};

// One after the bracket that closes this one, or `end`.
uint32_t after_pair(const std::vector<Token> &tokens, uint32_t at, uint32_t end) {
    for (int depth = 0; at < end; at++)
        if ((depth += step(tokens[at])) == 0)
            return at + 1;
    return end;
}

class Body {
public:
    Body(const Unit &unit, const Piece &piece) : tokens_(unit.tokens), piece_(piece) {}

    std::vector<Member> members() {
        uint32_t open = piece_.first;
        while (open < piece_.end && !tokens_[open].is('{'))
            open++;
        const uint32_t close = after_pair(tokens_, open, piece_.end);
        if (tokens_[piece_.first].view() != "struct" || !is_known(piece_.first + 1, open) || !is_known(close, piece_.end))
            return {};
        return declarations(open + 1, close - 1);
    }

private:
    // Whether there is nothing but a tag and attributes that an outline may have.
    bool is_known(uint32_t first, uint32_t end) const {
        uint32_t names = 0;
        for (uint32_t at = first; at < end; at++) {
            if (tokens_[at].kind() == Kind::Pragma)
                return false;
            names += is_name(tokens_[at]) && std::find(std::begin(KNOWN), std::end(KNOWN), tokens_[at].view()) == std::end(KNOWN);
        }
        return names <= (first == piece_.first + 1);
    }

    std::vector<Member> declarations(uint32_t first, uint32_t end) const {
        std::vector<Member> list;
        int depth = 0;
        for (uint32_t at = first; at < end; at++) {
            if (tokens_[at].kind() == Kind::Pragma)
                return {};
            depth += step(tokens_[at]);
            if (depth || !tokens_[at].is(';'))
                continue;
            // gcc makes a field of neither.
            if (first != at && tokens_[first].view() != "_Static_assert") {
                list.push_back(declaration(first, at + 1));
                if (!is_member(list.back()))
                    return {};
            }
            first = at + 1;
        }
        return list;
    }

    // Whether a declaration has a name, bits, or a structure or union without a tag: of "struct TAG;" or "int;" gcc makes no field.
    bool is_member(const Member &member) const {
        uint32_t brace = member.first + 1;
        while (brace < member.end && role_of(tokens_[brace]) == Role::Attribute)
            brace = after_attribute(tokens_, brace, member.end);
        return member.name != NO_NAME || member.bits || (role_of(tokens_[member.first]) == Role::Tagged && brace < member.end && tokens_[brace].is('{'));
    }

    Member declaration(uint32_t first, uint32_t end) const {
        Member member{first, end, NO_NAME, NO_NAME, false};
        uint32_t body = end, declarators = first;
        bool several = false;
        int depth = 0;
        for (uint32_t at = first; at < end; at++) {
            if (!depth && tokens_[at].is('{')) {
                body = at;
                declarators = at = after_pair(tokens_, at, end);
                at--;
                continue;
            }
            depth += step(tokens_[at]);
            member.bits |= !depth && tokens_[at].is(':');
            several |= !depth && tokens_[at].is(',');
        }
        name(declarators, end, several, member);
        // The first of what an anonymous structure or union has.
        if (member.name == NO_NAME && body < end && !member.bits) {
            const auto inner = declarations(body + 1, declarators - 1);
            if (!inner.empty() && !inner[0].bits)
                member.name = inner[0].name;
        }
        return member;
    }

    // Finds the first name that is declared, and the last if its end can be asked for.
    void name(uint32_t first, uint32_t end, bool several, Member &member) const {
        int round = 0;
        for (uint32_t at = first; at < end; at++) {
            if (role_of(tokens_[at]) == Role::Attribute) {
                at = after_attribute(tokens_, at, end) - 1;
                continue;
            }
            round += tokens_[at].is('(') - tokens_[at].is(')');
            if (!may_be_member(tokens_, piece_, at) || (round && !may_be_declarator(tokens_, piece_, at)))
                continue;
            if (member.name == NO_NAME)
                member.name = at;
            member.last = !several ? member.name : round ? NO_NAME : at;
        }
        if (member.last != NO_NAME && tokens_[member.last + 1].is('[') && tokens_[member.last + 2].is(']'))
            member.last = NO_NAME;
    }

    const std::vector<Token> &tokens_;
    const Piece &piece_;
};

std::string offset(const Unit &unit, const std::string &tag, uint32_t name) {
    return "__builtin_offsetof(" + tag + "," + std::string(unit.tokens[name].view()) + ")";
}

}

std::string tag_of(const Unit &unit, const Piece &piece) {
    uint32_t at = piece.first + 1;
    while (role_of(unit.tokens[at]) == Role::Attribute)
        at = after_attribute(unit.tokens, at, piece.end);
    return std::string(unit.tokens[piece.first].view()) + " " + std::string(unit.tokens[at].view());
}

std::vector<Member> members_of(const Unit &unit, const Piece &piece) {
    auto list = Body(unit, piece).members();
    return list.size() < FEWEST ? std::vector<Member>() : list;
}

// Each number is one more than it is, for assembly has other words for zeros.
std::string layout_question(const Unit &unit, const Piece &piece, const std::vector<Member> &members, const std::string &name) {
    const std::string tag = tag_of(unit, piece);
    std::string text = "const unsigned long long " + name + "[]={sizeof(" + tag + ")+1,_Alignof(" + tag + ")+1";
    for (auto &member : members) {
        text += "," + (member.name == NO_NAME || member.bits ? "0ull-1" : offset(unit, tag, member.name) + "+1");
        text += "," + (member.last == NO_NAME || member.bits ? "0ull-1"
                                                               : offset(unit, tag, member.last) + "+sizeof(((" + tag + "*)0)->" +
                                                                     std::string(unit.tokens[member.last].view()) + ")+1");
    }
    return text + "};\n";
}

bool read_layout(const std::string &assembly, const std::string &name, size_t members, Layout &layout) {
    size_t at = assembly.find("\n" + name + ":\n");
    if (at == assembly.npos)
        return false;
    at += name.size() + 3;
    constexpr std::string_view QUAD = "\t.quad\t";
    std::vector<uint64_t> numbers;
    while (numbers.size() < 2 + 2 * members && assembly.compare(at, QUAD.size(), QUAD) == 0) {
        const uint64_t number = std::strtoull(assembly.c_str() + at + QUAD.size(), nullptr, 10);
        const bool none = assembly[at + QUAD.size()] == '-';
        numbers.push_back(none ? Layout::UNKNOWN : number - 1);
        at = assembly.find('\n', at) + 1;
    }
    if (numbers.size() != 2 + 2 * members)
        return false;
    layout = {numbers[0], numbers[1], {}, {}};
    for (size_t number = 2; number < numbers.size(); number += 2) {
        layout.begins.push_back(numbers[number]);
        layout.ends.push_back(numbers[number + 1]);
    }
    return true;
}

// The numbers keep gcc from making one of the functions, which it would do where they are the same (-fipa-icf).
std::string example(const Unit &unit, const Pieces &pieces, const std::vector<uint32_t> &numbers) {
    const std::string begin = "static __attribute__((noinline)) int kperflab_front_";
    std::string text = "struct kperflab_front_read{int a;};\n" + begin + "read(struct kperflab_front_read *a){return a->a;}\n", calls;
    for (auto number : numbers) {
        const std::string name = std::to_string(number), tag = tag_of(unit, pieces.all[number]);
        text += begin + "pass" + name + "(" + tag + " *a){return kperflab_front_read((struct kperflab_front_read *)(void *)a)+" + name + ";}\n";
        calls += "+kperflab_front_pass" + name + "((" + tag + " *)a)";
    }
    return text + "int kperflab_front_pass(void *a);\nint kperflab_front_pass(void *a){return 0" + calls + ";}\n";
}

bool takes_apart(const std::string &assembly, uint32_t number) {
    return assembly.find("\nkperflab_front_pass" + std::to_string(number) + ".isra.") != assembly.npos;
}

std::string outline(const Unit &unit, const Piece &piece, const std::vector<Member> &members, const std::vector<bool> &needed, const Layout &layout,
                    bool sized) {
    const std::string tag = tag_of(unit, piece);
    std::string text = tag + "{", places;
    uint64_t end = 0;
    int rooms = 0;
    auto room = [&](uint64_t size) { text += "const char kperflab_front_room" + std::to_string(rooms++) + "[" + std::to_string(size) + "];"; };
    for (size_t number = 0; number < members.size(); number++) {
        if (!needed[number])
            continue;
        const Member &member = members[number];
        // Even without a byte: gcc asks whether two members are neighbours (hoist_adjacent_loads).
        if (number && !needed[number - 1])
            room(layout.begins[number] - end);
        for (uint32_t at = member.first; at < member.end; at++)
            text.append(unit.tokens[at].view()).push_back(' ');
        if (member.name != NO_NAME && !member.bits)
            places += "&&" + offset(unit, tag, member.name) + "==" + std::to_string(layout.begins[number]);
        end = layout.ends[number];
    }
    // What is an array at the end of a structure may be longer than it says.
    if (!needed.back())
        room(sized ? layout.size - end : 0);
    text += "}__attribute__((aligned(" + std::to_string(layout.alignment) + ")));_Static_assert(";
    text += sized ? "sizeof(" + tag + ")==" + std::to_string(layout.size) + "&&" : "";
    return text + "_Alignof(" + tag + ")==" + std::to_string(layout.alignment) + places + ",\"\");";
}

}
