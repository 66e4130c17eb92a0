// SPDX-License-Identifier: GPL-2.0-or-later
#include "preprocessor.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "builtins.h"
#include "headers.h"
#include "preprocessor_flags.h"
#include "release.h"
#include "segments.h"

namespace front {

namespace {

constexpr size_t DEEPEST = 190;  // files in files; gcc allows 200

// What the files that a process reads have in common.
struct Lasting {
    Names names;
    Memory texts;
    Definitions definitions;
    std::vector<Token> room;  // of a file that was read before: many megabytes, which the system would have to clear
    std::unordered_map<std::string, Segments> segments;  // by what __FILE__ and conditions depend on besides macros
    bool keeps_segments = false;
};

Lasting &lasting() {
    static Lasting lasting;
    return lasting;
}

class Preprocessor : Directives {
public:
    Preprocessor(const Plan &plan, Unit &unit)
        : plan_(plan), flags_(read_preprocessor_flags(plan)), unit_(unit), names_(lasting().names), texts_(lasting().texts),
          macros_(names_, texts_, lasting().definitions), headers_(*unit.memory), expansion_(names_, texts_, macros_, *this),
          scanner_(expansion_.scanner), groups_(expansion_, macros_, flags_.warns_undefined), notes_(unit, names_, texts_, macros_, expansion_) {}

    void run(const std::string &builtins) {
        scanner_.guarded_name = macros_.arguments_name();
        if (plan_.lines)
            unit_.folder = "/";
        for (auto &[folder, quoted] : flags_.folders)
            headers_.add(folder, quoted);
        if (lasting().keeps_segments)
            segments_ = &lasting().segments[segments_name(builtins)];
        define_builtins(builtins, names_, texts_, macros_, expansion_);
        Header *input = headers_.open(plan_.input);
        if (!input)
            throw Unfit{"own-file"};
        name_folder();
        note(*input);
        seen.push_back(input->path);
        for (auto &text : flags_.macros)
            command_line(text);
        for (auto &name : flags_.included) {
            // -include looks where the compiler runs, then as #include "name" does.
            if (include(name, false, "./"))
                read();
        }
        enter(*input);
        read();
        if (released_)
            look_for_placeholders();
    }

    std::vector<std::string_view> seen;  // files, in the order of their first reading

private:
    // A file that is being read.
    struct Place {
        Header *header;
        std::string_view folder;
        Progress progress;
    };

    // As the compiler finds the folder it runs in.
    void name_folder() {
        if (!plan_.lines)
            return;
        char place[4096];
        const char *told = std::getenv("PWD");
        struct stat one, other;
        if (!told || told[0] != '/' || stat(told, &one) || stat(".", &other) || one.st_ino != other.st_ino || one.st_dev != other.st_dev)
            told = getcwd(place, sizeof place);
        if (!told)
            throw Unfit{"own-flags"};
        unit_.folder = unit_.memory->copy(std::string(told) + "//");
    }

    std::string segments_name(const std::string &builtins) const {
        std::string name(flags_.warns_undefined ? "-Wundef" : "");
        for (auto &renamed : flags_.renamed)
            name.append(renamed).push_back('\n');
        return name + builtins;
    }

    void note(Header &header) {
        if (unit_.files.size() >= UINT16_MAX)
            throw Unfit{"own-depth"};
        if (header.path.find_first_of("\"\\") != header.path.npos)
            throw Unfit{"own-file"};
        if (header.directions)
            throw Unfit{"own-direction"};
        if (header.trigraphs && flags_.warns_trigraphs)
            throw Unfit{"own-trigraph"};
        header.number = unit_.files.size();
        unit_.files.push_back({header.path, false, header.text});
        header.used = true;
    }

    void note_release(const Header &header) {
        if (!unit_.release.empty() && released_ != &header)
            throw Unfit{"own-release"};
        unit_.release = header.release;
        released_ = &header;
    }

    // What stands for the release must be told from a text that has these characters by itself, or the release itself.
    void look_for_placeholders() const {
        const std::string_view text = released_->text;
        for (auto &token : unit_.tokens) {
            const bool is_text = token.kind() == Kind::Text || token.kind() == Kind::Pragma, is_there = token.text >= text.data() && token.text < text.data() + text.size();
            if (is_text && !is_there && (token.view().find(PLACEHOLDER) != token.view().npos || token.view().find(unit_.release) != token.view().npos))
                throw Unfit{"own-release"};
        }
    }

