// SPDX-License-Identifier: GPL-2.0-or-later
// Stands before the compiler: answers from a store what has been compiled before, in all that matters to the code.
//
// Next to the program lies "front.conf": lines "compiler PATH", "identity HEX", "read FOLDER" (several), "write FOLDER".
// docs/design/builds.md says why an answer is the object that the compiler would have made.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "arguments.h"
#include "assembly.h"
#include "changes.h"
#include "digest.h"
#include "reach.h"
#include "store.h"

extern char **environ;

namespace front {

namespace {

constexpr const char *VERSION = "kperflab-front 2";

struct Settings {
    std::string compiler, identity, write;
    std::vector<std::string> read;
};

using Words = std::vector<std::string>;

std::vector<char *> pointers(const Words &words) {
    std::vector<char *> list;
    for (auto &word : words)
        list.push_back(const_cast<char *>(word.c_str()));
    list.push_back(nullptr);
    return list;
}

// Temporary files, removed when the program ends in any way but a signal.
struct Temporary {
    std::string base = "/tmp/kperflab-front-" + std::to_string(getpid());
    ~Temporary() { clear(); }
    std::string operator()(const char *suffix) const { return base + suffix; }
    void clear() const {
        for (auto suffix : {".i", ".k", ".out", ".err", ".s"})
            unlink((base + suffix).c_str());
    }
};

int run(const Words &command, const std::string &out, const std::string &err) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child;
    int status = -1;
    if (posix_spawn(&child, command[0].c_str(), &files, nullptr, pointers(command).data(), environ))
        return -1;
    posix_spawn_file_actions_destroy(&files);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

void add_text(std::string &data, std::string_view text) {
    uint64_t size = text.size();
    data.append(reinterpret_cast<const char *>(&size), sizeof size).append(text);
}

bool take_text(std::string_view &data, std::string &text) {
    uint64_t size;
    if (data.size() < sizeof size)
        return false;
    std::memcpy(&size, data.data(), sizeof size);
    data.remove_prefix(sizeof size);
    if (size > data.size())
        return false;
    text = data.substr(0, size);
    data.remove_prefix(size);
    return true;
}

// What the store keeps of one compilation.
struct Entry {
    Words assembler;                                      // options
    std::vector<std::pair<uint32_t, uint32_t>> together;  // places that must begin on one line
    Words runs;
    std::string loose;

    std::string packed() const {
        std::string data, list;
        for (auto &word : assembler)
            add_text(list, word);
        add_text(data, list);
        list.clear();
        for (auto &pair : together)
            list.append(reinterpret_cast<const char *>(&pair), sizeof pair);
        add_text(data, list);
        list.clear();
        for (auto &run : runs)
            add_text(list, run);
        add_text(data, list);
        add_text(data, loose);
        return data;
    }

    bool unpack(std::string_view data) {
        std::string list, word;
        if (!take_text(data, list))
            return false;
        for (std::string_view rest = list; !rest.empty(); assembler.push_back(word))
            if (!take_text(rest, word))
                return false;
        if (!take_text(data, list) || list.size() % sizeof together[0])
            return false;
        together.resize(list.size() / sizeof together[0]);
        if (!list.empty())
            std::memcpy(static_cast<void *>(together.data()), list.data(), list.size());
        if (!take_text(data, list))
            return false;
        for (std::string_view rest = list; !rest.empty(); runs.push_back(word))
            if (!take_text(rest, word))
                return false;
        return take_text(data, loose);
    }
};

class Compilation {
public:
    Compilation(const Settings &settings, Words arguments)
        : settings_(settings), store_(settings.read, settings.write), arguments_(std::move(arguments)),
          plan_(read_arguments(arguments_)) {}

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
        std::string why = preprocess();
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
        runs_ = runs_of(unit_, pieces_);
        key_ = hex(key(kept_, "object", plan_.compile)) + ".o";
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

