// SPDX-License-Identifier: GPL-2.0-or-later
#include "compilation.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "assembly.h"
#include "dependencies.h"
#include "proof.h"
#include "release.h"
#include "scanner.h"

namespace front {

namespace {

const std::string UNKNOWN = "unknown", OWN_UNKNOWN = "own-unknown", OWN_CHECK = "own-check";
// A reading that gcc has agreed to before is compared with gcc's again so many times as often as an answer is proven.
constexpr unsigned READ_AGAIN = 4;

}

Compilation::Compilation(const Settings &settings, Words arguments)
    : settings_(settings), store_(settings.read, settings.write), arguments_(std::move(arguments)), plan_(read_arguments(arguments_)),
      compiler_(settings_, plan_, store_, temporary_), source_(plan_, store_, temporary_, compiler_, settings_.compiler),
      file_(source_.file), known_(store_, compiler_.begun("check")), beside_(dependency_file(plan_).empty() ? "" : plan_.output) {}

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

Swept Compilation::sweep(const std::string &before, bool compiles, int64_t began) {
    Entry entry;
    Fresh fresh;
    Ready answer;
    if (!plan_.reason.empty() || !source_.trusted())
        return Swept::Left;
    std::string why = find_alone(entry);
    // Of a changed header that nobody uses, the first file that includes it has it checked for all of them.
    if (why == OWN_CHECK || (why == OWN_UNKNOWN && compiles && !source_.is_spared())) {
        store_.count(why);
        why = is_read_again() ? "again" : find_or_compile(entry, fresh, compiles);
        if (!why.empty() && why != UNKNOWN) {
            entry = {};
            fresh = {};
            why = source_.read_by_compiler();
            if (why.empty())
                why = find_or_compile(entry, fresh, compiles);
        }
        if (fresh.failed)
            return Swept::Failed;
        if (why.empty() && fresh.spared)
            return Swept::Left;
        if (why.empty() && fresh.compiled)
            keep(entry, fresh);
    }
    const bool is_known = !fresh.compiled;
    if (!why.empty() || !source_.trusted() || !source_.dependencies_text(answer.dependencies))
        return Swept::Left;
    if (is_known && is_drawn(settings_.prove)) {
        beside_.ask_for_proof();
        return Swept::Drawn;
    }
    if (!of_today(entry, answer.assembly).empty())
        return Swept::Left;
    if (made_of(assembly_sum(entry.assembler, answer.assembly), answer.dependencies) == before) {
        store_.count((is_known ? "same " : "unchanged ") + key_);
        return Swept::Same;
    }
    answer.arguments = arguments_sum();
    int64_t changed = 0;
    answer.files = sum_of_files(answer.dependencies, &changed);
    // This process reads a file once: what has changed since then is make's.
    if (changed >= began)
        return Swept::Left;
    answer.key = is_known ? key_ : "";
    answer.assembler = entry.assembler;
    return !answer.files.empty() && beside_.keep_ready(answer) ? Swept::Ready : Swept::Left;
}

// Asks the store; compiles what it does not know only if that may be: make would have the file read once more to do the same.
std::string Compilation::find_or_compile(Entry &entry, Fresh &fresh, bool compiles) {
    const std::string why = find_read(entry);
    // make writes the release of today behind the sweep.
    if (why != UNKNOWN || !compiles || !file_.unit.release.empty())
        return why;
    key_ = source_.key();
    return compile_to(entry, fresh);
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
    std::string why = source_.trusted() ? attempt_alone() : source_.ask() ? source_.read_own() : "own-builtins";
    if (is_answered_)
        return "";
    if (!source_.refusal().empty() || why == OWN_HAS)
        return why;
    if (!why.empty())
        store_.count(why);
    const bool alone = (why == OWN_CHECK || (why == OWN_UNKNOWN && !source_.is_spared())) && !is_read_again() && source_.write_dependencies();
    if (alone && attempt_read().empty())
        return "";
    why = source_.read_by_compiler();
    return why.empty() ? attempt_read() : why;
}

bool Compilation::is_read_again() const { return is_drawn((settings_.prove + READ_AGAIN - 1) / READ_AGAIN); }

std::string Compilation::attempt_alone() {
    Entry entry;
    std::string why = find_alone(entry);
    if (why.empty() && !source_.write_dependencies())
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

// Without a process, but for layouts that nobody knows: "" when the store answers and nothing is left to check.
std::string Compilation::find_alone(Entry &entry) {
    std::string why = source_.read_own(), data;
    if (why.empty())
        why = source_.find_kept();
    if (!why.empty())
        return why;
    key_ = source_.key();
    if (!store_.get(key_, data)) {
        key_ = source_.expansions_key(key_);
        if (!store_.get(key_, data))
            return OWN_UNKNOWN;
    }
    if (!entry.unpack(data))
        return OWN_CHECK;
    if (is_whole(entry))
        return "";
    return file_.all_used(entry.used) && known_.unread(file_, known_.unknown(file_.reading, entry.runs), entry.runs).empty() ? "" : OWN_CHECK;
}

// Of a file that was read: the store's answer, or what the compiler makes of the text that it needs.
std::string Compilation::attempt_read() {
    Entry entry;
    const std::string plain = source_.key();
    std::string why = find_read(entry);
    if (why.empty())
        why = answer(entry);
    if (why.empty()) {
        if (is_source_compiled_ && !same_code(plan_.output, temporary_(".o"), temporary_))
            return "differs " + key_;
        answered(!source_.is_gccs());
        return "";
    }
    if (why != UNKNOWN)
        store_.count("again-" + why);
    key_ = plain;
    return compile();
}

// Of what was read: "" when the store answers, and what is left to check is right.
std::string Compilation::find_read(Entry &entry) {
    std::string data;
    key_ = source_.key();
    source_.compare();
    if (!store_.get(key_, data)) {
        key_ = source_.is_followed() && source_.compare() ? source_.expansions_key(key_) : "";
        if ((key_.empty() || !store_.get(key_, data)) && !find_resized(data))
            return UNKNOWN;
    }
    if (!entry.unpack(data))
        return "entry";
    return is_spared(entry) ? check_source(entry) : check(entry);
}

// Looks for what was compiled when structures of which the file needs a part had other sizes. It is the answer if the compiler reads
// the same with either, for it makes its code of that. The sizes are a hint: the key that they lead to is this file's with them.
bool Compilation::find_resized(std::string &data) {
    std::string known;
    if (file_.hollow.parts.empty() || !store_.get(source_.resized_name(), known))
        return false;
    std::istringstream words(known);
    std::vector<uint64_t> before;
    for (uint64_t size; words >> size;)
        before.push_back(size);
    const auto today = file_.sizes();
    if (before.size() != today.size())
        return false;
    Hollows hollow;
    const std::vector<bool> marked = file_.to_compare(hollow);
    const std::string text = file_.text(marked, hollow);
    file_.set_sizes(before);
    const std::string other = file_.text(marked, hollow);
    const bool is_known = store_.get(source_.key(), data);
    file_.set_sizes(today);
    if (!is_known)
        return false;
    const std::string tree = compiler_.tree(text);
    const bool same = !tree.empty() && !file_.declares_one(tree) && compiler_.tree(other) == tree;
    store_.count(same ? "resized" : "size");
    if (!same)
        return false;
    key_ = source_.key();
    store_.put(key_, data);
    keep_resized();
    return true;
}

// Keeps the sizes with which find_resized() may look for this.
void Compilation::keep_resized() {
    if (file_.hollow.parts.empty())
        return;
    std::string known;
    for (auto size : file_.sizes())
        known += std::to_string(size) + " ";
    store_.put(source_.resized_name(), known);
}

std::string Compilation::arguments_sum() const {
    Blake2b hash = compiler_.begun("arguments");
    for (auto &word : arguments_)
        hash.add_sized(word);
    return hash.bytes();
}

std::string Compilation::assembly_sum(const Words &options, const std::string &assembly) const {
    Blake2b hash = compiler_.begun("assembly");
    for (auto &option : options)
        hash.add_sized(option);
    return hash.add_sized(assembly).bytes();
}

// A sum of all that the object comes from, and of the files that make is told of.
std::string Compilation::made_of(const std::string &assembly_sum, const std::string &dependencies) const {
    return compiler_.begun("made-of").add_sized(assembly_sum).add_sized(dependencies).bytes();
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
    fresh.compiled = true;
    fresh.runs = known_.unknown(file_.reading, {});
    std::vector<uint32_t> asked;
    for (auto run : fresh.runs)
        for (uint32_t number = file_.reading.runs[run].first; number < file_.reading.runs[run].end; number++)
            if (file_.is_unused(number))
                asked.push_back(number);
    if (!compiler_.assembler(entry.assembler))
        return "assembler";
    if (source_.is_bound())
        return "release";
    // Structures are compiled whole: gcc's code may depend on members that the file does not need (a flexible array at the end, or the
    // one that has the alignment). The outlines, of which the key is made, must do, too.
    std::vector<bool> marked = file_.to_compile(asked);
    if (file_.has_hollow() && !accepts_outlines())
        marked = keep_mentioned(asked);
    int status = compiler_.compile(file_.text(marked));
    if (file_.has_hollow() && !compiler_.silent(status)) {
        marked = keep_mentioned(asked);
        status = compiler_.compile(file_.text(marked));
    }
    // gcc spares what macros made some warnings, and who uses something static may not be in the text. Then the source itself is compiled, too.
    fresh.failed = status;
    fresh.spared = !compiler_.silent(status);
    if (fresh.spared && (status || !source_.is_gccs() || !source_.is_followed() || !source_.compare() || !compiler_.complains_of_expansions() ||
                         !compiler_.silent(compiler_.compile_source())))
        return "diagnostics";
    if (fresh.spared)
        source_.note_spared();
    else
        entry.used = file_.shown_used(marked);
    std::string assembly;
    if (!read_file(temporary_(".s"), assembly))
        return "temporary";
    if (!file_.unit.release.empty() && !has_release_as_text(file_.text(marked), assembly)) {
        source_.note_bound();
        return "release";
    }
    if (!plan_.lines)
        entry.loose = assembly;
    else if (!loosen(assembly, file_.places(), entry.loose, entry.together))
        return "lines";
    return "";
}

// Whether the compiler has nothing to complain of in what the file reaches, with parts of structures in place of the whole.
bool Compilation::accepts_outlines() {
    if (source_.is_accepted())
        return true;
    if (!compiler_.accepts(file_.text(file_.kept, file_.hollow)))
        return false;
    source_.note_accepted();
    return true;
}

// Whether the compiler makes the same of today's release, but for its characters: it may have made numbers of them, or have compared them.
bool Compilation::has_release_as_text(std::string text, std::string assembly) const {
    std::string other;
    replace_all(text, PLACEHOLDER, file_.unit.release);
    replace_all(assembly, PLACEHOLDER, file_.unit.release);
    return compiler_.compile(text) == 0 && read_file(temporary_(".s"), other) && other == assembly;
}

// Notes that the file needs more than it seems to use, here and for all who read it again.
std::vector<bool> Compilation::keep_mentioned(const std::vector<uint32_t> &asked) {
    source_.keep_mentioned();
    key_ = source_.key();
    return file_.to_compile(asked);
}

void Compilation::keep(Entry &entry, Fresh &fresh) {
    if (fresh.spared) {
        key_ = source_.expansions_key(key_);
        // The key says nothing of the rest of the headers: it stays to be checked, unless it is the same.
        for (auto run : fresh.runs)
            file_.reading.runs[run].sum.clear();
        fresh.runs.clear();
        entry.runs.push_back(file_.whole());
    }
    for (auto &run : file_.reading.runs)
        if (!run.sum.empty())
            entry.runs.push_back(run.sum);
    std::sort(entry.runs.begin(), entry.runs.end());
    entry.runs.erase(std::unique(entry.runs.begin(), entry.runs.end()), entry.runs.end());
    known_.keep(file_.reading, fresh.runs);
    if (!fresh.spared)
        keep_resized();
    store_.count(store_.put(key_, entry.packed()) ? "miss" : "not-kept");
}

// Whether gcc had complaints of the text that it does not have of the source.
bool Compilation::is_spared(const Entry &entry) const {
    return std::any_of(entry.runs.begin(), entry.runs.end(), [](auto &sum) { return sum.size() == WHOLE; });
}

// Whether the compiler has read all of such a file as it is.
bool Compilation::is_whole(const Entry &entry) const {
    auto &runs = entry.runs;
    return std::any_of(runs.begin(), runs.end(), [&](auto &sum) { return sum.size() == WHOLE && sum == file_.whole(); });
}

// The text of a spared file would bring its complaints along: the compiler reads the source. Under make its object must then be the answer's.
std::string Compilation::check_source(Entry &entry) {
    if (is_whole(entry))
        return "";
    is_source_compiled_ = compiler_.silent(compiler_.compile_source());
    if (!is_source_compiled_)
        return "check";
    store_.count("checked");
    entry.runs.push_back(file_.whole());
    std::sort(entry.runs.begin(), entry.runs.end());
    store_.put(key_, entry.packed());
    return "";
}

// What the file does not use, but the compiler would have read: it must be free of errors and warnings too.
std::string Compilation::check(const Entry &entry) {
    if (!file_.all_used(entry.used))
        return "idle";
    auto fresh = known_.unknown(file_.reading, entry.runs);
    auto asked = known_.unread(file_, fresh, entry.runs);
    if (asked.empty())
        return "";
    std::vector<bool> marked(file_.pieces.all.size());
    file_.mark(asked, marked);
    if (!compiler_.accepts(file_.text(marked)))
        return "check";
    store_.count("checked");
    known_.keep_pieces(file_.reading, asked);
    known_.keep(file_.reading, fresh);
    return "";
}

// The assembly of an entry with the lines and the release of today.
std::string Compilation::of_today(const Entry &entry, std::string &assembly) const {
    const std::string why = lines_of_today(entry, assembly);
    if (!file_.unit.release.empty())
        replace_all(assembly, PLACEHOLDER, file_.unit.release);
    return why;
}

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
    assembled_ = assembly_sum(options, assembly);
    return compiler_.assemble(options, assembly);
}

std::string Compilation::answer(const Entry &entry) {
    std::string assembly;
    const std::string why = of_today(entry, assembly);
    return why.empty() ? assemble(entry.assembler, assembly) : why;
}

// Compiles what was answered, and says which answer was another object's.
std::string Compilation::prove() {
    std::string text, why = compiler_.preprocess({}, text);
    if (!why.empty())
        return why;
    // Its warnings are another matter: of some, macros are spared.
    if (compiler_.compile_preprocessed())
        return "diagnostics";
    if (!same_code(plan_.output, temporary_(".o"), temporary_))
        return "differs " + key_;
    store_.count("proven");
    return "";
}

}