    void command_line(const std::string &text) {
        if (text.find('\n') != text.npos)
            throw Unfit{"own-flags"};
        const std::string_view kept = texts_.copy("\n" + text + "\n" + std::string(1, '\0'));
        scanner_.begin(kept.substr(1, kept.size() - 2), 0);
        scanner_.next_directive();
        scanner_.directive = true;
        if (scanner_.directive_word() == "define")
            macros_.define(scanner_);
        else
            macros_.undefine(scanner_);
        scanner_.directive = false;
    }

    void enter(Header &header) {
        if (places_.size() > DEEPEST)
            throw Unfit{"own-depth"};
        if (!header.used)
            note(header);
        if (!header.release.empty())
            note_release(header);
        if (!places_.empty())
            places_.back().progress.scanner = scanner_;
        const size_t slash = header.path.rfind('/');
        places_.push_back({&header, header.path.substr(0, slash == header.path.npos ? 0 : slash + 1), {scanner_, {}}});
        scanner_.begin(header.text, 1);
        surround();
        is_between_ = true;
    }

    void surround() {
        file_ = places_.back().header->number;
        expansion_.around.file = spelt_name(file_);
        expansion_.around.base_file = spelt_name(0);
        // What -include names counts as one deeper too.
        expansion_.around.depth = places_.size() - 1 + (places_.front().header->number != 0);
    }

    // __FILE__, with its quotes.
    std::string_view spelt_name(uint16_t file) {
        if (file < spelt_names_.size() && !spelt_names_[file].empty())
            return spelt_names_[file];
        std::string name(unit_.files[file].name);
        for (auto at = flags_.renamed.rbegin(); at != flags_.renamed.rend(); ++at) {
            const size_t equal = at->find('=');
            if (equal == at->npos)
                throw Unfit{"own-flags"};
            if (name.compare(0, equal, *at, 0, equal) == 0) {
                name = at->substr(equal + 1) + name.substr(equal);
                break;
            }
        }
        spelt_names_.resize(unit_.files.size());
        return spelt_names_[file] = texts_.copy('"' + name + '"');
    }

    // Returns whether there is a file that goes on.
    bool leave() {
        Place &place = places_.back();
        if (!place.progress.groups.empty())
            throw Unfit{"own-directive"};
        if (place.progress.guarded == Guarded::Behind)
            place.header->guard = place.progress.guard;
        places_.pop_back();
        if (places_.empty())
            return false;
        scanner_ = places_.back().progress.scanner;
        surround();
        return is_between_ = true;
    }

    // Reads the files that have been entered to their ends.
    void read() {
        Lexeme token;
        for (;;) {
            if (is_between_)
                begin_segment();
            if (!expansion_.take_ahead(token))
                scanner_.next(token);
            if (token.form == Form::End) {
                notes_.end(progress(), false);
                if (!leave())
                    return;
                continue;
            }
            if (token.flags & FIRST) {
                if (token.is('#')) {
                    directive(token.line);
                    continue;
                }
                line_ = token.line;
                if (places_.back().progress.guarded != Guarded::Within)
                    places_.back().progress.guarded = Guarded::No;
            }
            if (token.form == Form::Word)
                if (auto *macro = macros_.find(token.name)) {
                    expand(token, *macro);
                    continue;
                }
            emit(token, token.line, apart_, false);
            apart_ = false;
        }
    }

    // Between two segments: takes over those that are known, and begins to note what comes then.
    void begin_segment() {
        is_between_ = apart_ = false;
        // The input's own are its alone; what -include names knows no #pragma once.
        while (segments_ && file_ && places_.size() > 1) {
            const Progress &begin = progress();
            const Segment *known = segments_->find(begin, macros_);
            if (!known)
                return notes_.begin(*segments_, begin);
            take(*known);
            if (!known->includes)
                return;
            include();
            is_between_ = false;
        }
    }

    void take(const Segment &segment) {
        if (!segment.tokens.empty())
            refuse_prefix(segment.tokens.front().kind());
        notes_.take(segment, file_);
        if (segment.once)
            note_once();
        places_.back().progress = segment.end;
        scanner_ = segment.end.scanner;
    }

