// SPDX-License-Identifier: GPL-2.0-or-later
#include "reach.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sizes.h"

namespace front {

namespace {

// Functions that the compiler may turn into an assignment of what their pointers point to.
constexpr std::string_view COPYING[] = {"memcpy", "memmove", "mempcpy", "memset", "memcmp", "__builtin_memcpy", "__builtin_memmove",
                                        "__builtin_mempcpy", "__builtin_memset", "__builtin_memcmp", "__builtin_clear_padding", "__memcpy", "__memmove", "__memset",
                                        "__underlying_memcpy", "__underlying_memmove", "__underlying_memset", "__underlying_memcmp"};

enum class Defines { Nothing, Function, Variable };

// What a piece defines by a name. What the source declares counts as defined there: by an alias, or in the old style, whose body is a piece of its own.
Defines defined_by(const std::vector<Token> &tokens, const Piece &piece, uint32_t name) {
    bool is_extern = false;
    // What stands in braces are members and enumerators.
    for (uint32_t at = piece.first; at + 1 < piece.end; at = tokens[at].is('{') ? behind(tokens, at, piece.end) : at + 1) {
        const Role role = role_of(tokens[at]);
        // One that is a register is no symbol.
        if (role == Role::Typedef || tokens[at].view() == "register")
            return Defines::Nothing;
        is_extern |= role == Role::Extern;
        if (!is_name(tokens[at]) || tokens[at].name != name)
            continue;
        if (piece.body != piece.end || (!piece.header && tokens[at + 1].is('(')))
            return Defines::Function;
        return tokens[at + 1].is('(') || (is_extern && !piece.valued && piece.header) ? Defines::Nothing : Defines::Variable;
    }
    return Defines::Nothing;
}

// Pieces that mention a variable that is defined by what is kept, or a function of it that they do not call. gcc remembers of a static
// variable whether anything takes its address. It puts variables and functions out in the order in which it met them, and it meets them
// where it compares their addresses, be it in what comes to nothing by itself (symtab_node::get_create() in address_compare()).
std::vector<uint32_t> users_of_definitions(const Unit &unit, const Pieces &pieces, const std::vector<bool> &marked) {
    const std::vector<Token> &tokens = unit.tokens;
    std::vector<Defines> defined(unit.names.count());
    for (uint32_t number = 0; number < pieces.all.size(); number++)
        for (uint32_t name = pieces.all[number].names_at; marked[number] && name < pieces.all[number].names_end; name++)
            if (pieces.how[name] == Declares::Ordinary)
                if (const Defines what = defined_by(tokens, pieces.all[number], pieces.names[name]); what != Defines::Nothing)
                    defined[pieces.names[name]] = what;
    auto uses = [&](const Piece &piece, uint32_t at) {
        if (!is_name(tokens[at]) || is_tag_or_member(tokens, piece, at))
            return false;
        const Defines what = defined[tokens[at].name];
        return what == Defines::Variable || (what == Defines::Function && !(at + 1 < piece.end && tokens[at + 1].is('(')));
    };
    std::vector<uint32_t> users;
    for (uint32_t number = 0; number < pieces.all.size(); number++) {
        const Piece &piece = pieces.all[number];
        auto is_used = [&](uint32_t at, uint32_t end) {
            for (; at < end; at++)
                if (uses(piece, at))
                    return true;
            return false;
        };
        if (!marked[number] && any_expression(tokens, piece, is_used))
            users.push_back(number);
    }
    return users;
}

class Reacher {
public:
    Reacher(const Unit &unit, const Pieces &pieces, const Reading &reading, const std::vector<bool> &entire, std::vector<bool> &marked, Hollows &hollow)
        : unit_(unit), tokens_(unit.tokens), pieces_(pieces), reading_(reading), entire_(entire), marked_(marked), hollow_(hollow),
          followed_(unit.names.count()), copies_(unit.names.count()), offsetof_(unit.names.find("__builtin_offsetof")),
          sizes_(unit, reading, [this](uint32_t tag) { follow(tag, WHOLE); }) {
        for (auto word : COPYING)
            if (auto number = unit.names.find(word); number >= 0)
                copies_[number] = true;
    }

