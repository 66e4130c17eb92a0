// SPDX-License-Identifier: GPL-2.0-or-later
#include "pieces.h"

#include <algorithm>

#include "passive.h"

namespace front {

namespace {

constexpr uint32_t BAD = UINT32_MAX;

// What a name means besides.
enum : uint8_t { KEEPS = 1, OF_LIBRARY = 2, OF_FUNCTION = 4 };

bool is_label(const Token &token) { return role_of(token) == Role::Attribute || role_of(token) == Role::Asm; }

class Splitter {
public:
    Splitter(const Unit &unit, Pieces &pieces) : unit_(unit), tokens_(unit.tokens), pieces_(pieces) {
        meaning_.resize(unit.names.count());
        mean(KEEPING, KEEPS);
        mean(LIBRARY, OF_LIBRARY);
        mean(FUNCTION_NAMES, OF_FUNCTION);
        builtins();
        declared_.resize(unit.names.count());
        volatile_.resize(unit.names.count());
    }

    std::string run() {
        for (uint32_t at = 0; at < tokens_.size();) {
            uint32_t end = piece_end(at);
            if (end == BAD)
                return "unbalanced";
            piece(at, end);
            at = end;
        }
        index();
        // What a body declares matters where the whole file knows the name.
        for (auto &[number, name] : labelled_)
            for (uint32_t at = pieces_.from[name]; at < pieces_.from[name + 1]; at++)
                pieces_.all[number].always |= pieces_.how_by_name[at] == Declares::Ordinary || pieces_.how_by_name[at] == Declares::Nested;
        return "";
    }

private:
    // A declaration of a function counts for its builtin too, and for those that gcc makes of others.
    void builtins() {
        static constexpr std::string_view PREFIX = "__builtin_";
        for (uint32_t number = 0; number < unit_.names.count(); number++) {
            auto word = unit_.names.word(number);
            // All these begin so, and a file has tens of thousands of names.
            if (word.substr(0, 2) != "__")
                continue;
            for (auto begin : OWN_CALLS)
                if (word.substr(0, begin.size()) == begin)
                    meaning_[number] |= OF_LIBRARY;
            if (word.substr(0, PREFIX.size()) == PREFIX)
                if (auto plain = unit_.names.find(word.substr(PREFIX.size())); plain >= 0)
                    meaning_[plain] |= OF_LIBRARY;
        }
    }

    template <typename List> void mean(const List &list, uint8_t what) {
        for (auto word : list)
            if (auto number = unit_.names.find(word); number >= 0)
                meaning_[number] |= what;
    }

    bool means(const Token &token, uint8_t what) const {
        return token.kind() == Kind::Word && meaning_[token.name] & what;
    }

    // One after the last token of the piece that begins here.
    uint32_t piece_end(uint32_t first) const {
        int depth = 0;
        bool value = false;
        // Whether a '{' here would be a struct's: 1 after "struct" and its attributes, 2 after its tag.
        int tag = 0;
        bool attribute = false;
        if (tokens_[first].kind() == Kind::Pragma)
            return first + 1;
        for (uint32_t at = first; at < tokens_.size(); at++) {
            const Token &token = tokens_[at];
            if (depth == 0) {
                Role role = role_of(token);
                if (token.is('{') && !value && !tag)
                    return body_end(at);
                if (token.is(';'))
                    return at + 1;
                if (token.is('='))
                    value = true;
                if (role == Role::Tagged)
                    tag = 1;
                else if (role == Role::Attribute)
                    attribute = tag != 0;
                else if (is_name(token) && tag == 1)
                    tag = 2;
                else if (!(token.is('(') && attribute) && !token.is(')') && token.kind() != Kind::Pragma)
                    tag = 0;
                if (role != Role::Attribute)
                    attribute = false;
            }
            if ((depth += step(token)) < 0)
                return BAD;
        }
        return BAD;
    }

    uint32_t body_end(uint32_t at) const {
        int depth = 0;
        for (; at < tokens_.size(); at++) {
            const int change = step(tokens_[at]);
            depth += change;
            if (change < 0 && !depth)
                return at + 1;
        }
        return BAD;
    }

