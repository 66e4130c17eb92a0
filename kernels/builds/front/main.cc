// SPDX-License-Identifier: GPL-2.0-or-later
// Stands before the compiler: answers from a store what has been compiled before, in all that matters to the code.
//
// Next to the program lies "front.conf": lines "compiler PATH", "identity HEX", "read FOLDER" (several), "write FOLDER", and
// "prove N": one answer in so many is compiled all the same, and must have the same code.
// docs/design/builds.md says why an answer is the object that the compiler would have made.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <unordered_set>

#include "arguments.h"
#include "assembly.h"
#include "checks.h"
#include "digest.h"
#include "entry.h"
#include "lines.h"
#include "own_reading.h"
#include "processes.h"
#include "proof.h"
#include "reach.h"
#include "store.h"

namespace front {

namespace {

constexpr const char *VERSION = "kperflab-front 7";

struct Settings {
    std::string compiler, identity, write;
    std::vector<std::string> read;
    unsigned prove = 0;  // one answer in so many, none if 0
};

class Compilation {
public:
    Compilation(const Settings &settings, Words arguments)
        : settings_(settings), store_(settings.read, settings.write), arguments_(std::move(arguments)),
          plan_(read_arguments(arguments_)), checks_(begun("check")),
          own_(store_, plan_, temporary_, settings_.compiler, begun("agreed"), begun("differs"), begun("builtins")) {}

    int run_all() {
        std::string why = plan_.reason.empty() ? attempt() : plan_.reason;
        if (why.empty() && answered_ && is_drawn(settings_.prove))
            why = prove();
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
        std::string why = own_.trusted() ? attempt_alone() : own_.ask() ? read_own() : "own-builtins";
        if (answered_)
            return "";
        if (!why.empty())
            store_.count(why);
        return attempt_by_compiler();
    }

    std::string read_own() {
        Unit unit;
        std::string why = own_.read(unit);
        is_read_ = why.empty();
        take(is_read_ ? std::move(unit) : Unit(), is_read_);
        return why;
    }

    // Notes whether both readings of the file agree, once gcc's is there too; returns whether they always did.
    bool compare() {
        if (!is_compared_ && is_read_)
            own_.compare(is_followed_);
        is_compared_ = true;
        return own_.trusted();
    }

    // Compiles what was answered, and says which answer was another object's.
    std::string prove() {
        std::string text, why = preprocess({}, text);
        if (!why.empty())
            return why;
        Words more{"-fpreprocessed", "-c", "-o", temporary_(".o"), "-x", "cpp-output", temporary_(".i")};
        // Its warnings are another matter: of some, macros are spared.
        if (run(command(plan_.compile, more), temporary_(".out"), temporary_(".err")))
            return "diagnostics";
        if (!same_code(plan_.output, temporary_(".o"), temporary_))
            return "differs " + key_;
        store_.count("proven");
        return "";
    }

    // Without a process but the assembler: "" when the store answers and nothing is left to check.
    std::string attempt_alone() {
        std::string why = read_own();
        if (why.empty())
            why = find_kept();
        Entry entry;
        std::string data;
        if (!why.empty())
            return why;
        key_ = hex(key()) + ".o";
        if (!store_.get(key_, data)) {
            key_ = expansions_key();
            if (!store_.get(key_, data))
                return "own-unknown";
        }
        if (!entry.unpack(data) || !all_used() || !unread(unknown(entry.runs), entry.runs).empty())
            return "own-check";
        if (!own_.write_dependencies())
            return "own-dependencies";
        why = answer(entry);
        if (why.empty()) {
            store_.count("own-reading");
            answered_ = true;
            store_.count("hit " + key_);
        }
        return why;
    }

    std::string attempt_by_compiler() {
        std::string tracked = hex(begun("tracked").add_sized(plan_.input).bytes()) + ".k", why;
        bool again = store_.has(tracked);
        if (!again) {
            why = read({"-ftrack-macro-expansion=0", "-dU"});
            again = why.empty() && !lines_hold(unit_, pieces_, kept_);
            if (again)
                store_.put(tracked, "tracked");
        }
        if (again) {
            store_.count("tracked");
            why = read({});
        }
        if (!why.empty())
            return why;
        const std::string plain = key_ = hex(key()) + ".o";
        std::string data;
        compare();
        if (!store_.get(key_, data)) {
            const std::string spared = is_followed_ && compare() ? expansions_key() : "";
            if (spared.empty() || !store_.get(spared, data))
                return compile();
            key_ = spared;
        }
        Entry entry;
        why = entry.unpack(data) ? check(entry) : "entry";
        if (why.empty())
            why = answer(entry);
        if (why.empty()) {
            answered_ = true;
            store_.count("hit " + key_);
            return "";
        }
        store_.count("again-" + why);
        key_ = plain;
        return compile();
    }

