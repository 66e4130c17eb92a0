// SPDX-License-Identifier: GPL-2.0-or-later
// Stands before the compiler: answers from a store what has been compiled before, in all that matters to the code.
//
// Next to the program lies "front.conf": lines "compiler PATH", "identity HEX", "read FOLDER" (several), "write FOLDER".
// docs/design/builds.md says why an answer is the object that the compiler would have made.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "arguments.h"
#include "assembly.h"
#include "checks.h"
#include "digest.h"
#include "entry.h"
#include "lines.h"
#include "processes.h"
#include "reach.h"
#include "store.h"

namespace front {

namespace {

constexpr const char *VERSION = "kperflab-front 3";

struct Settings {
    std::string compiler, identity, write;
    std::vector<std::string> read;
};

class Compilation {
public:
    Compilation(const Settings &settings, Words arguments)
        : settings_(settings), store_(settings.read, settings.write), arguments_(std::move(arguments)),
          plan_(read_arguments(arguments_)), checks_(begun("check")) {}

    int run_all() {
        std::string why = plan_.reason.empty() ? attempt() : plan_.reason;
        if (why.empty())
            return 0;
        store_.count(why);
        temporary_.clear();
        Words command{settings_.compiler};
        command.insert(command.end(), arguments_.begin(), arguments_.end());
        execv(command[0].c_str(), pointers(command).data());
        std::perror(command[0].c_str());
        return 127;
    }

private:
    // Returns why the compiler must do it, or "" when the object is there.
    std::string attempt() {
        std::string why = read({"-ftrack-macro-expansion=0", "-dU"});
        if (why.empty() && !lines_hold(unit_, pieces_, kept_)) {
            store_.count("tracked");
            unit_ = {};
            pieces_ = {};
            why = read({});
        }
        if (!why.empty())
            return why;
        runs_ = runs_of(unit_, pieces_);
        key_ = hex(key()) + ".o";
        std::string data;
        if (!store_.get(key_, data))
            return compile();
        Entry entry;
        why = entry.unpack(data) ? check(entry) : "entry";
        if (why.empty())
            why = answer(entry);
        if (why.empty()) {
            store_.count("hit " + key_);
            return "";
        }
        store_.count("again-" + why);
        return compile();
    }

    // Preprocesses the file, and finds what its own text reaches.
    std::string read(const Words &more) {
        std::string why = preprocess(more);
        if (!why.empty())
            return why;
        read_tokens(unit_);
        why = unit_.reason.empty() ? split(unit_, pieces_) : unit_.reason;
        if (!why.empty())
            return why;
        kept_.assign(pieces_.all.size(), false);
        for (size_t number = 0; number < kept_.size(); number++)
            kept_[number] = pieces_.all[number].always;
        reach(unit_, pieces_, kept_);
        return "";
    }

    Words command(const Words &flags, const Words &more) const {
        Words words{settings_.compiler};
        words.insert(words.end(), flags.begin(), flags.end());
        words.insert(words.end(), more.begin(), more.end());
        return words;
    }

    // Whether a run of the compiler went well and said nothing.
    bool silent(int status) const {
        std::string said;
        return status == 0 && read_file(temporary_(".err"), said) && said.empty();
    }

    std::string preprocess(const Words &more) {
        Words flags = plan_.before;
        flags.insert(flags.end(), plan_.compile.begin(), plan_.compile.end());
        flags.insert(flags.end(), more.begin(), more.end());
        int status = run(command(flags, {"-E", "-o", temporary_(".i"), plan_.input}), temporary_(".out"), temporary_(".err"));
        if (!silent(status))
            return "preprocessor";
        return read_file(temporary_(".i"), unit_.text) ? "" : "temporary";
    }

    // A hash of what every compilation with these flags has in common.
    Blake2b begun(const char *what) const {
        Blake2b hash(32);
        hash.add_sized(VERSION).add_sized(what).add_sized(settings_.identity).add_sized(settings_.compiler);
        hash.add_number(plan_.compile.size());
        for (auto &flag : plan_.compile)
            hash.add_sized(flag);
        return hash;
    }