    void piece(uint32_t first, uint32_t end) {
        Piece piece{};
        piece.first = first;
        piece.end = piece.body = end;
        piece.header = true;
        piece.file = tokens_[first].file;
        piece.line = UINT32_MAX;
        piece.names_at = pieces_.names.size();
        // An attribute in brackets is not read.
        bool keeping = false, bracketed = false, tagged = false;
        int depth = 0;
        for (uint32_t at = first; at < end; at++) {
            const Token &token = tokens_[at];
            piece.header &= token.file != 0;
            piece.mixed |= token.file != piece.file;
            piece.line = std::min(piece.line, token.line);
            piece.last_line = std::max(piece.last_line, token.line);
            piece.pragma |= token.kind() == Kind::Pragma;
            if (token.kind() == Kind::Mark) {
                piece.valued |= token.is('=') || (token.is('{') && at > first && (tokens_[at - 1].is('(') || tokens_[at - 1].is(')')));
                if (depth && token.is('('))
                    nested_function(at, piece);
                if (!depth && token.is('{') && tokens_[end - 1].is('}'))
                    piece.body = at;
                piece.locals |= token.is('{') && piece.body == end && is_literal(at, first);
                depth += step(token);
                bracketed |= token.is('[') && at + 1 < end && tokens_[at + 1].is('[');
            } else if (token.kind() == Kind::Word) {
                Role role = role_of(token);
                tagged |= role == Role::Tagged;
                if (role == Role::Attribute)
                    keeping |= is_keeping(at, end, at > piece.body);
                if (at > piece.body && ((is_label(token) && (role != Role::Asm || names_in_assembly(at))) || token.view() == "_Noreturn"))
                    labelled(at, piece);
                if (at > piece.body && is_name(token))
                    named_type(at, piece);
                if (at > piece.body && role == Role::Qualifier)
                    qualified_type(at, piece);
                piece.locals |= depth && (role == Role::Static || means(token, OF_FUNCTION));
                if (depth && role == Role::Extern)
                    nested_extern(at + 1, piece);
            }
        }
        bool forward = tagged && tags(first, end);
        bool passive = forward || is_passive(unit_, piece, pieces_.names);
        if (!passive)
            name_declarators(piece);
        pieces_.how.resize(pieces_.names.size(), Declares::Ordinary);
        piece.names_end = pieces_.names.size();
        // What is kept by an attribute needs no use.
        piece.idle &= !keeping;
        for (uint32_t at = piece.names_at; at < piece.names_end; at++)
            keeping |= meaning_[pieces_.names[at]] & OF_LIBRARY;
        piece.always = !passive || is_volatile_variable(piece) || keeping || piece.mixed || bracketed || piece.pragma || !piece.header;
        piece.hollows = !piece.always && is_structure(piece);
        piece.code = (piece.always && !is_silent(first, end)) || tokens_[end - 1].is('}');
        pieces_.all.push_back(piece);
    }

    // Adds the names that is_passive() has not come to, for it stops where it understands no more.
    void name_declarators(Piece &piece) {
        bool is_static = false, is_inline = false;
        const uint32_t end = std::min(piece.body, piece.end - 1);
        for (uint32_t at = piece.first; at < end; at++) {
            const Role role = role_of(tokens_[at]);
            is_static |= role == Role::Static;
            is_inline |= role == Role::Inline;
            if (const uint32_t name = declarator_at(at, piece); name != NO_NAME)
                add_name(tokens_[name].name, is_static && !is_inline, piece);
            if (role == Role::Attribute)
                at = after_attribute(tokens_, at, piece.end) - 1;
            else if (opens(tokens_[at]))
                at = behind(tokens_, at, piece.end) - 1;
            else if (tokens_[at].is('='))
                while (at + 1 < end && !tokens_[at + 1].is(','))
                    at = behind(tokens_, at + 1, piece.end) - 1;
        }
    }

    // Where the name is that is declared here, perhaps in parentheses, or NO_NAME. It may have no type ("y = 1;").
    uint32_t declarator_at(uint32_t at, const Piece &piece) const {
        const Token *last = at > piece.first ? &tokens_[at - 1] : nullptr;
        if (is_name(tokens_[at]))
            return !(last && role_of(*last) == Role::Tagged) && ends_declarator(tokens_[at + 1]) && !is_type(at, piece) ? at : NO_NAME;
        // What a function takes stands in parentheses too.
        if (!tokens_[at].is('(') || (last && (is_name(*last) || role_of(*last) == Role::Typeof)))
            return NO_NAME;
        while (at < piece.end && (tokens_[at].is('(') || tokens_[at].is('*') || role_of(tokens_[at]) == Role::Qualifier || role_of(tokens_[at]) == Role::Attribute))
            at = role_of(tokens_[at]) == Role::Attribute ? after_attribute(tokens_, at, piece.end) : at + 1;
        return at + 1 < piece.end && is_name(tokens_[at]) && ends_declarator(tokens_[at + 1]) ? at : NO_NAME;
    }