    const Progress &progress() {
        places_.back().progress.scanner = scanner_;
        return places_.back().progress;
    }

    void expand(const Lexeme &name, Macro &macro) {
        bool first = true;
        auto done = expansion_.expand(name, macro, [&](const Lexeme &token, uint32_t line, uint16_t expansion) {
            if (token.form == Form::Padding) {
                apart_ = true;
                return;
            }
            // The blank before the name is its expansion's.
            emit(token, line, apart_ || first, expansion);
            apart_ = first = false;
        });
        if (!done)
            emit(name, name.line, apart_, 0);
        apart_ = done && (apart_ || first);
    }

    // gcc writes a token on a line of its own number if a blank or a macro's end is before it.
    void emit(const Lexeme &token, uint32_t line, bool apart, uint16_t expansion) {
        if (apart || token.flags & WHITE)
            line_ = line;
        static constexpr Kind KINDS[] = {Kind::Mark, Kind::Word, Kind::Number, Kind::Text, Kind::Pragma};
        const Kind kind = KINDS[static_cast<size_t>(token.form)];
        // A line of gcc's output that begins so would be a directive.
        if (kind == Kind::Mark && *token.text == '#')
            throw Unfit{"own-mark"};
        // The assembler would read a file that no key names.
        if (kind == Kind::Text && token.view().find(".inc") != std::string_view::npos)
            throw Unfit{"own-incbin"};
        refuse_prefix(kind);
        notes_.token(token);
        unit_.tokens.push_back({token.text, token.size, static_cast<uint32_t>(kind), kind == Kind::Text || kind == Kind::Number ? 0 : token.name, line_, file_, expansion});
    }

    // A text and a short word before it would be read as one from gcc's output, if no blank is between them.
    void refuse_prefix(Kind kind) const {
        if (kind == Kind::Text && !unit_.tokens.empty() && unit_.tokens.back().kind() == Kind::Word && unit_.tokens.back().size <= 2)
            throw Unfit{"own-prefix"};
    }

    void directive(uint32_t line) {
        scanner_.directive = true;
        const std::string_view word = scanner_.directive_word();
        const Directive what = directive_of(word);
        Progress &file = places_.back().progress;
        if (file.guarded == Guarded::Behind || (file.guarded == Guarded::Begins && what != Directive::Ifndef))
            file.guarded = Guarded::No;
        if (within_ && (what < Directive::If || what > Directive::Endif))
            throw Unfit{"own-arguments"};
        switch (what) {
        case Directive::Define: macros_.define(scanner_); break;
        case Directive::Undef: macros_.undefine(scanner_); break;
        case Directive::Include:
            notes_.end(progress(), true);
            return include();
        case Directive::If:
        case Directive::Ifdef:
        case Directive::Ifndef:
        case Directive::Elif:
        case Directive::Else:
        case Directive::Endif: groups_.read(what, file, within_); break;
        case Directive::Pragma: pragma(line); break;
        case Directive::Other:
            if (!word.empty())
                throw Unfit{word == "include_next" ? "own-include" : "own-directive"};
            scanner_.expect_end();
        }
        scanner_.directive = false;
    }

    void within_arguments() override {
        within_ = true;
        directive(0);
        within_ = false;
    }

    void include() {
        bool angled;
        std::string_view name = scanner_.header_name(angled);
        if (name.empty())
            name = computed_name(angled);
        else
            scanner_.expect_end();
        scanner_.directive = false;
        include(name, angled, places_.back().folder);
        is_between_ = true;
    }

    // What macros make of the rest of the line: a text without its quotes, or all between < and >, put together with its blanks.
    std::string_view computed_name(bool &angled) {
        std::string name;
        const Lexeme *token = next_expanded();
        angled = token->is('<');
        if (angled) {
            while (!(token = next_expanded())->is('>')) {
                if (token->form == Form::End)
                    throw Unfit{"own-include"};
                name.append(token->flags & WHITE ? " " : "").append(token->view());
            }
        } else if (token->form == Form::Text && token->view().front() == '"') {
            name = token->view().substr(1, token->size - 2);
        }
        if (name.empty() || name.find('\\') != name.npos || next_expanded()->form != Form::End)
            throw Unfit{"own-include"};
        expansion_.reuse();
        return texts_.copy(name);
    }

