// SPDX-License-Identifier: GPL-2.0-or-later
#include "sizes.h"

#include <algorithm>
#include <utility>

namespace front {

namespace {

constexpr std::string_view MEASURING[] = {"sizeof", "_Alignof", "__alignof", "__alignof__"};

// Whether parentheses behind this token may be those of a call, or of an operand of assembly: NAME( )( ]( "CONSTRAINT"(
bool takes_arguments(const Token &token) { return is_name(token) || token.is(')') || token.is(']') || token.kind() == Kind::Text; }

}

Sizes::Sizes(const Unit &unit, const Reading &reading, std::function<void(uint32_t)> need)
    : tokens_(unit.tokens), reading_(reading), need_(std::move(need)), measures_(unit.names.count()), auto_(unit.names.find("__auto_type")),
      argument_(unit.names.find("__builtin_va_arg")), values_(unit, [this](uint32_t first, uint32_t end) { need_all(first, end); }) {
    for (auto word : MEASURING)
        if (auto number = unit.names.find(word); number >= 0)
            measures_[number] = true;
}

void Sizes::begin(const Piece &piece, uint32_t first, uint32_t end) {
    piece_ = &piece;
    asked_ = 0;
    locals_.clear();
    values_at_.clear();
    if (piece.body == piece.end)
        read_value(first, end);
    measured_ = piece.body == piece.end;
}

void Sizes::read(uint32_t at) {
    const Token &token = tokens_[at];
    // The compiler prints no parameters.
    if (!measured_ && at >= piece_->body) {
        measured_ = true;
        read_sizes(piece_->first, piece_->body);
    }
    if (token.is('*') && at >= asked_ && is_taken(at))
        read_operand(at + 1);
    // Behind the arguments, for they may declare names.
    if (token.is(')') && at > piece_->body)
        if (const uint32_t open = before(at + 1); open > piece_->body && takes_arguments(tokens_[open - 1]))
            values_.read_arguments(*piece_, open);
    if (at > piece_->body && token.is('?'))
        read_choice(at);
    else if (at > piece_->body && token.is('{') && tokens_[at - 1].is('('))
        values_at_.emplace_back(at - 1, behind(at - 1));
    if (token.kind() == Kind::Mark && token.size == 2 && (token.view() == "++" || token.view() == "--"))
        read_count(at);
    if (token.kind() != Kind::Word)
        return;
    const Role role = role_of(token);
    if (role == Role::Typeof || measures(token))
        asked_ = std::max(asked_, behind(at + 1));
    if (role == Role::Typeof)
        asked_ = std::max(asked_, read_typeof(at + 1));
    else if (role == Role::Qualifier && token.view().find("restrict") != std::string_view::npos)
        read_restrict(at);
    else if (role == Role::Qualifier && token.view().find("volatile") != std::string_view::npos)
        read_volatile(at);
    else if (is_name(token) && at > piece_->first)
        read_named_type(at);
    else if (role == Role::Attribute)
        read_sizes(at, after_attribute(tokens_, at, piece_->end));
    else if (role == Role::Tagged && at > piece_->body)
        read_definition(at + 1);
    if (token.name == auto_)
        read_auto(at + 1);
    else if (token.name == argument_)
        need_all(at + 1, behind(at + 1));
}

void Sizes::end() {
    for (auto [first, end] : values_at_)
        values_.read_value(*piece_, first, end);
}

// Where the operand of a postfix operator begins: a name, a call, an element, a member, or what stands in brackets; `end` if there is none.
uint32_t Sizes::operand_before(uint32_t end) const {
    uint32_t first = end;
    while (first > piece_->first) {
        const Token &last = tokens_[first - 1];
        // A block before brackets is a statement of its own, and before the operator a value: "(struct NAME){ … }".
        if (last.is('}') && first < end && tokens_[first].is('('))
            break;
        if (is_name(last) && first >= piece_->first + 2 && is_member_mark(tokens_[first - 2]))
            first -= 2;
        else if (is_name(last))
            return first - 1;
        else if (closes(last))
            first = before(first);
        else
            break;
    }
    return first;
}

// Whether this '*' may give what the name behind it points to.
bool Sizes::is_taken(uint32_t at) const {
    if (at <= piece_->body || at + 1 >= piece_->end || !is_name(tokens_[at + 1]))
        return false;
    const Token &one = tokens_[at - 1];
    return !is_name(one) && one.kind() != Kind::Number && role_of(one) != Role::Type && role_of(one) != Role::Qualifier;
}

// What a '++' or '--' may move along a list of: the compiler tells sizes in sums, but not in these.
void Sizes::read_count(uint32_t at) {
    const uint32_t first = operand_before(at);
    if (first == at)
        return read_operand(at + 1);
    // Of A->B it is B.
    need_all(is_name(tokens_[at - 1]) ? at - 1 : first, at);
}

// What the name that begins here, or a member of it, leads to; of what is not so plain all names up to the end of the expression.
void Sizes::read_operand(uint32_t at) {
    while (at < piece_->end && tokens_[at].is('*'))
        at++;
    uint32_t last = at;
    while (last + 2 < piece_->end && is_name(tokens_[last]) && is_member_mark(tokens_[last + 1]))
        last += 2;
    if (last + 1 < piece_->end && is_name(tokens_[last]) && !opens(tokens_[last + 1]))
        return need_all(last, last + 1);
    uint32_t end = at;
    for (int depth = 0; end < piece_->end && !(depth == 0 && (tokens_[end].is(';') || tokens_[end].is(','))); end++)
        if ((depth += step(tokens_[end])) < 0)
            break;
    need_all(at, end);
}

// Of "typeof(WHAT) NAME", all that WHAT may point to is what NAME points to, or is. Returns where NAME is.
uint32_t Sizes::read_typeof(uint32_t at) {
    const uint32_t end = behind(at) - 1;
    uint32_t name = end + 1;
    bool pointer = false;
    for (; name < piece_->end && (tokens_[name].is('*') || role_of(tokens_[name]) == Role::Qualifier); name++)
        pointer |= tokens_[name].is('*');
    const bool named = name < piece_->end && is_name(tokens_[name]);
    const bool literal = end + 2 < piece_->end && tokens_[end + 1].is(')') && tokens_[end + 2].is('{');
    if (named ? !pointer || has_second_declarator(tokens_, *piece_, name) : literal)
        need_value(at + 1, end);
    if (!named)
        return end;
    each_declared(tokens_, *piece_, name, is_parameter(tokens_, *piece_, at - 1), [&](uint32_t declared) { lead(tokens_[declared].name, at + 1, end); });
    return name;
}

// What has a name for its type leads to what that does: "TYPE NAME", "TYPE *NAME, OTHER".
void Sizes::read_named_type(uint32_t at) {
    uint32_t name = at + 1;
    while (name < piece_->end && (tokens_[name].is('*') || role_of(tokens_[name]) == Role::Qualifier || role_of(tokens_[name]) == Role::Attribute))
        name = role_of(tokens_[name]) == Role::Attribute ? after_attribute(tokens_, name, piece_->end) : name + 1;
    if (name >= piece_->end || !is_name(tokens_[name]) || is_member_mark(tokens_[at - 1]) || leads_to(at).empty())
        return;
    each_declared(tokens_, *piece_, name, is_parameter(tokens_, *piece_, at), [&](uint32_t declared) {
        if (tokens_[declared].name != tokens_[at].name)
            lead(tokens_[declared].name, at, at + 1);
    });
}

// A promise that nothing else points there: gcc then follows all pointers in the structure, one by one if they are few.
void Sizes::read_restrict(uint32_t at) {
    while (at > piece_->first) {
        const Token &last = tokens_[at - 1];
        const uint32_t first = closes(last) ? before(at) : at - 1;
        if (closes(last) && first > piece_->first && role_of(tokens_[first - 1]) != Role::Attribute)
            return need_all(first, at);
        if (is_name(last))
            return need_all(first - (first > piece_->first), at);
        if (!closes(last) && !last.is('*') && role_of(last) != Role::Qualifier && role_of(last) != Role::Attribute)
            return;
        at = first;
    }
}

// Of "A ? B : C", B or C is the whole's value, of "A ?: C" A too: the compiler prints no variable for it.
void Sizes::read_choice(uint32_t at) {
    uint32_t first = at, end = at + 1;
    auto ends = [&](const Token &token) {
        return token.is(',') || token.is(';') || token.is('=') || token.is('{') || token.is('}') || (token.kind() == Kind::Word && role_of(token) == Role::Other);
    };
    while (first > piece_->body + 1 && !opens(tokens_[first - 1]) && !ends(tokens_[first - 1]))
        first = before(first);
    while (end < piece_->end && !closes(tokens_[end]) && !tokens_[end].is(',') && !tokens_[end].is(';'))
        end = behind(end);
    values_at_.emplace_back(first, end);
}

// A volatile value is read where nothing is done with it, be it of a structure that has no other name here: "volatile typeof(*NAME)", or with the
// words the other way round.
void Sizes::read_volatile(uint32_t at) {
    uint32_t next = at + 1, last = at;
    while (next < piece_->end && role_of(tokens_[next]) == Role::Qualifier)
        next++;
    while (last > piece_->first && role_of(tokens_[last - 1]) == Role::Qualifier)
        last--;
    if (next + 1 < piece_->end && role_of(tokens_[next]) == Role::Typeof)
        values_at_.emplace_back(next + 2, behind(next + 1) - 1);
    else if (last > piece_->first && tokens_[last - 1].is(')'))
        if (const uint32_t open = before(last); open > piece_->first && role_of(tokens_[open - 1]) == Role::Typeof)
            values_at_.emplace_back(open + 1, last - 1);
}

// "__auto_type NAME = WHAT;"
void Sizes::read_auto(uint32_t at) {
    uint32_t end = at;
    for (int depth = 0; end < piece_->end && depth >= 0 && !(depth == 0 && tokens_[end].is(';')); end++)
        depth += step(tokens_[end]);
    need_value(at + 2, end);
    if (at < end && is_name(tokens_[at]))
        lead(tokens_[at].name, at + 2, end);
}

// The value between these tokens may be a structure: what '*' or '[' gives, or something less plain. A type is no value: read_tag() sees its tag.
void Sizes::need_value(uint32_t first, uint32_t end) {
    while (first + 1 < end && tokens_[first].is('(') && behind(first) == end)
        first++, end--;
    if (first < end && tokens_[end - 1].is('*'))
        return;
    if (first < end && tokens_[end - 1].is(']')) {
        const uint32_t open = before(end);
        if (!tokens_[first].is('*') && open > first && is_name(tokens_[open - 1]))
            return need_all(open - 1, open);
    }
    for (uint32_t at = first; at < end; at++)
        if (tokens_[at].is('*') || tokens_[at].is('[') || tokens_[at].is('{') || tokens_[at].is('?')) {
            const uint32_t member = deciding_member(first, end);
            return member == end ? need_all(first, end) : need_all(member, member + 1);
        }
}

// Outside of functions only the text tells which sizes and sums of addresses have a say.
void Sizes::read_value(uint32_t first, uint32_t end) {
    bool value = false, sum = false;
    for (uint32_t at = first; at < end; at++) {
        value |= tokens_[at].is('=');
        sum |= value && (is_sum(first, at) || (at > first && tokens_[at].is('[') && is_name(tokens_[at - 1])));
    }
    if (sum)
        need_all(first, end);
    else
        read_sizes(first, end);
}

// Whether an address may be added to here: by "+" and "-", by "CAST[1]" or "1[LIST]".
bool Sizes::is_sum(uint32_t first, uint32_t at) const {
    const Token &token = tokens_[at];
    return token.is('+') || token.is('-') || (at > first && token.is('[') && (tokens_[at - 1].is(')') || tokens_[at - 1].kind() == Kind::Number));
}

// Looks for sums in what tells how large or how aligned something is: "[…]", ": …" and the brackets of an attribute. All names there count.
void Sizes::read_sums(uint32_t at, uint32_t end) {
    const bool within = opens(tokens_[at]);
    uint32_t last = within ? behind(at) - 1 : at + 1;
    while (!within && last < end && !tokens_[last].is(';') && !tokens_[last].is(',') && !closes(tokens_[last]))
        last = behind(last);
    for (uint32_t inner = at + 1; inner < std::min(last, end); inner++)
        if (is_sum(at + 1, inner))
            return need_all(at + 1, std::min(last, end));
}

// Looks for what asks for sizes.
void Sizes::read_sizes(uint32_t first, uint32_t end) {
    for (uint32_t at = first; at < end; at++) {
        if (tokens_[at].is('[') || tokens_[at].is(':'))
            read_sums(at, end);
        else if (role_of(tokens_[at]) == Role::Attribute && at + 1 < end && opens(tokens_[at + 1]))
            read_sums(at + 1, end);
        if (!measures(tokens_[at]))
            continue;
        const uint32_t operand = at + 1;
        int depth = 0;
        while (++at < end && ((depth += step(tokens_[at])) > 0 || tokens_[at].is('*')))
            ;
        need_all(operand, std::min(at + 1, end));
    }
}

void Sizes::read_definition(uint32_t at) {
    while (at < piece_->end && (is_name(tokens_[at]) || role_of(tokens_[at]) == Role::Attribute))
        at = is_name(tokens_[at]) ? at + 1 : after_attribute(tokens_, at, piece_->end);
    if (at < piece_->end && tokens_[at].is('{'))
        read_sizes(at, behind(at));
}

// Tags that the types of the name here lead to.
std::vector<uint32_t> Sizes::leads_to(uint32_t at) const {
    std::vector<uint32_t> list;
    const uint32_t name = tokens_[at].name;
    const bool member = at && is_member_mark(tokens_[at - 1]);
    for (auto &behind : member ? reading_.members[name] : reading_.ordinary[name])
        list.push_back(behind.tag);
    // A member too may be one of the function's own structures.
    if (auto local = locals_.find(name); local != locals_.end())
        list.insert(list.end(), local->second.begin(), local->second.end());
    return list;
}

std::vector<uint32_t> Sizes::owners(uint32_t mark) const {
    uint32_t at = mark;
    while (at > piece_->first && (tokens_[at - 1].is(')') || tokens_[at - 1].is(']')))
        at = before(at);
    if (at == piece_->first || !is_name(tokens_[--at]))
        return {};
    // What is called may have the name of a variable somewhere else in the piece.
    if (at + 1 < mark || (at > piece_->first && is_member_mark(tokens_[at - 1])))
        return leads_to(at);
    auto local = locals_.find(tokens_[at].name);
    return local == locals_.end() ? std::vector<uint32_t>() : local->second;
}

// Where the member is whose type decides that of "WHAT->MEMBER", "&WHAT->MEMBER" or "*WHAT->MEMBER": what WHAT leads to is then no matter.
// `end` where there is none. An index could be what is pointed to: "1[LIST]". A cast is of all that is behind it: "(TYPE)(WHAT)->MEMBER".
uint32_t Sizes::deciding_member(uint32_t first, uint32_t end) const {
    const uint32_t none = end;
    while (first < end && (tokens_[first].is('&') || tokens_[first].is('*') || (tokens_[first].is('(') && behind(first) == end)))
        end -= tokens_[first++].is('(');
    if (end < first + 3 || !is_name(tokens_[end - 1]) || !is_member_mark(tokens_[end - 2]) || operand_before(end) != first)
        return none;
    const uint32_t next = behind(first);
    return tokens_[first].is('(') && !is_member_mark(tokens_[next]) && !tokens_[next].is('[') ? none : end - 1;
}

// What names among these tokens lead to, this name does.
void Sizes::lead(uint32_t name, uint32_t first, uint32_t end) {
    if (const uint32_t member = deciding_member(first, end); member != end)
        first = member, end = member + 1;
    for (uint32_t at = first; at < end; at++)
        if (is_name(tokens_[at])) {
            if (at > first && role_of(tokens_[at - 1]) == Role::Tagged)
                locals_[name].push_back(tokens_[at].name);
            const auto list = leads_to(at);
            locals_[name].insert(locals_[name].end(), list.begin(), list.end());
        }
}

void Sizes::need_all(uint32_t first, uint32_t end) {
    for (uint32_t at = first; at < end; at++) {
        if (!is_name(tokens_[at]))
            continue;
        if (at > first && role_of(tokens_[at - 1]) == Role::Tagged)
            need_(tokens_[at].name);
        for (auto tag : leads_to(at))
            need_(tag);
    }
}

}