    // Whether what is declared comes behind attributes of this name, which is then its type's: "bool __attribute__((cold)) f(void)".
    bool is_type(uint32_t at, const Piece &piece) const {
        for (at++; at < piece.end && role_of(tokens_[at]) == Role::Attribute;)
            at = after_attribute(tokens_, at, piece.end);
        return at < piece.end && (is_name(tokens_[at]) || tokens_[at].is('*'));
    }

    void add_name(uint32_t name, bool is_idle, Piece &piece) {
        pieces_.how.resize(pieces_.names.size(), Declares::Ordinary);
        for (uint32_t at = piece.names_at; at < pieces_.names.size(); at++)
            if (pieces_.names[at] == name && pieces_.how[at] == Declares::Ordinary)
                return;
        declare(name, Declares::Ordinary);
        piece.idle |= is_idle;
    }

    // Whether a piece is a static variable that may be volatile, which the compiler keeps; notes names of volatile types.
    bool is_volatile_variable(const Piece &piece) {
        if (piece.body != piece.end)
            return false;
        bool is_static = false, is_volatile = false, is_asked = false, is_typedef = false;
        for (uint32_t at = piece.first; at < piece.end; at++) {
            const Role role = role_of(tokens_[at]);
            is_static |= role == Role::Static;
            is_typedef |= role == Role::Typedef;
            is_asked |= role == Role::Typeof;
            is_volatile |= (role == Role::Qualifier && tokens_[at].view().find("volatile") != std::string_view::npos) ||
                           (is_name(tokens_[at]) && volatile_[tokens_[at].name]);
        }
        if (is_typedef && (is_volatile || is_asked))
            for (uint32_t at = piece.names_at; at < piece.names_end; at++)
                volatile_[pieces_.names[at]] = true;
        return is_static && !is_typedef && (is_volatile || is_asked);
    }

    // Whether a piece is "struct NAME {...};", with attributes, and at most mentions other structures for the first time.
    bool is_structure(const Piece &piece) const {
        uint32_t at = piece.first + 1;
        if (role_of(tokens_[piece.first]) != Role::Tagged || tokens_[piece.first].view() == "enum")
            return false;
        auto skip = [&] {
            while (at < piece.end && role_of(tokens_[at]) == Role::Attribute)
                at = after_attribute(tokens_, at, piece.end);
        };
        skip();
        if (at >= piece.end || !is_name(tokens_[at]))
            return false;
        const uint32_t tag = tokens_[at++].name;
        if (at >= piece.end || !tokens_[at].is('{'))
            return false;
        at = body_end(at);
        skip();
        if (at + 1 != piece.end || !tokens_[at].is(';'))
            return false;
        for (uint32_t number = piece.names_at; number < piece.names_end; number++) {
            const Declares how = pieces_.how[number];
            if (how == Declares::Tag ? pieces_.names[number] != tag : how != Declares::Struct && how != Declares::Union)
                return false;
        }
        return true;
    }

    // Whether "(TYPE){ … }" begins at a brace outside of functions: the compiler numbers them.
    bool is_literal(uint32_t at, uint32_t first) const {
        if (at <= first || !tokens_[at - 1].is(')'))
            return false;
        const uint32_t open = before(tokens_, at, first);
        return open == first || role_of(tokens_[open - 1]) != Role::Attribute;
    }

    // Whether no line of a piece can be in the object: of a ';' alone, though the function before it may end on its line, and of
    // a static assertion (C11, 6.7.10), which is checked and gone.
    bool is_silent(uint32_t first, uint32_t end) const {
        return tokens_[first].is(';') || (tokens_[first].view() == "_Static_assert" && tokens_[end - 1].is(';'));
    }

    void declare(uint32_t name, Declares how) {
        pieces_.names.push_back(name);
        pieces_.how.push_back(how);
    }

    // "extern" within brackets: its declaration is the whole file's.
    void nested_extern(uint32_t at, Piece &piece) {
        for (; at + 1 < piece.end && !tokens_[at].is(';') && !tokens_[at].is('{'); at++) {
            if (role_of(tokens_[at]) == Role::Attribute)
                at = after_attribute(tokens_, at, piece.end) - 1;
            else if (is_name(tokens_[at]) && ends_declarator(tokens_[at + 1]))
                nest(tokens_[at].name, piece);
        }
    }