    void run() {
        hollow_ = {std::vector<bool>(pieces_.all.size()), {}};
        for (uint32_t number = 0; number < pieces_.all.size(); number++)
            if (marked_[number])
                work_.push_back({number, pieces_.all[number].first, pieces_.all[number].end});
        do {
            while (!work_.empty()) {
                const Work work = work_.back();
                work_.pop_back();
                read(work);
            }
            for (auto number : users_of_definitions(unit_, pieces_, marked_))
                mark(number);
        } while (!work_.empty());
    }

private:
    // How a name is mentioned.
    enum Use : uint8_t { ORDINARY = 1, POINTED = 2, WHOLE = 4, ANY = 7 };

    // Tokens of a piece that are to be read.
    struct Work {
        uint32_t piece, first, end;
    };

    // A piece that names members, and the tags that types of what it names lead to.
    struct Seeker {
        std::vector<uint32_t> members, tags;
    };

    void read(const Work &work) {
        const Piece &piece = pieces_.all[work.piece];
        Seeker seeker;
        const bool plain = is_plain(piece);
        uint32_t tag = UINT32_MAX;
        sizes_.begin(piece, work.first, work.end);
        for (uint32_t at = work.first; at < work.end; at++) {
            const Token &token = tokens_[at];
            if (token.kind() == Kind::Pragma || (token.kind() == Kind::Text && (piece.always && piece.header)) || is_other_name(tokens_, at))
                mentions_in(unit_, token.view(), [&](uint32_t name) { follow(name, ANY); });
            sizes_.read(at);
            if (token.kind() != Kind::Word || at == tag)
                continue;
            if (role_of(token) == Role::Tagged)
                tag = read_tag(piece, at, plain, seeker);
            else if (at > piece.first && is_member_mark(tokens_[at - 1]))
                read_member(piece, at, seeker);
            else if (piece.body != piece.end || piece.valued || !names_member(tokens_, piece, at))
                name_ordinary(token.name, seeker);
            if (copies_[token.name] && at + 1 < piece.end && tokens_[at + 1].is('('))
                read_copied(piece, at + 1);
            if (token.name == offsetof_)
                read_offset(piece, at + 1, seeker);
        }
        sizes_.end();
        if (!seeker.members.empty())
            seek(std::move(seeker));
        for (auto &[owner, members] : asked_)
            seek({std::move(members), {owner}});
        asked_.clear();
    }

    // Of NAME->MEMBER, where it is known what NAME points to, no other structure is asked for the member. A wrong guess is for the
    // compiler to find out.
    void read_member(const Piece &piece, uint32_t at, Seeker &seeker) {
        const auto owners = at > piece.first + 1 ? sizes_.owners(at - 1) : std::vector<uint32_t>();
        if (owners.empty())
            return name_member(tokens_[at].name, seeker);
        for (auto &behind : reading_.members[tokens_[at].name])
            seeker.tags.push_back(behind.tag);
        for (auto owner : owners)
            asked_[owner].push_back(tokens_[at].name);
    }

    void name_ordinary(uint32_t name, Seeker &seeker) {
        follow(name, ORDINARY);
        for (auto &behind : reading_.ordinary[name])
            seeker.tags.push_back(behind.tag);
    }

    void name_member(uint32_t name, Seeker &seeker) {
        seeker.members.push_back(name);
        for (auto &behind : reading_.members[name])
            seeker.tags.push_back(behind.tag);
    }

    // Marks the hollow structures in which the piece may look for a member, now or when they are reached.
    void seek(Seeker seeker) {
        for (auto *list : {&seeker.members, &seeker.tags}) {
            std::sort(list->begin(), list->end());
            list->erase(std::unique(list->begin(), list->end()), list->end());
        }
        const uint32_t own = seekers_.size();
        for (auto tag : seeker.tags) {
            seeking_[tag].push_back(own);
            for (uint32_t at = pieces_.from[tag]; at < pieces_.from[tag + 1]; at++)
                look_into(pieces_.by_name[at], seeker);
        }
        seekers_.push_back(std::move(seeker));
    }

