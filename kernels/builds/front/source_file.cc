// SPDX-License-Identifier: GPL-2.0-or-later
#include "source_file.h"

#include <algorithm>

#include "indentation.h"
#include "lines.h"
#include "preprocessor.h"
#include "release.h"

namespace front {

namespace {

// Options by which the preprocessor complains, some of them: what begins so.
constexpr std::string_view PREPROCESSORS[] = {"\"-Wundef", "\"-Wunused-macros", "\"-Wtraditional", "\"-Wtrigraphs", "\"-Wcomment", "\"-Wdate-time", "\"-Wlong-long",
                                              "\"-Wvariadic", "\"-Wexpansion", "\"-Wendif", "\"-Wmultichar", "\"-Wnormalized", "\"-Wbidi", "\"-Wbuiltin-macro",
                                              "\"-Wcpp", "\"-Wdeprecated\"", "\"-Wc90", "\"-Wc99", "\"-Wc11", "\"-Wpedantic", "\"-Wall", "\"-Wextra", "\"-Wsystem"};

// Whether a pragma changes which macros are defined, or of what the preprocessor complains: gcc -E 12.2 does not heed it, gcc -c does.
bool has_unheeded_pragma(const Unit &unit) {
    for (auto &token : unit.tokens) {
        if (token.kind() != Kind::Pragma)
            continue;
        const std::string_view text = token.view();
        auto has = [&](std::string_view words) { return text.find(words) != text.npos; };
        if (has("GCC target") || has("GCC optimize") || has("GCC pop_options") || has("GCC reset_options"))
            return true;
        if ((has("GCC diagnostic warning") || has("GCC diagnostic error")) && std::any_of(std::begin(PREPROCESSORS), std::end(PREPROCESSORS), has))
            return true;
    }
    return false;
}

// Whether the code may have its own line, column or file, which no token shows. Of the file flags tell that no text is compiled with.
bool asks_for_place(const Unit &unit) {
    for (auto word : {"__builtin_LINE", "__builtin_COLUMN", "__builtin_FILE"})
        if (const int64_t name = unit.names.find(word); name >= 0)
            for (auto &token : unit.tokens)
                if (token.kind() == Kind::Word && token.name == name)
                    return true;
    return false;
}

// Whether a name stands in an attribute in several texts or with escapes: alias("fo" "o"). What it reaches is found by its letters.
bool has_name_in_parts(const Unit &unit) {
    const auto &tokens = unit.tokens;
    for (uint32_t at = 0; at < tokens.size(); at++)
        if (is_other_name(tokens, at) && (tokens[at].view().find('\\') != std::string_view::npos || at + 1 == tokens.size() || !tokens[at + 1].is(')')))
            return true;
    return false;
}

// Whether a function is compiled by flags of its own, which may be those that pointers to different structures never meet by.
bool has_own_flags(const Unit &unit) {
    for (auto word : {"optimize", "__optimize__"})
        if (const int64_t name = unit.names.find(word); name >= 0)
            for (size_t at = 0; at + 2 < unit.tokens.size(); at++)
                if (unit.tokens[at].kind() == Kind::Word && unit.tokens[at].name == name && unit.tokens[at + 1].is('(') &&
                    (unit.tokens[at + 2].kind() == Kind::Text || unit.tokens[at + 2].kind() == Kind::Number))
                    return true;
    return false;
}

const char *refusal_of(const Unit &unit, const Pieces &pieces) {
    return asks_for_place(unit)         ? "place"
           : has_unheeded_pragma(unit)  ? "pragma"
           : has_name_in_parts(unit)    ? "alias"
           : may_mislead(unit, pieces)  ? "indentation"
                                        : "";
}

}

SourceFile::SourceFile(const Plan &plan, const Store &store, const Temporary &temporary, const Compiler &compiler, const std::string &program)
    : plan_(plan), store_(store), compiler_(compiler), layouts_(store, compiler, temporary),
      own_(store, plan, temporary, program, compiler.begun("agreed"), compiler.begun("differs"), compiler.begun("builtins")) {}

SourceFile::~SourceFile() { reuse(std::move(file.unit.tokens)); }

std::string SourceFile::read_own() {
    Unit unit;
    std::string why = own_.read(unit);
    is_read_ = is_ours_ = why.empty();
    file.take(is_read_ ? std::move(unit) : Unit());
    return why;
}

std::string SourceFile::read_by_compiler() {
    std::string tracked = hex(compiler_.begun("tracked").add_sized(plan_.input).bytes()) + ".k", why;
    bool again = store_.has(tracked);
    if (!again) {
        why = read({"-ftrack-macro-expansion=0", "-dU"});
        again = why.empty() && !lines_hold(file.unit, file.pieces, file.kept);
        if (again)
            store_.put(tracked, "tracked");
    }
    if (again) {
        store_.count("tracked");
        why = read({});
    }
    return why;
}

// Our own reading stays where gcc's is the same.
std::string SourceFile::read(const Words &more) {
    std::string text, why = compiler_.preprocess(more, text);
    if (!why.empty())
        return why;
    if (is_read_ && !is_ours_) {
        file.take(std::move(ours_));
        is_ours_ = true;
    }
    const std::string release = is_ours_ ? file.unit.release : "";
    if (!release.empty() && text.find(PLACEHOLDER) != text.npos)
        return "release";
    if (!release.empty())
        replace_all(text, release, PLACEHOLDER);
    file.unit.text = std::move(text);
    is_gccs_ = true;
    const uint32_t names = file.unit.names.count();
    is_followed_ = is_ours_ && follow_tokens(file.unit);
    // gcc tells of macros, whose names may be none of a token.
    if (is_followed_)
        return file.is_split() && names == file.unit.names.count() ? refusal_ : find_kept();
    Unit theirs;
    theirs.release = release;
    theirs.text = std::move(file.unit.text);
    if (is_ours_)
        ours_ = std::move(file.unit);
    is_ours_ = false;
    file.take(std::move(theirs));
    read_tokens(file.unit);
    return file.unit.reason.empty() ? find_kept() : file.unit.reason;
}

std::string SourceFile::find_kept() {
    const std::string why = file.find_kept();
    if (!why.empty())
        return why;
    refusal_ = refusal_of(file.unit, file.pieces);
    if (!refusal_.empty() || !file.has_hollow())
        return refusal_;
    const bool aliases = plan_.aliases && !has_own_flags(file.unit);
    if (aliases)
        layouts_.find(file);
    if (!aliases || store_.has(mentioned_name()))
        file.keep_mentioned();
    return "";
}

bool SourceFile::compare() {
    if (!is_compared_ && is_gccs_ && is_read_)
        own_.compare(is_followed_);
    is_compared_ = is_gccs_;
    return own_.trusted();
}

void SourceFile::keep_mentioned() {
    store_.put(mentioned_name(), "mentioned");
    store_.count("mentioned");
    file.keep_mentioned();
}

// Of a file of the store that says that pieces and outlines are too few, whatever numbers the outlines have.
std::string SourceFile::mentioned_name() const { return hex(compiler_.begun("mentioned").add_sized(digest(Numbers::None)).bytes()) + ".k"; }

std::string SourceFile::accepted_name() const { return hex(compiler_.begun("accepted").add_sized(digest(Numbers::None)).bytes()) + ".k"; }

std::string SourceFile::spared_name() const { return hex(compiler_.begun("spared").add_sized(plan_.input).bytes()) + ".k"; }

std::string SourceFile::bound_name() const { return hex(compiler_.begun("bound").add_sized(digest()).bytes()) + ".k"; }

std::string SourceFile::key() const { return hex(digest()) + ".o"; }

std::string SourceFile::resized_name() const { return hex(compiler_.begun("resized").add_sized(digest(Numbers::NoSizes)).bytes()) + ".k"; }

std::string SourceFile::expansions_key(const std::string &key) const {
    return hex(compiler_.begun("expansions").add_sized(key).add_sized(file.expanded()).bytes()) + ".o";
}

std::string SourceFile::digest(Numbers numbers) const {
    Blake2b hash = compiler_.begun("object");
    hash.add_sized(plan_.input).add_sized(file.unit.folder);
    char folder[4096];
    hash.add_sized(getcwd(folder, sizeof folder) ? folder : "");
    // Where they stand for it, these characters are something else than elsewhere.
    hash.add_sized(file.unit.release.empty() ? "" : "release");
    file.add_kept(hash, numbers);
    return hash.bytes();
}

}