    // Whether this "asm" is part of a declaration, as far as its neighbours tell.
    bool names_in_assembly(uint32_t at) const {
        const Token &before = tokens_[at - 1];
        return tokens_[at + 1].is('(') && (is_name(before) || before.is(')') || before.is(']'));
    }

    // A declaration within a body that has an attribute or another name in assembly:
    // of a function perhaps, whose type has a name. What shows its parameters is read elsewhere.
    void labelled(uint32_t at, const Piece &piece) {
        auto ends = [&](uint32_t number) {
            return tokens_[number].is(';') || tokens_[number].is('{') || tokens_[number].is('}');
        };
        for (; !ends(at - 1); at--)
            ;
        while (at + 1 < piece.end && !ends(at)) {
            if (is_name(tokens_[at]) && ends_declarator(tokens_[at + 1]) && (!tokens_[at + 1].is('(') || is_unread(at)))
                labelled_.emplace_back(pieces_.all.size(), tokens_[at].name);
            at = role_of(tokens_[at]) == Role::Attribute ? after_attribute(tokens_, at, piece.end) : at + 1;
        }
    }

    // A declaration within a body by a type's name or typeof: of a function perhaps, of which a qualifier says that it does not return.
    void named_type(uint32_t at, const Piece &piece) {
        if (!tokens_[at + 1].is(';') && !tokens_[at + 1].is(','))
            return;
        uint32_t type = at - 1;
        while (type > piece.body && role_of(tokens_[type]) == Role::Qualifier)
            type--;
        const Token &last = tokens_[type];
        const bool named = is_name(last) && role_of(tokens_[type - 1]) != Role::Tagged && !is_member_mark(tokens_[type - 1]);
        if (named || (last.is(')') && role_of(tokens_[before(tokens_, type + 1, piece.first) - 1]) == Role::Typeof))
            for (; at + 1 < piece.end && !tokens_[at].is(';') && !closes(tokens_[at]); at = behind(tokens_, at, piece.end))
                if (is_name(tokens_[at]))
                    labelled_.emplace_back(pieces_.all.size(), tokens_[at].name);
    }

    // The same where a declaration begins with a qualifier, with whatever comes before the name.
    void qualified_type(uint32_t at, const Piece &piece) {
        const Token &last = tokens_[at - 1];
        if (!last.is(';') && !last.is('{') && !last.is('}') && !(last.is('(') && tokens_[at - 2].view() == "for"))
            return;
        while (role_of(tokens_[at]) == Role::Qualifier)
            at++;
        if (!is_name(tokens_[at]) && role_of(tokens_[at]) != Role::Typeof)
            return;
        for (at++; at + 1 < piece.end && !tokens_[at].is(';'); at++)
            if (is_name(tokens_[at]) && !is_member_mark(tokens_[at - 1]) && (tokens_[at + 1].is(';') || tokens_[at + 1].is(',') || tokens_[at + 1].is(')')))
                labelled_.emplace_back(pieces_.all.size(), tokens_[at].name);
    }

    // Whether nested_function() does not know that this name before a '(' may be declared there.
    bool is_unread(uint32_t at) const {
        uint32_t last = at - 1;
        while (tokens_[last].is('*') || role_of(tokens_[last]) == Role::Qualifier)
            last--;
        return tokens_[last].is(')') || tokens_[last].is(',') || tokens_[last].is('(');
    }

    static bool ends_declarator(const Token &token) {
        for (char mark : {';', ',', '=', '[', '(', ')', '}'})
            if (token.is(mark))
                return true;
        return is_label(token);
    }

    // A name before this '(' that follows a type declares a function, within a body too.
    void nested_function(uint32_t at, Piece &piece) {
        if (at < piece.first + 2 || !is_name(tokens_[at - 1]))
            return;
        uint32_t before = at - 2;
        bool pointer = tokens_[before].is('*');
        while (before > piece.first && (tokens_[before].is('*') || role_of(tokens_[before]) == Role::Qualifier))
            before--;
        const Token &type = tokens_[before];
        Role role = role_of(type);
        if (type.kind() != Kind::Word || (role != Role::Type && role != Role::Name && role != Role::Qualifier))
            return;
        // "a * f(x)" is a product, unless it begins a statement or "a" cannot be a value.
        if (pointer && role == Role::Name && before > piece.first) {
            const Token &first = tokens_[before - 1];
            if (!first.is('{') && !first.is('}') && !first.is(';') && first.kind() != Kind::Word)
                return;
        }
        nest(tokens_[at - 1].name, piece);
    }