    std::string preprocess() {
        Words flags = plan_.before;
        flags.insert(flags.end(), plan_.compile.begin(), plan_.compile.end());
        int status = run(command(flags, {"-E", "-o", temporary_(".i"), plan_.input}), temporary_(".out"), temporary_(".err"));
        if (!silent(status))
            return "preprocessor";
        return read_file(temporary_(".i"), unit_.text) ? "" : "temporary";
    }

    std::string key(const std::vector<bool> &pieces, const char *what, const Words &flags) const {
        Blake2b hash(32);
        hash.add_sized(VERSION).add_sized(what).add_sized(settings_.identity).add_sized(settings_.compiler);
        hash.add_sized(plan_.input).add_sized(unit_.folder);
        char folder[4096];
        hash.add_sized(getcwd(folder, sizeof folder) ? folder : "");
        hash.add_number(flags.size());
        for (auto &flag : flags)
            hash.add_sized(flag);
        std::string content;
        for (size_t number = 0; number < pieces.size(); number++) {
            const Piece &piece = pieces_.all[number];
            // One that is not kept still has a say in the numbers of the variables after it.
            if (!pieces[number] && !piece.locals)
                continue;
            if (piece.code)
                add_text(content, unit_.files[piece.file]);
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
                list.push_back({unit_.files[piece.file], piece.line, piece.last_line});
        }
        return list;
    }

    std::string compile() {
        // The words for the assembler, as the compiler would call it.
        Words more{"-###", "-c", "-o", plan_.output, "-x", "cpp-output", temporary_(".i")};
        Entry entry;
        if (run(command(plan_.compile, more), temporary_(".out"), temporary_(".err")) || !assembler(entry.assembler))
            return "assembler";
        more = {"-gno-column-info", "-fpreprocessed", "-S", "-o", temporary_(".s"), "-x", "cpp-output", temporary_(".i")};
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
            entry.runs.push_back(run.hash);
        bool kept = keep_runs(store_, unit_, pieces_, runs_) && store_.put(key_, entry.packed());
        store_.count(kept ? "miss" : "not-kept");
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
        std::vector<bool> marked(pieces_.all.size());
        if (!changed(store_, unit_, pieces_, runs_, entry.runs, marked))
            return "runs";
        bool any = false;
        for (size_t number = 0; number < marked.size(); number++) {
            marked[number] = marked[number] && pieces_.all[number].header && !kept_[number];
            any |= marked[number];
        }
        if (!any)
            return "";
        for (size_t number = 0; number < marked.size(); number++)
            if (unit_.tokens[pieces_.all[number].first].kind == Kind::Pragma && pieces_.all[number].header)
                marked[number] = true;
        reach(unit_, pieces_, marked);
        std::string text = "# 1 \"" + std::string(unit_.files[0]) + "\"\n";
        for (size_t number = 0; number < marked.size(); number++)
            if (marked[number])
                add_piece(pieces_.all[number], text);
        Blake2b hash(32);
        hash.add_sized(VERSION).add_sized("check").add_sized(settings_.identity).add_sized(settings_.compiler);
        for (auto &flag : plan_.compile)
            hash.add_sized(flag);
        std::string name = hex(hash.add_sized(tokens_of(marked)).bytes()) + ".k", data;
        if (store_.has(name) && store_.get(name, data))
            return "";
        if (!write_file(temporary_(".k"), text))
            return "temporary";
        Words more{"-fsyntax-only", "-fpreprocessed", "-x", "cpp-output", temporary_(".k")};
        if (!silent(run(command(plan_.compile, more), temporary_(".out"), temporary_(".err"))))
            return "check";
        store_.count("checked");
        store_.put(name, "good");
        return "";
    }

    std::string tokens_of(const std::vector<bool> &marked) const {
        std::string content;
        for (size_t number = 0; number < marked.size(); number++)
            if (marked[number])
                add_content(unit_, pieces_.all[number], content);
        return content;
    }

    void add_piece(const Piece &piece, std::string &text) const {
        const Token &first = unit_.tokens[piece.first], &last = unit_.tokens[piece.end - 1];
        text += "# " + std::to_string(first.line) + " \"" + std::string(unit_.files[first.file]) + "\"\n";
        text.append(first.text, last.text + last.size - first.text).push_back('\n');
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