    // Keeps the members of a hollow structure that a piece may look for.
    void look_into(uint32_t number, const Seeker &seeker) {
        const Piece &piece = pieces_.all[number];
        if (!hollow_.is[number] || !finds(seeker, piece, piece.first, piece.end))
            return;
        auto &members = members_of(number);
        if (members.empty())
            return mark(number);
        for (size_t member = 0; member < members.size() && hollow_.is[number]; member++)
            if (finds(seeker, piece, members[member].first, members[member].end))
                need(number, member);
    }

    // Keeps a member, and those beside it where only they tell its place.
    void need(uint32_t number, size_t member) {
        auto &members = members_of(number);
        if (members[member].bits)
            return mark(number);
        auto &needed = hollow_.parts[number];
        needed.resize(members.size());
        if (needed[member])
            return;
        needed[member] = true;
        work_.push_back({number, members[member].first, members[member].end});
        if (members[member].name == NO_NAME && member)
            need(number, member - 1);
        if (hollow_.is[number] && members[member].last == NO_NAME && member + 1 < members.size())
            need(number, member + 1);
    }

    const std::vector<Member> &members_of(uint32_t number) {
        auto [known, fresh] = members_.try_emplace(number);
        if (fresh && !entire_[number])
            known->second = front::members_of(unit_, pieces_.all[number]);
        return known->second;
    }

    // Whether one of the members may be declared among these tokens.
    bool finds(const Seeker &seeker, const Piece &piece, uint32_t first, uint32_t end) const {
        for (uint32_t at = first; at < end; at++)
            if (may_be_member(tokens_, piece, at) && std::binary_search(seeker.members.begin(), seeker.members.end(), tokens_[at].name))
                return true;
        return false;
    }

    // Whether each declaration has one declarator, so that a '*' after a tag says what is declared. Within braces a member or a
    // variable of an unknown structure is an error, but of an extern one. An attribute "access" asks for the size of what is pointed to.
    bool is_plain(const Piece &piece) const {
        int depth = 0;
        for (uint32_t at = piece.first; at < piece.end; at++) {
            const Token &token = tokens_[at];
            if (role_of(token) == Role::Attribute && asks_for_size(at, after_attribute(tokens_, at, piece.end)))
                return false;
            if (token.kind() == Kind::Mark) {
                depth += token.is('(') || token.is('[') || token.is('{');
                depth -= token.is(')') || token.is(']') || token.is('}');
                if (!depth && token.is(','))
                    return false;
            } else if (depth && role_of(token) == Role::Extern && has_second_declarator(tokens_, piece, at)) {
                return false;
            }
        }
        return true;
    }

    bool asks_for_size(uint32_t first, uint32_t end) const {
        for (; first < end; first++)
            if (tokens_[first].view() == "access" || tokens_[first].view() == "__access__")
                return true;
        return false;
    }

    // Follows the tag after this "struct", "union" or "enum"; returns where it stands.
    uint32_t read_tag(const Piece &piece, uint32_t at, bool plain, Seeker &seeker) {
        uint32_t tag = at + 1;
        while (tag < piece.end && role_of(tokens_[tag]) == Role::Attribute)
            tag = after_attribute(tokens_, tag, piece.end);
        if (tag >= piece.end || !is_name(tokens_[tag]))
            return UINT32_MAX;
        uint32_t next = tag + 1;
        while (next < piece.end && role_of(tokens_[next]) == Role::Qualifier)
            next++;
        const bool declared = next < piece.end && tokens_[next].is(';') && piece.end - piece.first == 3;
        const bool pointed = next < piece.end && tokens_[next].is('*') && (is_parameter(tokens_, piece, at) || !declares_whole(piece, next));
        const bool hollow = tokens_[at].view() != "enum" && plain && (declared || (pointed && !names_type(piece, next) && !is_restricted(piece, next) && !is_volatile(piece, at, next)));
        follow(tokens_[tag].name, hollow ? POINTED : WHOLE);
        seeker.tags.push_back(tokens_[tag].name);
        // What has this name may be copied by its type.
        if (hollow && pointed)
            point(tokens_[tag].name, piece, next, is_parameter(tokens_, piece, at));
        return tag;
    }