    void nest(uint32_t name, Piece &piece) {
        piece.nested = true;
        declare(name, Declares::Nested);
    }

    // Whether an attribute does something beyond its declaration. malloc(NAME) says that NAME frees; a type of an array that is aligned
    // within a body is found again for others (c_build_qualified_type()).
    bool is_keeping(uint32_t at, uint32_t end, bool in_body) const {
        int depth = 0;
        for (at++; at < end; at++) {
            depth += opens(tokens_[at]);
            if (closes(tokens_[at]) && --depth <= 0)
                return false;
            const std::string_view word = tokens_[at].view();
            if (means(tokens_[at], KEEPS) || (in_body && (word == "aligned" || word == "__aligned__")))
                return true;
            if ((word == "malloc" || word == "__malloc__") && at + 1 < end && tokens_[at + 1].is('('))
                return true;
        }
        return false;
    }

    // Notes tags and enumerators that tokens declare; returns whether that is all they do, as in "struct inode;".
    bool tags(uint32_t first, uint32_t end) {
        // Within the parentheses of a prototype or a function's body a tag is that prototype's or body's own.
        int round = 0, curly = 0;
        bool body = tokens_[end - 1].is('}');
        for (uint32_t at = first; at < end; at++) {
            const Token &token = tokens_[at];
            round += token.is('(') - token.is(')');
            curly += token.is('{') - token.is('}');
            if (role_of(token) != Role::Tagged)
                continue;
            uint32_t tag = at + 1;
            while (tag < end && role_of(tokens_[tag]) == Role::Attribute)
                tag = after_attribute(tokens_, tag, end);
            if (tag >= end)
                continue;
            bool named = is_name(tokens_[tag]);
            uint32_t next = tag + named;
            bool defines = next < end && tokens_[next].is('{');
            if (named)
                mention(tokens_[tag].name, how_of(token.view(), defines, round == 0, body && curly), round == 0 && !(body && curly));
            if (defines && token.view() == "enum")
                enumerators(next, end);
        }
        return end - first == 3 && role_of(tokens_[first]) == Role::Tagged && is_name(tokens_[first + 1]) &&
               tokens_[end - 1].is(';');
    }

    void mention(uint32_t tag, Declares how, bool global) {
        if (how == Declares::Tag || !declared_[tag] || how == Declares::LocalTag)
            declare(tag, how);
        if (global)
            declared_[tag] = true;
    }

    static Declares how_of(std::string_view word, bool defines, bool outside, bool in_body) {
        if (defines)
            return in_body ? Declares::LocalTag : Declares::Tag;
        if (!outside || in_body)
            return Declares::Local;
        return word == "struct" ? Declares::Struct : word == "union" ? Declares::Union : Declares::Enum;
    }

    void enumerators(uint32_t at, uint32_t end) {
        int depth = 0;
        bool expected = true;
        for (at++; at < end; at++) {
            const Token &token = tokens_[at];
            if (opens(token))
                depth++;
            else if (closes(token) && --depth < 0)
                return;
            else if (depth == 0 && token.is(','))
                expected = true;
            else if (expected && is_name(token)) {
                declare(token.name, Declares::Ordinary);
                expected = false;
            }
        }
    }

    void index() {
        auto &from = pieces_.from;
        from.assign(unit_.names.count() + 1, 0);
        for (auto name : pieces_.names)
            from[name + 1]++;
        for (size_t name = 1; name < from.size(); name++)
            from[name] += from[name - 1];
        std::vector<uint32_t> next(from.begin(), from.end() - 1);
        pieces_.by_name.resize(pieces_.names.size());
        pieces_.how_by_name.resize(pieces_.names.size());
        for (uint32_t number = 0; number < pieces_.all.size(); number++)
            for (uint32_t at = pieces_.all[number].names_at; at < pieces_.all[number].names_end; at++) {
                const uint32_t place = next[pieces_.names[at]]++;
                pieces_.by_name[place] = number;
                pieces_.how_by_name[place] = pieces_.how[at];
            }
    }

    const Unit &unit_;
    const std::vector<Token> &tokens_;
    Pieces &pieces_;
    std::vector<uint8_t> meaning_;
    std::vector<bool> declared_;
    std::vector<bool> volatile_;  // names of types
    std::vector<std::pair<uint32_t, uint32_t>> labelled_;  // pieces, and names that their bodies may declare
};

}

std::string split(const Unit &unit, Pieces &pieces) { return Splitter(unit, pieces).run(); }

}