    std::string key() const {
        Blake2b hash = begun("object");
        hash.add_sized(plan_.input).add_sized(unit_.folder);
        char folder[4096];
        hash.add_sized(getcwd(folder, sizeof folder) ? folder : "");
        std::string content;
        for (size_t number = 0; number < kept_.size(); number++) {
            const Piece &piece = pieces_.all[number];
            // One that is not kept still has a say in the numbers of the variables after it.
            if (!kept_[number] && !piece.locals)
                continue;
            if (piece.code)
                add_text(content, unit_.files[piece.file].name);
            add_content(unit_, piece, content);
            hash.add_sized(content);
            content.clear();
        }
        return hash.bytes();
    }

    std::vector<Place> places() const {
        std::vector<Place> list;
        for (size_t number = 0; number < kept_.size(); number++) {
            const Piece &piece = pieces_.all[number];
            if (kept_[number] && piece.code)
                list.push_back({unit_.files[piece.file].name, piece.line, piece.last_line});
        }
        return list;
    }

    // Compiles what the file reaches, and what of the rest nobody has yet compiled.
    std::string compile() {
        auto fresh = unknown({});
        std::vector<bool> marked = kept_;
        mark(fresh, marked);
        for (size_t number = 0; number < marked.size(); number++)
            marked[number] = marked[number] || pieces_.all[number].locals;
        if (!write_text(marked))
            return "temporary";
        // The words for the assembler, as the compiler would call it.
        Words more{"-###", "-c", "-o", plan_.output, "-x", "cpp-output", temporary_(".k")};
        Entry entry;
        if (run(command(plan_.compile, more), temporary_(".out"), temporary_(".err")) || !assembler(entry.assembler))
            return "assembler";
        more = {"-gno-column-info", "-fpreprocessed", "-S", "-o", temporary_(".s"), "-x", "cpp-output", temporary_(".k")};
        if (!silent(run(command(plan_.compile, more), temporary_(".out"), temporary_(".err"))))
            return "diagnostics";
        std::string assembly;
        if (!read_file(temporary_(".s"), assembly))
            return "temporary";
        if (!plan_.lines)
            entry.loose = assembly;
        else if (!loosen(assembly, places(), entry.loose, entry.together))
            return "lines";
        std::string why = answer(entry);
        if (!why.empty())
            return why;
        for (auto &run : runs_)
            entry.runs.push_back(run.sum);
        std::sort(entry.runs.begin(), entry.runs.end());
        entry.runs.erase(std::unique(entry.runs.begin(), entry.runs.end()), entry.runs.end());
        keep(fresh);
        store_.count(store_.put(key_, entry.packed()) ? "miss" : "not-kept");
        return "";
    }