    // Whether "struct X *ONE, OTHER" goes on with what is no pointer.
    bool declares_whole(const Piece &piece, uint32_t at) const {
        for (int depth = 0; at + 2 < piece.end; at++) {
            depth += step(tokens_[at]);
            if (depth < 0 || (depth == 0 && (tokens_[at].is(';') || tokens_[at].is('{'))))
                return false;
            if (depth || !tokens_[at].is(','))
                continue;
            uint32_t name = at + 1;
            while (name + 1 < piece.end && (tokens_[name].is('(') || role_of(tokens_[name]) == Role::Attribute))
                name = tokens_[name].is('(') ? name + 1 : after_attribute(tokens_, name, piece.end);
            if (name + 1 >= piece.end || !is_name(tokens_[name]))
                continue;
            const Token &after = tokens_[name + 1];
            if (after.is(';') || after.is(',') || after.is('=') || after.is('[') || after.is(')') || role_of(after) == Role::Attribute)
                return true;
        }
        return false;
    }

    // Whether "typedef struct X *NAME;" gives the pointer a name of its own, by which it could be copied unseen.
    bool names_type(const Piece &piece, uint32_t at) const {
        return role_of(tokens_[piece.first]) == Role::Typedef && at + 3 >= piece.end;
    }

    // Whether one of these '*' promises that nothing else points there: gcc then follows all pointers in the structure, one by one if they are few.
    bool is_restricted(const Piece &piece, uint32_t at) const {
        while (at < piece.end && (tokens_[at].is('*') || role_of(tokens_[at]) == Role::Qualifier || role_of(tokens_[at]) == Role::Attribute)) {
            if (tokens_[at].view().find("restrict") != std::string_view::npos)
                return true;
            at = role_of(tokens_[at]) == Role::Attribute ? after_attribute(tokens_, at, piece.end) : at + 1;
        }
        return false;
    }

    // Whether what is pointed to is volatile: a value of it is read also where nothing is done with it, be it of a size that fits.
    bool is_volatile(const Piece &piece, uint32_t first, uint32_t end) const {
        while (first > piece.first && role_of(tokens_[first - 1]) == Role::Qualifier)
            first--;
        for (; first < end; first++)
            if (tokens_[first].view().find("volatile") != std::string_view::npos)
                return true;
        return false;
    }

    // Notes that the names after these '*' point to a structure.
    void point(uint32_t tag, const Piece &piece, uint32_t at, bool parameter) {
        each_declared(tokens_, piece, at, parameter, [&](uint32_t declared) {
            const uint32_t name = tokens_[declared].name;
            if (copied_.count(name))
                follow(tag, WHOLE);
            pointers_[name].push_back(tag);
            sizes_.point(name, tag);
        });
    }

    // The names within the parentheses of a call that copies: what they point to is needed.
    void read_copied(const Piece &piece, uint32_t at) {
        int depth = 0;
        for (; at < piece.end; at++) {
            depth += tokens_[at].is('(') - tokens_[at].is(')');
            if (!depth)
                return;
            if (role_of(tokens_[at]) == Role::Tagged && is_name(tokens_[at + 1]))
                follow(tokens_[at + 1].name, WHOLE);
            if (!is_name(tokens_[at]) || !copied_.insert(tokens_[at].name).second)
                continue;
            if (auto pointer = pointers_.find(tokens_[at].name); pointer != pointers_.end())
                for (auto tag : pointer->second)
                    follow(tag, WHOLE);
        }
    }

    // The members whose places are asked for within these parentheses.
    void read_offset(const Piece &piece, uint32_t at, Seeker &seeker) {
        int depth = 0;
        for (bool members = false; at < piece.end; at++) {
            depth += step(tokens_[at]);
            if (!depth)
                return;
            members |= depth == 1 && tokens_[at].is(',');
            if (members && is_name(tokens_[at]))
                name_member(tokens_[at].name, seeker);
        }
    }

    void follow(uint32_t name, Use use) {
        if ((followed_[name] & use) == use)
            return;
        followed_[name] |= use;
        for (uint32_t at = pieces_.from[name]; at < pieces_.from[name + 1]; at++) {
            const uint32_t number = pieces_.by_name[at];
            const Declares how = pieces_.how_by_name[at];
            const bool ordinary = how == Declares::Ordinary || how == Declares::Nested;
            const bool tag = how == Declares::Struct || how == Declares::Union || how == Declares::Enum || how == Declares::Tag;
            if ((use == ORDINARY && tag) || (!(use & ORDINARY) && ordinary))
                continue;
            if (pieces_.all[number].hollows && use != ANY && (use == POINTED || how != Declares::Tag))
                hollow(number);
            else
                mark(number);
        }
    }

