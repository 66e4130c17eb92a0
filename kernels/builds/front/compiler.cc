// SPDX-License-Identifier: GPL-2.0-or-later
#include "compiler.h"

#include <algorithm>
#include <sstream>

namespace front {

namespace {

Words both(Words words, const Words &more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

}

Blake2b Compiler::begun(const char *what) const {
    Blake2b hash(32);
    hash.add_sized(what).add_sized(settings_.identity).add_sized(settings_.compiler);
    hash.add_number(plan_.compile.size());
    for (auto &flag : plan_.compile)
        hash.add_sized(flag);
    return hash;
}

int Compiler::call(const Words &flags, const Words &more) const {
    return run(both(both({settings_.compiler}, flags), more), temporary_(".out"), temporary_(".err"));
}

bool Compiler::silent(int status) const {
    std::string said;
    return status == 0 && read_file(temporary_(".err"), said) && said.empty();
}

bool Compiler::complains_of_expansions() const {
    // Of -Wint-in-bool-context gcc spares what a macro's definition has, but not its arguments; of others a comment.
    static constexpr std::string_view SPARED[] = {"address", "logical-op", "tautological-compare", "duplicated-branches", "duplicate-decl-specifier",
                                                  "unused-variable", "unused-function"};
    std::string said;
    if (!read_file(temporary_(".err"), said))
        return false;
    bool any = false;
    for (size_t at = 0, end; at < said.size(); at = end + 1) {
        end = std::min(said.find('\n', at), said.size());
        const std::string_view line = std::string_view(said).substr(at, end - at);
        const bool named = std::any_of(std::begin(SPARED), std::end(SPARED), [&](auto option) {
            const std::string mark = "[-W" + std::string(option) + "]";
            return line.size() > mark.size() && line.substr(line.size() - mark.size()) == mark;
        });
        if (!named && line.find(": warning: ") != line.npos)
            return false;
        any |= named;
    }
    return any;
}

std::string Compiler::preprocess(const Words &more, std::string &text) const {
    // Where gcc would read a precompiled header, a pragma says so.
    const Words flags = both(both(plan_.before, plan_.compile), both(more, {"-fpch-preprocess"}));
    if (!silent(call(flags, {"-E", "-o", temporary_(".i"), plan_.input})))
        return "preprocessor";
    if (!read_file(temporary_(".i"), text))
        return "temporary";
    return text.find("#pragma GCC pch_preprocess") == text.npos ? "" : "precompiled";
}

bool Compiler::write_text(const std::string &text) const {
    unlink(temporary_(".k").c_str());
    return write_file(temporary_(".k"), text);
}

bool Compiler::accepts(const std::string &text) const {
    return write_text(text) && silent(call(plan_.compile, {"-fsyntax-only", "-fpreprocessed", "-x", "cpp-output", temporary_(".k")}));
}

std::string Compiler::tree(const std::string &text) const {
    std::string tree;
    unlink(temporary_(".tree").c_str());
    const bool good = write_text(text) && silent(call(plan_.compile, {"-fsyntax-only", "-fdump-tree-original=" + temporary_(".tree"), "-fpreprocessed", "-x",
                                                                      "cpp-output", temporary_(".k")}));
    return good && read_file(temporary_(".tree"), tree) ? tree : "";
}

int Compiler::compile(const std::string &text) const {
    if (!write_text(text))
        return -1;
    return call(plan_.compile,
                {"-gno-column-info", "-fpreprocessed", "-S", "-o", temporary_(".s"), "-x", "cpp-output", temporary_(".k")});
}

int Compiler::compile_source() const { return call(both(plan_.before, plan_.compile), {"-c", "-o", temporary_(".o"), plan_.input}); }

int Compiler::compile_preprocessed() const {
    return call(plan_.compile, {"-fpreprocessed", "-c", "-o", temporary_(".o"), "-x", "cpp-output", temporary_(".i")});
}

bool Compiler::assembler(Words &options) const {
    const std::string name = hex(begun("assembler").bytes()) + ".k";
    std::string kept, option;
    if (store_.get(name, kept)) {
        std::istringstream lines(kept);
        while (std::getline(lines, option))
            options.push_back(option);
        return true;
    }
    if (call(plan_.compile, {"-###", "-c", "-o", plan_.output, "-x", "cpp-output", temporary_(".k")}) || !read_assembler(options))
        return false;
    for (auto &word : options)
        kept += word + '\n';
    store_.put(name, kept);
    return true;
}

bool Compiler::read_assembler(Words &options) const {
    std::string said, line, word;
    if (!read_file(temporary_(".err"), said))
        return false;
    std::istringstream lines(said);
    while (std::getline(lines, line)) {
        if (line.empty() || line[0] != ' ' || line.find('\'') != line.npos || line.find('\\') != line.npos)
            continue;
        std::istringstream words(line);
        words >> word;
        if (word != "as" && (word.size() < 3 || word.substr(word.size() - 3) != "/as"))
            continue;
        while (words >> word) {
            if (word.find('"') != word.npos)
                return false;
            if (word == "-o" || word == "-I")
                words >> word;
            else if (word[0] == '-')
                options.push_back(word);
        }
        return true;
    }
    return false;
}

std::string Compiler::assemble(const Words &options, const std::string &assembly) const {
    unlink(temporary_(".s").c_str());
    if (!write_file(temporary_(".s"), assembly))
        return "temporary";
    const Words words = both(both({"/usr/bin/as"}, options), {"-o", plan_.output, temporary_(".s")});
    return silent(run(words, temporary_(".out"), temporary_(".err"))) ? "" : "assembler";
}

}