    bool assembler(Words &options) const {
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

    // What the file does not use, but the compiler would have read: it must be free of errors and warnings too.
    std::string check(const Entry &entry) {
        auto fresh = unknown(entry.runs);
        std::vector<bool> marked(pieces_.all.size());
        if (!mark(fresh, marked))
            return "";
        if (!write_text(marked))
            return "temporary";
        Words more{"-fsyntax-only", "-fpreprocessed", "-x", "cpp-output", temporary_(".k")};
        if (!silent(run(command(plan_.compile, more), temporary_(".out"), temporary_(".err"))))
            return "check";
        store_.count("checked");
        keep(fresh);
        return "";
    }

    // The runs that no compilation is known to have read, besides those of a list.
    std::vector<uint32_t> unknown(const Words &known) const {
        std::vector<uint32_t> list;
        for (uint32_t number = 0; number < runs_.size(); number++)
            if (!std::binary_search(known.begin(), known.end(), runs_[number].sum) && !store_.has(name_of(runs_[number])))
                list.push_back(number);
        return list;
    }

    std::string name_of(const Run &run) const { return hex(Blake2b(checks_).add(run.sum).bytes()) + ".k"; }

    void keep(const std::vector<uint32_t> &runs) const {
        for (auto number : runs)
            store_.put(name_of(runs_[number]), "good");
    }

    // Marks what a check of these runs must read, besides what is kept; returns whether there is anything.
    bool mark(const std::vector<uint32_t> &runs, std::vector<bool> &marked) const {
        bool any = false;
        for (auto run : runs)
            for (uint32_t number = runs_[run].first; number < runs_[run].end; number++)
                if (pieces_.all[number].header && !kept_[number])
                    any = marked[number] = true;
        for (size_t number = 0; number < marked.size(); number++)
            if (pieces_.all[number].pragma && pieces_.all[number].header)
                marked[number] = true;
        reach(unit_, pieces_, marked);
        return any;
    }

    // Writes the marked pieces as a preprocessed file.
    bool write_text(const std::vector<bool> &marked) const {
        std::string text = "# 0 \"" + std::string(unit_.files[0].name) + "\"\n";
        if (!unit_.folder.empty())
            text += "# 0 \"" + std::string(unit_.folder) + "\"\n";
        auto macro = unit_.macros.begin();
        for (size_t number = 0; number < marked.size(); number++) {
            if (!marked[number])
                continue;
            const Piece &piece = pieces_.all[number];
            const Token &first = unit_.tokens[piece.first], &last = unit_.tokens[piece.end - 1];
            auto &file = unit_.files[first.file];
            text += "# " + std::to_string(first.line) + " \"" + std::string(file.name) + (file.system ? "\" 3\n" : "\"\n");
            const char *at = first.text, *end = last.text + last.size;
            while (macro != unit_.macros.end() && macro->line.data() < at)
                macro++;
            for (; macro != unit_.macros.end() && macro->line.data() < end; macro++) {
                text.append(at, macro->line.data() - at);
                at = macro->line.data() + macro->line.size();
            }
            text.append(at, end - at).push_back('\n');
        }
        unlink(temporary_(".k").c_str());
        return write_file(temporary_(".k"), text);
    }

    std::string answer(const Entry &entry) {
        std::string assembly;
        if (plan_.lines) {
            std::vector<uint32_t> lines;
            for (auto &place : places())
                lines.push_back(place.line);
            for (auto &[one, other] : entry.together)
                if (one >= lines.size() || other >= lines.size() || lines[one] != lines[other])
                    return "lines";
            if (!fix(entry.loose, lines, assembly))
                return "entry";
        }
        unlink(temporary_(".s").c_str());
        if (!write_file(temporary_(".s"), plan_.lines ? assembly : entry.loose))
            return "temporary";
        Words words{"/usr/bin/as"};
        words.insert(words.end(), entry.assembler.begin(), entry.assembler.end());
        words.insert(words.end(), {"-o", plan_.output, temporary_(".s")});
        return silent(run(words, temporary_(".out"), temporary_(".err"))) ? "" : "assembler";
    }

    const Settings &settings_;
    Store store_;
    Words arguments_;
    Plan plan_;
    Blake2b checks_;
    Temporary temporary_;
    Unit unit_;
    Pieces pieces_;
    std::vector<bool> kept_;
    std::vector<Run> runs_;
    std::string key_;
};

bool read_settings(Settings &settings) {
    char self[4096];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self);
    if (size <= 0)
        return false;
    std::string path(self, size), text, line;
    if (!read_file(path.substr(0, path.rfind('/')) + "/front.conf", text))
        return false;
    std::istringstream lines(text);
    while (std::getline(lines, line)) {
        size_t space = line.find(' ');
        if (space == line.npos)
            return false;
        std::string word = line.substr(0, space), value = line.substr(space + 1);
        if (word == "compiler")
            settings.compiler = value;
        else if (word == "identity")
            settings.identity = value;
        else if (word == "read")
            settings.read.push_back(value);
        else if (word == "write")
            settings.write = value;
    }
    return !settings.compiler.empty() && !settings.identity.empty();
}

}

}

int main(int argc, char **argv) {
    front::Settings settings;
    if (!front::read_settings(settings)) {
        std::fputs("kperflab-front: front.conf is missing or names no compiler\n", stderr);
        return 127;
    }
    return front::Compilation(settings, {argv + 1, argv + argc}).run_all();
}