    const Lexeme *next_expanded() {
        const Lexeme *token;
        uint32_t line;
        do
            token = expansion_.next(line);
        while (token->form == Form::Padding);
        return token;
    }

    // Returns whether there is anything to read.
    bool include(std::string_view name, bool angled, std::string_view within) {
        bool beside;
        headers_.is_first = seen.size() == 1;
        Header *header = headers_.find(name, angled, within, beside);
        if (!header)
            throw Unfit{"own-include"};
        if (header->once)
            return false;
        // gcc knows a file by the name it was found by, and lists it for each.
        const std::pair<std::string_view, bool> found(name, beside);
        if (std::find(header->names.begin(), header->names.end(), found) == header->names.end()) {
            header->names.push_back(found);
            seen.push_back(header->path);
        }
        if (header->guard != NO_NAME && macros_.find(header->guard))
            return false;
        // gcc reads a file of #pragma once no second time by another path, nor a copy of the same age.
        for (auto *once : once_)
            if (once != header && once->text == header->text)
                throw Unfit{"own-once"};
        enter(*header);
        return true;
    }

    void note_once() {
        places_.back().header->once = true;
        once_.push_back(places_.back().header);
    }

    void pragma(uint32_t line) {
        std::string text = "#pragma";
        std::vector<std::string_view> words;
        bool expands = false;
        for (Lexeme token;;) {
            scanner_.next(token);
            if (token.form == Form::End)
                break;
            text.append(token.flags & WHITE || words.empty() ? " " : "").append(token.view());
            expands |= token.form == Form::Word && macros_.find(token.name);
            words.push_back(token.view());
        }
        if (words.size() == 1 && words[0] == "once" && places_.size() > 1 && !expands) {
            note_once();
            notes_.once();
            return;
        }
        const bool known = words.size() > 1 && ((words[0] == "GCC" && (words[1] == "diagnostic" || words[1] == "visibility")) || words[0] == "pack");
        if (!known || expands)
            throw Unfit{"own-pragma"};
        line_ = line;
        const std::string_view kept = texts_.copy(text);
        unit_.tokens.push_back({kept.data(), static_cast<uint32_t>(kept.size()), static_cast<uint32_t>(Kind::Pragma), 0, line_, file_});
    }

    const Plan &plan_;
    const PreprocessorFlags flags_;
    Unit &unit_;
    Names &names_;
    Memory &texts_;
    Macros macros_;
    Headers headers_;
    Expansion expansion_;
    Scanner &scanner_;
    Groups groups_;
    const Header *released_ = nullptr;  // that has the release
    std::vector<std::string_view> spelt_names_;
    std::vector<const Header *> once_;  // with #pragma once
    std::vector<Place> places_;
    Segments *segments_ = nullptr;
    SegmentNotes notes_;
    uint32_t line_ = 0;
    bool is_between_ = false;  // two segments
    bool within_ = false;  // a macro's arguments
    bool apart_ = false;  // a macro's expansion ended just now
    uint16_t file_ = 0;
};

// Gives the words of a unit numbers of its own, without those of all other files.
void number_names(Unit &unit, const Names &all) {
    std::vector<uint32_t> numbers(all.count(), NO_NAME);
    for (auto &token : unit.tokens) {
        if (token.kind() != Kind::Word)
            continue;
        uint32_t &number = numbers[token.name];
        if (number == NO_NAME)
            number = unit.names.number(all.word(token.name), all.hash(token.name));
        token.name = number;
    }
}

}

void keep_segments() { lasting().keeps_segments = true; }

void reuse(std::vector<Token> tokens) { lasting().room = std::move(tokens); }

std::string preprocess(const Plan &plan, const std::string &builtins, Unit &unit, std::vector<std::string_view> &files) {
    constexpr size_t MANY = 2 << 20;
    unit.memory = std::make_shared<Memory>();
    unit.tokens.swap(lasting().room);
    unit.tokens.clear();
    unit.tokens.reserve(MANY);
    try {
        Preprocessor preprocessor(plan, unit);
        preprocessor.run(builtins);
        files = std::move(preprocessor.seen);
        number_names(unit, lasting().names);
    } catch (const Unfit &unfit) {
        return unfit.reason;
    }
    return "";
}

}