    void mark(uint32_t number) {
        if (marked_[number])
            return;
        marked_[number] = true;
        hollow_.is[number] = false;
        hollow_.parts.erase(number);
        work_.push_back({number, pieces_.all[number].first, pieces_.all[number].end});
    }

    void hollow(uint32_t number) {
        if (marked_[number] || hollow_.is[number])
            return;
        hollow_.is[number] = true;
        const Piece &piece = pieces_.all[number];
        for (uint32_t at = piece.names_at; at < piece.names_end; at++)
            if (auto seeking = seeking_.find(pieces_.names[at]); seeking != seeking_.end())
                for (auto seeker : seeking->second)
                    look_into(number, seekers_[seeker]);
    }

    const Unit &unit_;
    const std::vector<Token> &tokens_;
    const Pieces &pieces_;
    const Reading &reading_;
    const std::vector<bool> &entire_;  // which structures have no outline
    std::vector<bool> &marked_;
    Hollows &hollow_;
    std::vector<uint8_t> followed_;
    std::vector<bool> copies_;  // of COPYING
    const int64_t offsetof_;
    Sizes sizes_;
    std::vector<Work> work_;
    std::map<uint32_t, std::vector<uint32_t>> asked_;  // of the piece at hand: by tag, members that only this structure is asked for
    std::unordered_map<uint32_t, std::vector<Member>> members_;
    std::vector<Seeker> seekers_;
    std::unordered_map<uint32_t, std::vector<uint32_t>> seeking_;   // of a tag, numbers of seekers
    std::unordered_map<uint32_t, std::vector<uint32_t>> pointers_;  // of a name, tags of what it points to
    std::unordered_set<uint32_t> copied_;
};

}

void reach_as_used(const Unit &unit, const Pieces &pieces, const Reading &reading, const std::vector<bool> &entire, std::vector<bool> &marked,
                   Hollows &hollow) {
    Reacher(unit, pieces, reading, entire, marked, hollow).run();
}

void reach(const Unit &unit, const Pieces &pieces, std::vector<bool> &marked) {
    std::vector<bool> followed(unit.names.count());
    std::vector<uint32_t> work;
    for (uint32_t number = 0; number < pieces.all.size(); number++)
        if (marked[number])
            work.push_back(number);
    auto follow = [&](uint32_t name) {
        if (followed[name])
            return;
        followed[name] = true;
        for (uint32_t at = pieces.from[name]; at < pieces.from[name + 1]; at++) {
            uint32_t number = pieces.by_name[at];
            if (!marked[number]) {
                marked[number] = true;
                work.push_back(number);
            }
        }
    };
    while (!work.empty()) {
        uint32_t number = work.back();
        work.pop_back();
        mentions(unit, pieces.all[number], follow);
        if (work.empty())
            for (auto user : users_of_definitions(unit, pieces, marked)) {
                marked[user] = true;
                work.push_back(user);
            }
    }
}

void add_content(const Unit &unit, const Piece &piece, std::string &content) {
    auto number = [&](uint32_t value) { content.append(reinterpret_cast<const char *>(&value), sizeof value); };
    number(piece.end - piece.first);
    uint32_t line = piece.line;
    uint16_t file = piece.file;
    for (uint32_t at = piece.first; at < piece.end; at++) {
        const Token &token = unit.tokens[at];
        if (piece.code && (token.line != line || token.file != file)) {
            // No token is this long.
            number(UINT32_MAX);
            number(token.line - piece.line);
            if (token.file != file) {
                // Several files in one piece: their lines cannot move against each other.
                number(UINT32_MAX - 1);
                number(token.line);
                content.append(unit.files[token.file].name).push_back('\0');
            }
            line = token.line;
            file = token.file;
        }
        number(token.size);
        content.append(token.text, token.size);
    }
}

}