    // Preprocesses the file, and finds what its own text reaches. Our own reading stays where gcc's is the same.
    std::string read(const Words &more) {
        std::string text, why = preprocess(more, text);
        if (!why.empty())
            return why;
        if (is_read_ && !is_ours_)
            take(std::move(ours_), true);
        unit_.text = std::move(text);
        is_followed_ = is_ours_ && follow_tokens(unit_);
        if (is_followed_)
            return is_split_ ? "" : find_kept();
        Unit theirs;
        theirs.text = std::move(unit_.text);
        if (is_ours_)
            ours_ = std::move(unit_);
        take(std::move(theirs), false);
        read_tokens(unit_);
        return unit_.reason.empty() ? find_kept() : unit_.reason;
    }

    void take(Unit unit, bool ours) {
        unit_ = std::move(unit);
        unit_.reason.clear();
        pieces_ = {};
        is_ours_ = ours;
        is_split_ = false;
    }

    std::string find_kept() {
        std::string why = split(unit_, pieces_);
        if (!why.empty())
            return why;
        kept_.assign(pieces_.all.size(), false);
        for (size_t number = 0; number < kept_.size(); number++)
            kept_[number] = pieces_.all[number].always;
        reach(unit_, pieces_, kept_);
        reading_ = read_runs(unit_, pieces_);
        is_split_ = true;
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

    std::string preprocess(const Words &more, std::string &text) const {
        Words flags = plan_.before;
        flags.insert(flags.end(), plan_.compile.begin(), plan_.compile.end());
        flags.insert(flags.end(), more.begin(), more.end());
        int status = run(command(flags, {"-E", "-o", temporary_(".i"), plan_.input}), temporary_(".out"), temporary_(".err"));
        if (!silent(status))
            return "preprocessor";
        return read_file(temporary_(".i"), text) ? "" : "temporary";
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

    // The key of what gcc is silent about only where macros brought these tokens and no others.
    std::string expansions_key() const {
        std::string expanded;
        for (size_t number = 0; number < kept_.size(); number++) {
            const Piece &piece = pieces_.all[number];
            for (uint32_t at = piece.first; (kept_[number] || piece.locals) && at < piece.end; at++)
                expanded.push_back(unit_.tokens[at].expanded ? '1' : '0');
        }
        return hex(begun("expansions").add_sized(key_).add_sized(expanded).bytes()) + ".o";
    }

    std::vector<Place> places() const {
        std::vector<Place> list;
        for (size_t number = 0; number < kept_.size(); number++) {
            const Piece &piece = pieces_.all[number];
            if (kept_[number] && piece.code && !piece.mixed)
                list.push_back({unit_.files[piece.file].name, piece.line, piece.last_line});
            else if (kept_[number] && piece.code)
                add_places(piece, list);
        }
        return list;
    }

    // One for each file of a piece, as they come: the piece's key names their lines.
    void add_places(const Piece &piece, std::vector<Place> &list) const {
        const size_t first = list.size();
        for (uint32_t at = piece.first; at < piece.end; at++) {
            const Token &token = unit_.tokens[at];
            auto name = unit_.files[token.file].name;
            auto place = std::find_if(list.begin() + first, list.end(), [&](auto &one) { return one.file == name; });
            if (place == list.end())
                place = list.insert(place, {name, token.line, token.line});
            place->line = std::min(place->line, token.line);
            place->last_line = std::max(place->last_line, token.line);
        }
    }

    // Compiles what the file reaches, and what of the rest nobody has yet compiled.
    std::string compile() {
        auto fresh = unknown({});
        std::vector<bool> marked = kept_;
        for (size_t number = 0; number < marked.size(); number++)
            marked[number] = marked[number] || pieces_.all[number].locals;
        std::vector<uint32_t> asked;
        for (auto run : fresh)
            for (uint32_t number = reading_.runs[run].first; number < reading_.runs[run].end; number++)
                if (is_unused(number))
                    asked.push_back(number);
        mark(asked, marked);
        if (!write_text(marked))
            return "temporary";
        Entry entry;
        if (!assembler(entry.assembler))
            return "assembler";
        Words more{"-gno-column-info", "-fpreprocessed", "-S", "-o", temporary_(".s"), "-x", "cpp-output", temporary_(".k")};
        const int status = run(command(plan_.compile, more), temporary_(".out"), temporary_(".err"));
        // gcc spares what macros made some warnings. Then the source itself is compiled, too.
        const bool spared = !silent(status);
        if (spared && (status || !is_followed_ || !compare() || !is_silent_source()))
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
        if (spared && !same_code(plan_.output, temporary_(".o"), temporary_))
            return "diagnostics";
        if (spared) {
            key_ = expansions_key();
            // The key says nothing of the rest of the headers: it stays to be checked.
            for (auto run : fresh)
                reading_.runs[run].sum.clear();
            fresh.clear();
        }
        for (auto &run : reading_.runs)
            if (!run.sum.empty())
                entry.runs.push_back(run.sum);
        std::sort(entry.runs.begin(), entry.runs.end());
        entry.runs.erase(std::unique(entry.runs.begin(), entry.runs.end()), entry.runs.end());
        keep(fresh);
        store_.count(store_.put(key_, entry.packed()) ? "miss" : "not-kept");
        return "";
    }

    // Compiles the source to a temporary object.
    bool is_silent_source() const {
        Words flags = plan_.before;
        flags.insert(flags.end(), plan_.compile.begin(), plan_.compile.end());
        return silent(run(command(flags, {"-c", "-o", temporary_(".o"), plan_.input}), temporary_(".out"), temporary_(".err")));
    }

    // The words for the assembler, as the compiler would call it: asked once for these flags.
    bool assembler(Words &options) const {
        const std::string name = hex(begun("assembler").bytes()) + ".k";
        std::string kept, option;
        if (store_.get(name, kept)) {
            std::istringstream lines(kept);
            while (std::getline(lines, option))
                options.push_back(option);
            return true;
        }
        Words more{"-###", "-c", "-o", plan_.output, "-x", "cpp-output", temporary_(".k")};
        if (run(command(plan_.compile, more), temporary_(".out"), temporary_(".err")) || !read_assembler(options))
            return false;
        for (auto &word : options)
            kept += word + '\n';
        store_.put(name, kept);
        return true;
    }

    bool read_assembler(Words &options) const {
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
        if (!all_used())
            return "idle";
        auto fresh = unknown(entry.runs);
        auto asked = unread(fresh, entry.runs);
        if (asked.empty())
            return "";
        std::vector<bool> marked(pieces_.all.size());
        mark(asked, marked);
        if (!write_text(marked))
            return "temporary";
        Words more{"-fsyntax-only", "-fpreprocessed", "-x", "cpp-output", temporary_(".k")};
        if (!silent(run(command(plan_.compile, more), temporary_(".out"), temporary_(".err"))))
            return "check";
        store_.count("checked");
        for (auto number : asked)
            store_.put(name_of(reading_.sums[number]), "good");
        keep(fresh);
        return "";
    }

    // Whether something uses each thing that must be used.
    bool all_used() const {
        for (auto name : idle(kept_))
            if (!reading_.uses[name])
                return false;
        return true;
    }

    // The pieces of these runs that no compilation is known to have read, in these headers as they were before or elsewhere.
    std::vector<uint32_t> unread(const std::vector<uint32_t> &runs, const Words &before) const {
        std::vector<uint32_t> list;
        for (auto run : runs) {
            auto &[first, end, sum] = reading_.runs[run];
            std::unordered_set<std::string> known;
            auto old = std::lower_bound(before.begin(), before.end(), sum.substr(0, PATH));
            for (std::string sums; old != before.end() && old->compare(0, PATH, sum, 0, PATH) == 0; ++old)
                if (store_.get(name_of(*old), sums))
                    for (size_t at = 0; at + SUM <= sums.size(); at += SUM)
                        known.insert(sums.substr(at, SUM));
            for (uint32_t number = first; number < end; number++)
                if (is_unused(number) && !known.count(reading_.sums[number]) && !store_.has(name_of(reading_.sums[number])))
                    list.push_back(number);
        }
        return list;
    }

    bool is_unused(uint32_t number) const { return pieces_.all[number].header && !kept_[number]; }

    // The runs that no compilation is known to have read, besides those of a list.
    std::vector<uint32_t> unknown(const Words &known) const {
        std::vector<uint32_t> list;
        for (uint32_t number = 0; number < reading_.runs.size(); number++)
            if (!std::binary_search(known.begin(), known.end(), reading_.runs[number].sum) && !store_.has(name_of(reading_.runs[number].sum)))
                list.push_back(number);
        return list;
    }

    // What headers define for this file alone, which the compiler wants to be used by something, be it by what is not.
    std::vector<uint32_t> idle(const std::vector<bool> &marked) const {
        std::vector<uint32_t> names;
        for (size_t number = 0; number < marked.size(); number++) {
            const Piece &piece = pieces_.all[number];
            for (uint32_t at = piece.names_at; marked[number] && piece.idle && piece.header && at < piece.names_end; at++)
                if (pieces_.how[at] == Declares::Ordinary)
                    names.push_back(pieces_.names[at]);
        }
        return names;
    }

    std::string name_of(const std::string &sum) const { return hex(Blake2b(checks_).add_sized(sum).bytes()) + ".k"; }

    void keep(const std::vector<uint32_t> &runs) const {
        for (auto run : runs) {
            std::string sums;
            for (uint32_t number = reading_.runs[run].first; number < reading_.runs[run].end; number++)
                sums += reading_.sums[number];
            store_.put(name_of(reading_.runs[run].sum), sums);
        }
    }

    // Marks these pieces and the pragmas, and what they and the marked reach.
    void mark(const std::vector<uint32_t> &numbers, std::vector<bool> &marked) const {
        for (auto number : numbers)
            marked[number] = true;
        for (size_t number = 0; number < marked.size(); number++)
            marked[number] = marked[number] || (pieces_.all[number].pragma && pieces_.all[number].header);
        reach(unit_, pieces_, marked);
    }

    // Writes the marked pieces as a preprocessed file.
    bool write_text(const std::vector<bool> &marked) const {
        std::string text;
        text.reserve(unit_.text.size());
        text += "# 0 \"" + std::string(unit_.files[0].name) + "\"\n";
        if (!unit_.folder.empty())
            text += "# 0 \"" + std::string(unit_.folder) + "\"\n";
        auto macro = unit_.macros.begin();
        for (size_t number = 0; number < marked.size(); number++) {
            if (!marked[number])
                continue;
            const Piece &piece = pieces_.all[number];
            const Token &first = unit_.tokens[piece.first];
            auto &file = unit_.files[first.file];
            text += "# " + std::to_string(first.line) + " \"" + std::string(file.name) + (file.system ? "\" 3\n" : "\"\n");
            const char *at = unit_.place(piece.first), *end = unit_.place(piece.end - 1) + unit_.tokens[piece.end - 1].size;
            while (macro != unit_.macros.end() && macro->line.data() < at)
                macro++;
            for (; macro != unit_.macros.end() && macro->line.data() < end; macro++) {
                text.append(at, macro->line.data() - at);
                at = macro->line.data() + macro->line.size();
            }
            text.append(at, end - at).push_back('\n');
        }
        // Who used them may not be here: nothing comes of an inline function that does.
        std::string uses;
        for (auto name : idle(marked))
            if (reading_.uses[name])
                uses += "(void)(" + std::string(unit_.names.word(name)) + ");";
        if (!uses.empty())
            text += "static inline __attribute__((unused)) void kperflab_front_uses(void){" + uses + "}\n";
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
    OwnReading own_;
    bool is_read_ = false;      // by our own preprocessor
    bool is_ours_ = false;      // what unit_ is
    bool is_followed_ = false;  // gcc's reading is the same
    bool is_split_ = false;     // into pieces_
    bool is_compared_ = false;
    bool answered_ = false;
    Unit unit_;
    Unit ours_;  // our own reading, where unit_ is gcc's
    Pieces pieces_;
    std::vector<bool> kept_;
    Reading reading_;
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
        else if (word == "prove")
            settings.prove = std::strtoul(value.c_str(), nullptr, 10);
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
