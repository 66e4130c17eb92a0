// SPDX-License-Identifier: GPL-2.0-or-later
#include "lines.h"

#include <algorithm>
#include <map>

#include "reach.h"
#include "store.h"

namespace front {

namespace {

bool in_word(unsigned char c) { return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

// Macros in whose expansion __LINE__ may stand: it does, or what is pasted may be its name, or they use such macros.
std::vector<bool> line_macros(const Unit &unit) {
    std::vector<bool> found(unit.names.count());
    for (bool more = true; more;) {
        more = false;
        for (auto &macro : unit.macros) {
            if (found[macro.name])
                continue;
            bool uses = macro.line.find("__LINE__") != macro.line.npos || macro.line.find("##") != macro.line.npos;
            mentions_in(unit, macro.line, [&](uint32_t name) { uses |= found[name]; });
            if (uses)
                found[macro.name] = more = true;
        }
    }
    return found;
}

// A file as it was written, as far as lines go.
class Written {
public:
    Written(const Unit &unit, const std::vector<bool> &macros, std::string_view path) : unit_(unit), macros_(macros) {
        good_ = read_file(std::string(path), text_);
        until_.assign(2, 0);
        while (good_ && at_ < text_.size())
            step();
        while (!open_.empty())
            close();
    }

    // Whether a macro that stands on this line has nothing on later lines that could become a line number.
    bool holds(uint32_t line) const {
        if (!good_ || line >= until_.size())
            return false;
        auto next = std::upper_bound(lines_.begin(), lines_.end(), line);
        return next == lines_.end() || *next > until_[line];
    }

private:
    uint32_t line() const { return until_.size() - 1; }
    bool follows(std::string_view text) const { return text_.compare(at_, text.size(), text) == 0; }

    void step() {
        const char c = text_[at_];
        if (c == '\n') {
            end_line();
            fresh_ = true;
        } else if (c == ' ' || c == '\t' || c == '\f' || c == '\v' || c == '\r') {
            at_++;
        } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
            at_++;
            end_line();
        } else if (follows("/*")) {
            skip_to("*/");
        } else if (follows("//")) {
            while (at_ < text_.size() && text_[at_] != '\n')
                at_ += pass();
        } else if (c == '#' && fresh_) {
            directive();
        } else {
            token(c);
            fresh_ = false;
        }
    }

    void end_line() {
        at_++;
        until_.push_back(0);
    }

    // How many characters the next one is, an escaped one being two; counts an escaped line's end.
    size_t pass() {
        if (text_[at_] != '\\' || at_ + 1 >= text_.size())
            return 1;
        if (text_[at_ + 1] == '\n')
            until_.push_back(0);
        return 2;
    }

    void skip_to(std::string_view end) {
        for (at_ += 2; at_ < text_.size() && !follows(end); at_++)
            if (text_[at_] == '\n')
                until_.push_back(0);
        at_ = std::min(text_.size(), at_ + end.size());
    }

    // Branches of a condition may open or close what others do too: what is open then is taken to be so to the file's end.
    void directive() {
        size_t word = text_.find_first_not_of(" \t", at_ + 1);
        if (word != text_.npos && (text_.compare(word, 4, "line") == 0 || (text_[word] >= '0' && text_[word] <= '9')))
            good_ = false;
        for (auto line : open_)
            until_[line] = UINT32_MAX;
        while (at_ < text_.size() && text_[at_] != '\n') {
            if (follows("/*"))
                skip_to("*/");
            else
                at_ += pass();
        }
    }

    void token(char c) {
        if (in_word(c)) {
            size_t begin = at_;
            while (at_ < text_.size() && in_word(text_[at_]))
                at_++;
            std::string_view word(text_.data() + begin, at_ - begin);
            auto name = unit_.names.find(word);
            if (word == "__LINE__" || (name >= 0 && macros_[name]))
                lines_.push_back(line());
            last_ = line();
            return;
        }
        if (c == '"' || c == '\'') {
            quoted(c);
        } else {
            if (c == '(')
                // A macro's name may stand on a line before.
                open_.push_back(last_ ? last_ : line());
            else if (c == ')' && !open_.empty())
                close();
            else if (c == '}' && (!at_ || text_[at_ - 1] == '\n'))
                while (!open_.empty())
                    close();
            at_++;
        }
        last_ = 0;
    }

    void quoted(char c) {
        for (at_++; at_ < text_.size() && text_[at_] != c && text_[at_] != '\n';)
            at_ += pass();
        if (at_ < text_.size() && text_[at_] == c)
            at_++;
    }

    void close() {
        until_[open_.back()] = std::max(until_[open_.back()], line());
        open_.pop_back();
    }

    const Unit &unit_;
    const std::vector<bool> &macros_;
    std::string text_;
    size_t at_ = 0;
    bool good_, fresh_ = true;
    uint32_t last_ = 0;             // the line of a word that was the last token
    std::vector<uint32_t> open_;    // lines of brackets that are open
    std::vector<uint32_t> until_;   // by line, where the last bracket opened on it is closed
    std::vector<uint32_t> lines_;   // of words that may become a line number, rising
};

class Judge {
public:
    explicit Judge(const Unit &unit) : unit_(unit), macros_(line_macros(unit)), digits_(unit.names.count()) {
        for (uint32_t name = 0; name < digits_.size(); name++)
            digits_[name] = unit.names.word(name).find_first_of("0123456789") != std::string_view::npos;
    }

    bool holds(const Piece &piece) {
        for (uint32_t at = piece.first; at < piece.end; at++) {
            const Token &token = unit_.tokens[at];
            if (token.kind() == Kind::Mark || (token.kind() == Kind::Word && !digits_[token.name]))
                continue;
            if (token.line != line_) {
                line_ = token.line;
                spelt_ = std::to_string(line_);
            }
            if (token.view().find(spelt_) != token.view().npos && !holds(token))
                return false;
        }
        return true;
    }

private:
    bool holds(const Token &token) {
        auto known = files_.find(token.file);
        if (known == files_.end())
            known = files_.try_emplace(token.file, unit_, macros_, unit_.files[token.file].name).first;
        return known->second.holds(token.line);
    }

    const Unit &unit_;
    const std::vector<bool> macros_;
    std::vector<bool> digits_;
    std::map<uint16_t, Written> files_;
    uint32_t line_ = 0;
    std::string spelt_ = "0";
};

}

bool lines_hold(const Unit &unit, const Pieces &pieces, const std::vector<bool> &kept) {
    if (unit.relined)
        return false;
    Judge judge(unit);
    for (size_t number = 0; number < kept.size(); number++)
        if (kept[number] && !judge.holds(pieces.all[number]))
            return false;
    return true;
}

}
