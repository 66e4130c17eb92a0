// SPDX-License-Identifier: GPL-2.0-or-later
#include "compilation.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "assembly.h"
#include "dependencies.h"
#include "digest.h"
#include "lines.h"
#include "proof.h"

namespace front {

namespace {

const std::string UNKNOWN = "unknown";

}

Compilation::Compilation(const Settings &settings, Words arguments)
    : settings_(settings), store_(settings.read, settings.write), arguments_(std::move(arguments)), plan_(read_arguments(arguments_)),
      known_(store_, begun("check")),
      own_(store_, plan_, temporary_, settings_.compiler, begun("agreed"), begun("differs"), begun("builtins")),
      beside_(dependency_file(plan_).empty() ? "" : plan_.output) {}

int Compilation::make() {
    const bool asked = plan_.reason.empty() && Beside::is_proof(beside_.made_of());
    std::string why = plan_.reason.empty() ? take_ready() : plan_.reason;
    beside_.clear();
    if (plan_.reason.empty() && !why.empty())
        why = attempt();
    if (why.empty() && is_answered_ && (asked || is_drawn(settings_.prove)))
        why = prove();
    std::string list;
    if (why.empty()) {
        if (read_file(dependency_file(plan_), list))
            beside_.keep_made_of(made_of(assembled_, list));
        return 0;
    }
    store_.count(why);
    temporary_.clear();
    Words command{settings_.compiler};
    command.insert(command.end(), arguments_.begin(), arguments_.end());
    execv(command[0].c_str(), pointers(command).data());
    std::perror(command[0].c_str());
    return 127;
}

Swept Compilation::sweep(const std::string &before, bool compiles) {
    Entry entry;
    Ready answer;
    if (!plan_.reason.empty() || !own_.trusted())
        return Swept::Left;
    std::string why = find_alone(entry);
    if (why == "own-check" || (why == "own-unknown" && compiles)) {
        // Of a changed header that nobody uses, the first file that includes it has it checked for all of them.
        store_.count(why);
        why = read_by_compiler();
        if (why.empty())
            why = find_read(entry);
    }
    const bool is_known = why.empty();
    if (why == UNKNOWN && compiles) {
        // make would have the file read once more to do the same.
        Fresh fresh;
        key_ = hex(key()) + ".o";
        why = compile_to(entry, fresh);
        if (fresh.failed)
            return Swept::Failed;
        if (why.empty() && fresh.spared)
            return Swept::Left;
        if (why.empty())
            keep(entry, fresh);
    }
    if (!why.empty() || !own_.trusted() || !own_.dependencies_text(answer.dependencies))
        return Swept::Left;
    if (is_known && is_drawn(settings_.prove)) {
        beside_.ask_for_proof();
        return Swept::Drawn;
    }
    if (!lines_of_today(entry, answer.assembly).empty())
        return Swept::Left;
    if (made_of(assembly_sum(entry.assembler, answer.assembly), answer.dependencies) == before) {
        store_.count((is_known ? "same " : "unchanged ") + key_);
        return Swept::Same;
    }
    answer.arguments = arguments_sum();
    answer.files = sum_of_files(answer.dependencies);
    answer.key = is_known ? key_ : "";
    answer.assembler = entry.assembler;
    return !answer.files.empty() && beside_.keep_ready(answer) ? Swept::Ready : Swept::Left;
}

// Takes an answer that a sweep left, if all that it was read from is as it was.
std::string Compilation::take_ready() {
    Ready answer;
    if (!beside_.ready(answer) || answer.arguments != arguments_sum() || answer.files.empty() || answer.files != sum_of_files(answer.dependencies))
        return "none";
    const std::string list = dependency_file(plan_);
    unlink(list.c_str());
    if (!write_file(list, answer.dependencies))
        return "none";
    key_ = answer.key;
    const std::string why = assemble(answer.assembler, answer.assembly);
    if (why.empty()) {
        store_.count("ready");
        if (!key_.empty())
            answered(true);
    }
    return why;
}

// Returns why the compiler must do it, or "" when the object is there.
std::string Compilation::attempt() {
    std::string why = own_.trusted() ? attempt_alone() : own_.ask() ? read_own() : "own-builtins";
    if (is_answered_)
        return "";
    if (!why.empty())
        store_.count(why);
    return attempt_by_compiler();
}

std::string Compilation::attempt_alone() {
    Entry entry;
    std::string why = find_alone(entry);
    if (why.empty() && !own_.write_dependencies())
        why = "own-dependencies";
    if (why.empty())
        why = answer(entry);
    if (why.empty())
        answered(true);
    return why;
}

void Compilation::answered(bool alone) {
    is_answered_ = true;
    if (alone)
        store_.count("own-reading");
    store_.count("hit " + key_);
}

// Without a process: "" when the store answers and nothing is left to check.
std::string Compilation::find_alone(Entry &entry) {
    std::string why = read_own(), data;
    if (why.empty())
        why = find_kept();
    if (!why.empty())
        return why;
    key_ = hex(key()) + ".o";
    if (!store_.get(key_, data)) {
        key_ = expansions_key();
        if (!store_.get(key_, data))
            return "own-unknown";
    }
    if (!entry.unpack(data) || !file_.all_used() || !known_.unread(file_, known_.unknown(file_.reading, entry.runs), entry.runs).empty())
        return "own-check";
    return "";
}

std::string Compilation::attempt_by_compiler() {
    Entry entry;
    std::string why = read_by_compiler();
    if (!why.empty())
        return why;
    const std::string plain = hex(key()) + ".o";
    why = find_read(entry);
    if (why.empty())
        why = answer(entry);
    if (why.empty()) {
        answered(false);
        return "";
    }
    if (why != UNKNOWN)
        store_.count("again-" + why);
    key_ = plain;
    return compile();
}

// Preprocesses the file in the cheap way if it can, and finds what its own text reaches.
std::string Compilation::read_by_compiler() {
    std::string tracked = hex(begun("tracked").add_sized(plan_.input).bytes()) + ".k", why;
    bool again = store_.has(tracked);
    if (!again) {
        why = read({"-ftrack-macro-expansion=0", "-dU"});
        again = why.empty() && !lines_hold(file_.unit, file_.pieces, file_.kept);
        if (again)
            store_.put(tracked, "tracked");
    }
    if (again) {
        store_.count("tracked");
        why = read({});
    }
    return why;
}

// Of what gcc read: "" when the store answers, and what is left to check is right.
std::string Compilation::find_read(Entry &entry) {
    std::string data;
    key_ = hex(key()) + ".o";
    compare();
    if (!store_.get(key_, data)) {
        key_ = is_followed_ && compare() ? expansions_key() : "";
        if (key_.empty() || !store_.get(key_, data))
            return UNKNOWN;
    }
    return entry.unpack(data) ? check(entry) : "entry";
}

// Reads the file with our own preprocessor.
std::string Compilation::read_own() {
    Unit unit;
    std::string why = own_.read(unit);
    is_read_ = is_ours_ = why.empty();
    file_.take(is_read_ ? std::move(unit) : Unit());
    return why;
}

// Notes whether both readings of the file agree, once gcc's is there too; returns whether they always did.
bool Compilation::compare() {
    if (!is_compared_ && is_read_)
        own_.compare(is_followed_);
    is_compared_ = true;
    return own_.trusted();
}

// Has gcc preprocess the file. Our own reading stays where gcc's is the same.
std::string Compilation::read(const Words &more) {
    std::string text, why = preprocess(more, text);
    if (!why.empty())
        return why;
    if (is_read_ && !is_ours_) {
        file_.take(std::move(ours_));
        is_ours_ = true;
    }
    file_.unit.text = std::move(text);
    is_followed_ = is_ours_ && follow_tokens(file_.unit);
    if (is_followed_)
        return file_.is_split() ? "" : find_kept();
    Unit theirs;
    theirs.text = std::move(file_.unit.text);
    if (is_ours_)
        ours_ = std::move(file_.unit);
    is_ours_ = false;
    file_.take(std::move(theirs));
    read_tokens(file_.unit);
    return file_.unit.reason.empty() ? find_kept() : file_.unit.reason;
}

// What the file's own text reaches: as it is used, unless that was found to be too little.
std::string Compilation::find_kept() {
    const std::string why = file_.find_kept();
    if (why.empty() && file_.has_hollow() && (!plan_.aliases || store_.has(mentioned_name())))
        file_.keep_mentioned();
    return why;
}

// Of a file of the store that says that a key's pieces are too few.
std::string Compilation::mentioned_name() const { return hex(begun("mentioned").add_sized(key()).bytes()) + ".k"; }

Words Compilation::command(const Words &flags, const Words &more) const {
    Words words{settings_.compiler};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// Whether a run of the compiler went well and said nothing.
bool Compilation::silent(int status) const {
    std::string said;
    return status == 0 && read_file(temporary_(".err"), said) && said.empty();
}

std::string Compilation::preprocess(const Words &more, std::string &text) const {
    Words flags = plan_.before;
    flags.insert(flags.end(), plan_.compile.begin(), plan_.compile.end());
    flags.insert(flags.end(), more.begin(), more.end());
    int status = run(command(flags, {"-E", "-o", temporary_(".i"), plan_.input}), temporary_(".out"), temporary_(".err"));
    if (!silent(status))
        return "preprocessor";
    return read_file(temporary_(".i"), text) ? "" : "temporary";
}

// A hash of what every compilation with these flags has in common. The identity has the front's recipe in it (request.py).
Blake2b Compilation::begun(const char *what) const {
    Blake2b hash(32);
    hash.add_sized(what).add_sized(settings_.identity).add_sized(settings_.compiler);
    hash.add_number(plan_.compile.size());
    for (auto &flag : plan_.compile)
        hash.add_sized(flag);
    return hash;
}

std::string Compilation::key() const {
    Blake2b hash = begun("object");
    hash.add_sized(plan_.input).add_sized(file_.unit.folder);
    char folder[4096];
    hash.add_sized(getcwd(folder, sizeof folder) ? folder : "");
    file_.add_kept(hash);
    return hash.bytes();
}

// The key of what gcc is silent about only where macros brought these tokens and no others.
std::string Compilation::expansions_key() const {
    return hex(begun("expansions").add_sized(key_).add_sized(file_.expanded()).bytes()) + ".o";
}

std::string Compilation::arguments_sum() const {
    Blake2b hash = begun("arguments");
    for (auto &word : arguments_)
        hash.add_sized(word);
    return hash.bytes();
}

std::string Compilation::assembly_sum(const Words &options, const std::string &assembly) const {
    Blake2b hash = begun("assembly");
    for (auto &option : options)
        hash.add_sized(option);
    return hash.add_sized(assembly).bytes();
}

// A sum of all that the object comes from, and of the files that make is told of.
std::string Compilation::made_of(const std::string &assembly_sum, const std::string &dependencies) const {
    return begun("made-of").add_sized(assembly_sum).add_sized(dependencies).bytes();
}

// Compiles what the file reaches, and what of the rest nobody has yet compiled.
std::string Compilation::compile() {
    Entry entry;
    Fresh fresh;
    std::string why = compile_to(entry, fresh);
    if (why.empty())
        why = answer(entry);
    if (!why.empty())
        return why;
    if (fresh.spared && !same_code(plan_.output, temporary_(".o"), temporary_))
        return "diagnostics";
    keep(entry, fresh);
    return "";
}

std::string Compilation::compile_to(Entry &entry, Fresh &fresh) {
    fresh.runs = known_.unknown(file_.reading, {});
    std::vector<uint32_t> asked;
    for (auto run : fresh.runs)
        for (uint32_t number = file_.reading.runs[run].first; number < file_.reading.runs[run].end; number++)
            if (file_.is_unused(number))
                asked.push_back(number);
    if (!assembler(entry.assembler))
        return "assembler";
    std::vector<bool> hollow;
    std::vector<bool> marked = file_.to_compile(asked, hollow);
    // Where more is compiled than the file reaches, what it reaches must do, too.
    if (file_.has_hollow() && hollow != file_.hollow && !is_enough())
        marked = keep_mentioned(asked, hollow);
    int status = compile_text(marked, hollow);
    if (file_.has_hollow() && !silent(status)) {
        marked = keep_mentioned(asked, hollow);
        status = compile_text(marked, hollow);
    }
    // gcc spares what macros made some warnings. Then the source itself is compiled, too.
    fresh.failed = status;
    fresh.spared = !silent(status);
    if (fresh.spared && (status || !is_followed_ || !compare() || !is_silent_source()))
        return "diagnostics";
    std::string assembly;
    if (!read_file(temporary_(".s"), assembly))
        return "temporary";
    if (!plan_.lines)
        entry.loose = assembly;
    else if (!loosen(assembly, file_.places(), entry.loose, entry.together))
        return "lines";
    return "";
}

// Compiles these pieces to assembly; returns the compiler's status.
int Compilation::compile_text(const std::vector<bool> &marked, const std::vector<bool> &hollow) const {
    if (!write_text(marked, hollow))
        return -1;
    Words more{"-gno-column-info", "-fpreprocessed", "-S", "-o", temporary_(".s"), "-x", "cpp-output", temporary_(".k")};
    return run(command(plan_.compile, more), temporary_(".out"), temporary_(".err"));
}

// Whether the compiler knows all it must of what the file reaches.
bool Compilation::is_enough() const {
    Words more{"-fsyntax-only", "-fpreprocessed", "-x", "cpp-output", temporary_(".k")};
    return write_text(file_.kept, file_.hollow) && silent(run(command(plan_.compile, more), temporary_(".out"), temporary_(".err")));
}

// Notes that the file needs more than it seems to use, here and for all who read it again.
std::vector<bool> Compilation::keep_mentioned(const std::vector<uint32_t> &asked, std::vector<bool> &hollow) {
    store_.put(mentioned_name(), "mentioned");
    store_.count("mentioned");
    file_.keep_mentioned();
    key_ = hex(key()) + ".o";
    return file_.to_compile(asked, hollow);
}

void Compilation::keep(Entry &entry, Fresh &fresh) {
    if (fresh.spared) {
        key_ = expansions_key();
        // The key says nothing of the rest of the headers: it stays to be checked.
        for (auto run : fresh.runs)
            file_.reading.runs[run].sum.clear();
        fresh.runs.clear();
    }
    for (auto &run : file_.reading.runs)
        if (!run.sum.empty())
            entry.runs.push_back(run.sum);
    std::sort(entry.runs.begin(), entry.runs.end());
    entry.runs.erase(std::unique(entry.runs.begin(), entry.runs.end()), entry.runs.end());
    known_.keep(file_.reading, fresh.runs);
    store_.count(store_.put(key_, entry.packed()) ? "miss" : "not-kept");
}

// Compiles the source to a temporary object.
bool Compilation::is_silent_source() const {
    Words flags = plan_.before;
    flags.insert(flags.end(), plan_.compile.begin(), plan_.compile.end());
    return silent(run(command(flags, {"-c", "-o", temporary_(".o"), plan_.input}), temporary_(".out"), temporary_(".err")));
}

// The words for the assembler, as the compiler would call it: asked once for these flags.
bool Compilation::assembler(Words &options) const {
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

bool Compilation::read_assembler(Words &options) const {
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
std::string Compilation::check(const Entry &entry) {
    if (!file_.all_used())
        return "idle";
    auto fresh = known_.unknown(file_.reading, entry.runs);
    auto asked = known_.unread(file_, fresh, entry.runs);
    if (asked.empty())
        return "";
    std::vector<bool> marked(file_.pieces.all.size());
    file_.mark(asked, marked);
    if (!write_text(marked, {}))
        return "temporary";
    Words more{"-fsyntax-only", "-fpreprocessed", "-x", "cpp-output", temporary_(".k")};
    if (!silent(run(command(plan_.compile, more), temporary_(".out"), temporary_(".err"))))
        return "check";
    store_.count("checked");
    known_.keep_pieces(file_.reading, asked);
    known_.keep(file_.reading, fresh);
    return "";
}

bool Compilation::write_text(const std::vector<bool> &marked, const std::vector<bool> &hollow) const {
    unlink(temporary_(".k").c_str());
    return write_file(temporary_(".k"), file_.text(marked, hollow));
}

// The assembly of an entry with the lines of today.
std::string Compilation::lines_of_today(const Entry &entry, std::string &assembly) const {
    if (!plan_.lines) {
        assembly = entry.loose;
        return "";
    }
    std::vector<uint32_t> lines;
    for (auto &place : file_.places())
        lines.push_back(place.line);
    for (auto &[one, other] : entry.together)
        if (one >= lines.size() || other >= lines.size() || lines[one] != lines[other])
            return "lines";
    return fix(entry.loose, lines, assembly) ? "" : "entry";
}

std::string Compilation::assemble(const Words &options, const std::string &assembly) {
    unlink(temporary_(".s").c_str());
    if (!write_file(temporary_(".s"), assembly))
        return "temporary";
    Words words{"/usr/bin/as"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"-o", plan_.output, temporary_(".s")});
    assembled_ = assembly_sum(options, assembly);
    return silent(run(words, temporary_(".out"), temporary_(".err"))) ? "" : "assembler";
}

std::string Compilation::answer(const Entry &entry) {
    std::string assembly;
    const std::string why = lines_of_today(entry, assembly);
    return why.empty() ? assemble(entry.assembler, assembly) : why;
}

// Compiles what was answered, and says which answer was another object's.
std::string Compilation::prove() {
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

}
