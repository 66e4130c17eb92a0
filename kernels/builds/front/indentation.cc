// SPDX-License-Identifier: GPL-2.0-or-later
#include "indentation.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "store.h"

namespace front {

namespace {

// As gcc counts a tab.
constexpr uint32_t TAB = 8;

// Where gcc takes a token to stand: what a macro brought stands where that macro's name does.
struct Place {
    uint32_t line;
    uint32_t own;      // its column
    uint32_t first;    // that of the first token of its line
    bool exact;        // else it is taken to be that first token
    const char *text;  // where its line begins
};

// The column behind blanks, from where a line begins; moves there.
uint32_t behind_blanks(const char *&at) {
    uint32_t column = 0;
    for (; *at == ' ' || *at == '\t'; at++)
        column = *at == '\t' ? (column / TAB + 1) * TAB : column + 1;
    return column;
}

// Of an `if`, `else`, `for`, `while` or `switch`, where that stands, what it leads to, and what comes behind.
class Guarded {
public:
    // labelled: what the body's labels, if it has any, stand before.
    Guarded(const Unit &unit, uint32_t guard, uint32_t body, uint32_t labelled, uint32_t next)
        : unit_(unit), tokens_(unit.tokens), guard_(guard), body_(body), labelled_(labelled), next_(next) {}

    // Whether one expansion brought the body's beginning and what comes behind it, but not what leads to it: -Wmultistatement-macros. In gcc's
    // text it brought neither if they are not on one line.
    bool is_split() const {
        const Token &body = tokens_[labelled_], &next = tokens_[next_];
        if (body.is('{') || next.is(';'))
            return false;
        if (!unit_.memory)
            return body.file == next.file && body.line == next.line;
        return body.expanded() && body.expansion == next.expansion && tokens_[guard_].expansion != body.expansion;
    }

    // Whether what comes behind seems to belong to the statement before it.
    bool misleads() {
        const Token &body = tokens_[body_], &next = tokens_[next_];
        if (body.is('{') || next.is('}') || next.is(';') || next.view() == "else")
            return false;
        if (is_one_call(guard_, next_))
            return find_in_definition() && compares_badly();
        if (body.file != next.file || is_one_call(guard_, body_))
            return false;
        const bool found = find(body_, body_place_) && find(next_, next_place_) && find(guard_, guard_place_);
        return !found || tokens_[guard_].file != body.file || compares_badly() || !is_column_kept();
    }

private:
    // Whether one call of a macro brought these tokens and all between.
    bool is_one_call(uint32_t first, uint32_t last) const {
        for (uint32_t at = first; at <= last; at++)
            if (!tokens_[at].expanded() || tokens_[at].line != tokens_[first].line)
                return false;
        return true;
    }

    // The text in which a token of this file stands: as it was written, or gcc's.
    std::string_view text_of(uint16_t file) const { return unit_.files[file].text.empty() ? unit_.text : unit_.files[file].text; }

    bool stands(const Token &token) const {
        const std::string_view text = text_of(token.file);
        return !token.expanded() && token.text >= text.data() && token.text < text.data() + text.size();
    }

    // False of a token that stands nowhere as it is.
    bool find(uint32_t at, Place &place) const {
        const Token &token = tokens_[at];
        uint32_t near = at;
        while (near && tokens_[near].file == token.file && !stands(tokens_[near]))
            near--;
        if (tokens_[near].file != token.file || !stands(tokens_[near]) || tokens_[near].line > token.line)
            return false;
        measure(tokens_[near].text, text_of(token.file), place);
        for (uint32_t line = tokens_[near].line; line < token.line; line++)
            if (!to_next_line(place.text))
                return false;
        place.line = token.line;
        place.exact = near == at;
        if (!place.exact) {
            const char *first = place.text;
            place.own = place.first = behind_blanks(first);
        }
        return true;
    }

    // Places within the definition of the macro that brought all three; false where it is not plain that they stand there.
    bool find_in_definition() {
        const char *guard = tokens_[guard_].text, *body = tokens_[body_].text, *next = tokens_[next_].text;
        for (auto &file : unit_.files) {
            if (guard < file.text.data() || next >= file.text.data() + file.text.size() || body < guard || next < body)
                continue;
            measure(guard, file.text, guard_place_);
            measure(body, file.text, body_place_);
            measure(next, file.text, next_place_);
            guard_place_.line = 0;
            body_place_.line = std::count(guard, body, '\n');
            next_place_.line = std::count(guard, next, '\n');
            return true;
        }
        return false;
    }

    static void measure(const char *token, std::string_view within, Place &place) {
        place.text = token;
        while (place.text > within.data() && place.text[-1] != '\n')
            place.text--;
        const char *at = place.text;
        place.own = place.first = behind_blanks(at);
        for (; at < token; at++)
            place.own = *at == '\t' ? (place.own / TAB + 1) * TAB : place.own + 1;
        place.exact = true;
    }

    static bool to_next_line(const char *&at) {
        while (*at && *at != '\n')
            at++;
        return *at && *++at;
    }

    // gcc -E writes a tab as one blank: then columns can be compared only if all lines here begin with tabs alone.
    bool is_column_kept() const {
        auto &file = unit_.files[tokens_[body_].file];
        if (!file.text.empty())
            return true;
        std::string source;
        if (!read_file(std::string(file.name), source))
            return false;
        const char *at = source.c_str();
        for (uint32_t line = 1; line <= next_place_.line; line++) {
            if (line >= guard_place_.line && at[std::strspn(at, "\t")] == ' ')
                return false;
            if (line < next_place_.line && !to_next_line(at))
                return false;
        }
        return true;
    }

