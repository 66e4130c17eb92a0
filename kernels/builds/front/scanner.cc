// SPDX-License-Identifier: GPL-2.0-or-later
#include "scanner.h"

#include <cstring>

namespace front {

namespace {

enum class Sort : uint8_t { Odd, Blank, Newline, Word, Digit, Quote, Slash, Backslash, Mark };

constexpr std::string_view ALONE = ";,(){}[]";

struct Sorts {
    Sort of[256] = {};
    bool word[256] = {};   // goes on a word
    bool quiet[256] = {};  // means nothing to a line that is skipped
    bool apart[256] = {};  // is never part of a token of several characters
    constexpr Sorts() {
        for (int c = 0; c < 256; c++) {
            word[c] = ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '$' || (c >= '0' && c <= '9');
            of[c] = c >= '0' && c <= '9' ? Sort::Digit : word[c] ? Sort::Word : Sort::Odd;
            quiet[c] = c != '\n' && c != '/' && c != '\\' && c != '"' && c != '\'' && c != 0;
        }
        for (unsigned char c : std::string_view(" \t\f\v"))
            of[c] = Sort::Blank;
        for (unsigned char c : std::string_view("-+<>=!&|*%^#:.~?;,(){}[]"))
            of[c] = Sort::Mark;
        for (unsigned char c : std::string_view(" \t\f\v\n;,(){}[]"))
            apart[c] = true;
        of[static_cast<unsigned char>('\n')] = Sort::Newline;
        of[static_cast<unsigned char>('"')] = of[static_cast<unsigned char>('\'')] = Sort::Quote;
        of[static_cast<unsigned char>('/')] = Sort::Slash;
        of[static_cast<unsigned char>('\\')] = Sort::Backslash;
    }
};
constexpr Sorts SORTS;

Sort sort(char c) { return SORTS.of[static_cast<unsigned char>(c)]; }
bool in_word(char c) { return SORTS.word[static_cast<unsigned char>(c)]; }
bool quiet(char c) { return SORTS.quiet[static_cast<unsigned char>(c)]; }
bool apart(char c) { return SORTS.apart[static_cast<unsigned char>(c)]; }

// Whether a token may go on from one of these characters to the other.
bool joins(char one, char other) {
    if (apart(one) || apart(other) || sort(one) == Sort::Quote)
        return false;
    const bool word = in_word(one) || one == '.', quote = sort(other) == Sort::Quote;
    if (word && (in_word(other) || other == '.' || quote || (std::strchr("eEpP", one) && (other == '+' || other == '-'))))
        return true;
    return !in_word(one) && !in_word(other) && !quote;
}

// gcc warns of characters that turn the direction of text: U+200E and U+200F, U+202A to U+202E, U+2066 to U+2069.
void fear_direction(const char *at) {
    const unsigned char one = at[0], two = at[1], three = at[2];
    if (one == 0xe2 && ((two == 0x80 && (three == 0x8e || three == 0x8f || (three >= 0xaa && three <= 0xae))) ||
                        (two == 0x81 && three >= 0xa6 && three <= 0xa9)))
        throw Unfit{"own-direction"};
}

// Whether a backslash is here with nothing but blanks behind it: gcc takes the next line for a part of this one.
bool escapes_line(const char *at) {
    if (*at != '\\')
        return false;
    do
        at++;
    while (sort(*at) == Sort::Blank);
    return *at == '\n';
}

// Whether this character may come next behind such a line's end.
bool goes_on(const char *at, char with) {
    if (!escapes_line(at))
        return false;
    at = std::strchr(at, '\n');
    return at[1] == with || at[1] == '\\';
}

// Stops at what a comment's reader must look at.
const char *comment_stop(const char *at) {
    for (;; at++) {
        const char c = *at;
        if (c == '*' || c == '\n' || c == '/' || c == '\0' || static_cast<unsigned char>(c) == 0xe2)
            return at;
    }
}

}

void Scanner::comment() {
    const char *at = at_ + 2;
    for (;; at++) {
        at = comment_stop(at);
        if (*at == '\n') {
            if (at + 1 >= end_)
                throw Unfit{"own-comment"};
            line_++;
        } else if (*at == '*') {
            if (at[1] == '/')
                break;
            // "*\" newline "/" ends one too.
            if (goes_on(at + 1, '/'))
                throw Unfit{"own-comment"};
        } else if (*at == '/') {
            // gcc may warn of a comment within.
            if ((at[1] == '*' && at[2] != '/') || goes_on(at + 1, '*'))
                throw Unfit{"own-comment"};
        } else if (*at == '\0') {
            throw Unfit{"own-comment"};
        } else {
            fear_direction(at);
        }
    }
    at_ = at + 2;
}

void Scanner::line_comment() {
    for (; *at_ != '\n'; at_++) {
        if (*at_ == '\\' || *at_ == '\0')
            throw Unfit{"own-comment"};
        fear_direction(at_);
    }
}

// A backslash here must end its line, and not be within a token.
void Scanner::escaped_line() {
    if (at_[1] != '\n' || at_ + 2 >= end_)
        throw Unfit{"own-backslash"};
    if (at_[2] == '\\' || joins(at_[-1], at_[2]))
        throw Unfit{"own-backslash"};
    at_ += 2;
    line_++;
}

void Scanner::next(Lexeme &token) {
    uint8_t flags = !fresh_ ? 0 : arguments == Arguments::Read ? FIRST | WHITE : FIRST;
    for (;;) {
        const Sort what = sort(*at_);
        switch (what) {
        case Sort::Blank:
            at_++;
            flags |= WHITE;
            continue;
        case Sort::Newline:
            if (directive) {
                token.form = Form::End;
                token.flags = flags;
                return;
            }
            at_++;
            line_++;
            fresh_ = true;
            flags = arguments == Arguments::Read ? FIRST | WHITE : FIRST;
            continue;
        case Sort::Slash:
            if (at_[1] == '*') {
                comment();
                flags |= WHITE;
                continue;
            }
            if (at_[1] == '/') {
                line_comment();
                flags |= WHITE;
                continue;
            }
            break;
        case Sort::Backslash:
            escaped_line();
            continue;
        case Sort::Odd:
            if (at_ < end_)
                throw Unfit{"own-character"};
            token.form = Form::End;
            token.flags = flags;
            return;
        default: break;
        }
        fresh_ = false;
        token.line = line_;
        token.flags = flags;
        token.name = 0;
        if (what == Sort::Word)
            word(token);
        else if (what == Sort::Digit || (*at_ == '.' && sort(at_[1]) == Sort::Digit))
            number(token);
        else if (what == Sort::Quote)
            quoted(token, at_);
        else
            mark(token);
        return;
    }
}

void Scanner::word(Lexeme &token) {
    const char *stop = at_ + 1;
    while (in_word(*stop))
        stop++;
    if (*stop == '"' || *stop == '\'') {
        const std::string_view prefix(at_, stop - at_);
        if (prefix == "L" || prefix == "u" || prefix == "U" || prefix == "u8")
            return quoted(token, stop);
        if (prefix.back() == 'R')
            throw Unfit{"own-prefix"};
    }
    finish(token, Form::Word, stop);
    token.name = names_->number(token.view());
    if (token.name - guarded_name < 2 && !defining)
        throw Unfit{"own-definition"};
}

void Scanner::number(Lexeme &token) {
    const char *stop = at_ + 1;
    while (in_word(*stop) || *stop == '.' || ((*stop == '+' || *stop == '-') && std::strchr("eEpP", stop[-1])))
        stop++;
    finish(token, Form::Number, stop);
}

void Scanner::quoted(Lexeme &token, const char *open) {
    const char *stop = open + 1;
    bool escaped = false;
    for (; *stop != *open; stop++) {
        if (*stop == '\n' || *stop == '\0')
            throw Unfit{"own-quote"};
        fear_direction(stop);
        if (*stop == '?' && stop[1] == '?' && std::strchr("=/'()!<>-", stop[2]))
            throw Unfit{"own-trigraph"};
        if (*stop == '\\' && *++stop == '\n') {
            line_++;
            escaped = true;
        }
    }
    finish(token, Form::Text, stop + 1);
    if (!escaped)
        return;
    // gcc writes it in one line.
    char *copy = texts_->list<char>(token.size);
    uint32_t size = 0;
    for (uint32_t at = 0; at < token.size; at++) {
        if (token.text[at] == '\\' && token.text[at + 1] == '\n')
            at++;
        else
            copy[size++] = token.text[at];
    }
    token.text = copy;
    token.size = size;
}

void Scanner::mark(Lexeme &token) {
    static constexpr std::string_view THREE[] = {"<<=", ">>=", "..."};
    static constexpr std::string_view TWO[] = {"->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
                                               "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##", "::"};
    static constexpr std::string_view ODD[] = {"??", "<:", "<%", "%:", "%>", ":>"};
    const char c = *at_;
    size_t size = 1;
    if (ALONE.find(c) == ALONE.npos && !in_word(at_[1]) && at_[1] != ' ') {
        const std::string_view rest(at_, 3);
        for (auto two : TWO)
            if (rest.substr(0, 2) == two)
                size = 2;
        for (auto three : THREE)
            if (rest == three)
                size = 3;
        for (auto odd : ODD)
            if (rest.substr(0, 2) == odd)
                throw Unfit{"own-mark"};
    }
    if (size == 1)
        token.name = static_cast<unsigned char>(c);
    finish(token, Form::Mark, at_ + size);
}

void Scanner::skip_blanks() {
    for (;;) {
        if (sort(*at_) == Sort::Blank)
            at_++;
        else if (*at_ == '/' && at_[1] == '*')
            comment();
        else if (*at_ == '\\' && at_[1] == '\n')
            escaped_line();
        else
            return;
    }
}

// gcc complains of one that is not closed; a raw one may go over lines.
void Scanner::skip_quoted() {
    const char open = *at_;
    if (at_[-1] == 'R')
        throw Unfit{"own-prefix"};
    for (at_++; *at_ != open; at_++) {
        if (*at_ == '\n' || at_ >= end_)
            throw Unfit{"own-quote"};
        if (*at_ != '\\')
            continue;
        if (at_[1] != '\n' && escapes_line(at_))
            throw Unfit{"own-backslash"};
        at_++;
        line_ += *at_ == '\n';
    }
    at_++;
}

void Scanner::expect_end() {
    Lexeme token;
    next(token);
    if (token.form != Form::End)
        throw Unfit{"own-directive"};
}

void Scanner::skip_line() {
    for (;;) {
        while (quiet(*at_))
            at_++;
        if (*at_ == '\n') {
            fresh_ = true;
            return;
        }
        if (*at_ == '/' && at_[1] == '*')
            comment();
        else if (*at_ == '/' && at_[1] == '/')
            line_comment();
        else if (*at_ == '"' || *at_ == '\'')
            skip_quoted();
        else if (*at_ == '\\' && at_[1] != '\n' && escapes_line(at_))
            throw Unfit{"own-backslash"};
        else if (*at_ == '\\' && at_[1] == '\n')
            escaped_line();
        else if (at_ >= end_)
            throw Unfit{"own-character"};
        else
            at_++;
    }
}

bool Scanner::next_directive() {
    while (at_ < end_) {
        if (*at_ == '\n') {
            at_++;
            line_++;
            continue;
        }
        skip_blanks();
        if (*at_ == '#') {
            at_++;
            return true;
        }
        if (*at_ == '%' && at_[1] == ':')
            throw Unfit{"own-mark"};
        skip_line();
    }
    return false;
}

std::string_view Scanner::directive_word() {
    skip_blanks();
    const char *begin = at_;
    while (in_word(*at_))
        at_++;
    if (at_ > begin && *at_ == '\\')
        throw Unfit{"own-backslash"};
    return {begin, static_cast<size_t>(at_ - begin)};
}

std::string_view Scanner::header_name(bool &angled) {
    skip_blanks();
    angled = *at_ == '<';
    if (*at_ != '"' && *at_ != '<')
        return "";
    const char close = angled ? '>' : '"', *begin = ++at_;
    for (; *at_ != close; at_++)
        if (*at_ == '\n' || *at_ == '\\' || at_ >= end_)
            throw Unfit{"own-include"};
    return {begin, static_cast<size_t>(at_++ - begin)};
}

bool read_one(Names &names, Memory &texts, std::string_view text, Lexeme &token) {
    Scanner scanner(names, texts);
    scanner.begin(text, 0);
    scanner.directive = true;
    Lexeme more;
    scanner.next(token);
    scanner.next(more);
    return token.form != Form::End && more.form == Form::End;
}

}