    // By gcc's rule.
    bool compares_badly() const {
        const Place &guard = guard_place_, &body = body_place_, &next = next_place_;
        if (next.line == body.line)
            return guard.line < body.line || (guard.line == body.line && guard.own == guard.first);
        if (next.line < body.line || next.own != next.first)
            return false;
        const bool beside = body.line == guard.line, deeper = next.own > guard.first;
        if (tokens_[body_].is(';')) {
            if (beside)
                return deeper || (tokens_[next_].is('{') && next.own == guard.first);
            return body.own != body.first && deeper && !is_plain();
        }
        return beside && !body.exact ? deeper : next.own == body.own && !is_plain();
    }

    // Whether one sees that the body ends: it is no deeper than what leads to it, or something less deep stands before what comes next.
    bool is_plain() const {
        const Place &guard = guard_place_, &body = body_place_, &next = next_place_;
        if (body.own == (tokens_[guard_].view() == "else" ? guard.first : guard.own) || body.own <= guard.first)
            return true;
        const bool written = !unit_.files[tokens_[body_].file].text.empty();
        const char *line = body.text;
        while (to_next_line(line) && line < next.text) {
            const char *first = line;
            const uint32_t column = behind_blanks(first);
            // gcc does not look at a line's last character.
            if (*first && first[0] != '\n' && first[1] != '\n' && column < std::min(next.own, body.own) && (written || *first != '#'))
                return true;
        }
        return false;
    }

    const Unit &unit_;
    const std::vector<Token> &tokens_;
    const uint32_t guard_, body_, labelled_, next_;
    Place guard_place_{}, body_place_{}, next_place_{};
};

// The statements of a function's body. Each function that reads one returns where the next begins.
class Statements {
public:
    Statements(const Unit &unit, const Piece &piece) : unit_(unit), tokens_(unit.tokens), end_(piece.end) { read_block(piece.body); }

    bool mislead() const { return misleads_; }

private:
    bool is(uint32_t at, std::string_view word) const { return at < end_ && tokens_[at].kind() == Kind::Word && tokens_[at].view() == word; }
    bool is(uint32_t at, char mark) const { return at < end_ && tokens_[at].is(mark); }

    uint32_t read_block(uint32_t open) {
        uint32_t at = open + 1;
        while (at < end_ && !tokens_[at].is('}'))
            at = read_statement(at);
        return at + 1;
    }

    uint32_t read_statement(uint32_t at) {
        at = after_labels(at);
        if (is(at, '{'))
            return read_block(at);
        if (at >= end_ || is(at, '}'))
            return at;
        if (tokens_[at].kind() == Kind::Pragma)
            return at + 1;
        return role_of(tokens_[at]) == Role::Other ? read_keyword(at) : read_expression(at);
    }

    uint32_t after_labels(uint32_t at) {
        for (;;) {
            if (is(at, "case") || is(at, "default")) {
                // Of "case 1 ? 2 : 3:" the last ends it.
                for (int colons = 1; at < end_ && (!tokens_[at].is(':') || --colons); at = read_part(at))
                    colons += tokens_[at].is('?');
                at++;
            } else if (at < end_ && is_name(tokens_[at]) && is(at + 1, ':')) {
                for (at += 2; at < end_ && role_of(tokens_[at]) == Role::Attribute;)
                    at = after_attribute(tokens_, at, end_);
            } else {
                return at;
            }
        }
    }

    uint32_t read_keyword(uint32_t at) {
        if (is(at, "if")) {
            const uint32_t next = read_guarded(at, read_part(at + 1));
            return is(next, "else") ? read_guarded(next, next + 1) : next;
        }
        if (is(at, "for") || is(at, "while"))
            return read_guarded(at, read_part(at + 1));
        if (is(at, "switch"))
            return read_guarded(at, read_part(at + 1));
        if (is(at, "do")) {
            at = read_statement(at + 1);
            return is(at, "while") ? read_part(at + 1) + 1 : at;
        }
        return read_expression(at);
    }

    uint32_t read_expression(uint32_t at) {
        while (at < end_ && !tokens_[at].is(';') && !tokens_[at].is('}')) {
            const bool block = tokens_[at].is('{');
            at = read_part(at);
            // Behind a nested function, or a structure's members.
            if (block && at < end_ && tokens_[at].kind() == Kind::Word)
                return at;
        }
        return is(at, ';') ? at + 1 : at;
    }

    // A token, or all between brackets, where blocks of "({ })" and of nested functions are read.
    uint32_t read_part(uint32_t at) {
        if (at >= end_ || !opens(tokens_[at]))
            return at + 1;
        if (is(at, '{'))
            return read_block(at);
        for (at++; at < end_ && !closes(tokens_[at]);)
            at = read_part(at);
        return at + 1;
    }

    uint32_t read_guarded(uint32_t guard, uint32_t body) {
        const uint32_t next = read_statement(body);
        if (next >= end_ || body >= end_)
            return next;
        Guarded guarded(unit_, guard, body, after_labels(body), next);
        // Of a switch gcc compares no columns.
        misleads_ |= guarded.is_split() || (!is(guard, "switch") && guarded.misleads());
        return next;
    }

    const Unit &unit_;
    const std::vector<Token> &tokens_;
    const uint32_t end_;
    bool misleads_ = false;
};

}

bool may_mislead(const Unit &unit, const Pieces &pieces) {
    if (unit.relined)
        return false;
    for (auto &piece : pieces.all)
        if (piece.body < piece.end && Statements(unit, piece).mislead())
            return true;
    return false;
}

}
