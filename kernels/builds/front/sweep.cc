// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <string_view>
#include <unordered_map>

#include "compilation.h"
#include "made_object.h"
#include "preprocessor.h"
#include "store.h"

namespace front {

namespace {

// TICK: file systems stamp by a clock that may lag so far behind (clock_getres(2), CLOCK_REALTIME_COARSE).
constexpr int64_t SECOND = 1'000'000'000, TICK = SECOND / 50, NONE = -1;
constexpr size_t MOST_PROCESSES = 64;
constexpr int LARGE = 4 << 20, NEVER = 1 << 30;

int64_t nanoseconds(const timespec &time) { return time.tv_sec * SECOND + time.tv_nsec; }

// When files were changed last; each is asked for once.
class Times {
public:
    int64_t of(const std::string &path) {
        auto [entry, fresh] = known_.try_emplace(path, NONE);
        struct stat about;
        if (fresh && !stat(path.c_str(), &about))
            entry->second = nanoseconds(about.st_mtim);
        return entry->second;
    }

private:
    std::unordered_map<std::string, int64_t> known_;
};

// The config's symbols that files name, as fixdep finds them (parse_config_file()); each file is read once.
class NamedSymbols {
public:
    const Words &of(const std::string &path) {
        auto [entry, fresh] = known_.try_emplace(path);
        std::string text;
        if (fresh && read_file(path, text))
            find(text, entry->second);
        return entry->second;
    }

private:
    static bool in_word(unsigned char c) { return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

    static void find(std::string_view text, Words &symbols) {
        constexpr std::string_view BEGIN = "CONFIG_", MODULE = "_MODULE";
        for (size_t at = 0; (at = text.find(BEGIN, at)) != text.npos;) {
            const bool begins = !at || !in_word(text[at - 1]);
            at += BEGIN.size();
            size_t end = at;
            while (begins && end < text.size() && in_word(text[end]))
                end++;
            std::string_view name = text.substr(at, end - at);
            if (name.size() >= MODULE.size() && name.substr(name.size() - MODULE.size()) == MODULE)
                name.remove_suffix(MODULE.size());
            if (!name.empty())
                symbols.emplace_back(name);
        }
        std::sort(symbols.begin(), symbols.end());
        symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
    }

    std::unordered_map<std::string, Words> known_;
};

struct Candidate {
    MadeObject object;
    int64_t newest;  // of its inputs
    Words changed;   // of its inputs, those that are newer than it
};

// What kbuild builds for the build itself depends on more than its files of dependencies say.
bool is_left(const std::string &folder) { return folder == "./scripts" || folder == "./tools"; }

void find_files(const std::string &folder, std::vector<std::string> &paths) {
    DIR *list = opendir(folder.c_str());
    if (!list)
        return;
    while (auto *entry = readdir(list)) {
        const std::string name = entry->d_name, path = folder + "/" + name;
        if (entry->d_type == DT_DIR && name != "." && name != ".." && !is_left(path))
            find_files(path, paths);
        else if (entry->d_type == DT_REG && name[0] == '.' && name.size() > 7 && name.compare(name.size() - 6, 6, ".o.cmd") == 0)
            paths.push_back(path.substr(2));
    }
    closedir(list);
}

// Whether a time is over: what make generates from now on must be newer than what the sweep leaves. A change may be stamped a
// second ahead, so as to be newer than all objects; that is waited for.
bool has_passed(int64_t time) {
    timespec clock;
    clock_gettime(CLOCK_REALTIME, &clock);
    const int64_t rest = time - nanoseconds(clock) + TICK;
    if (rest > 2 * SECOND)
        return false;
    const timespec wait{rest / SECOND, rest % SECOND};
    return rest <= 0 || !nanosleep(&wait, nullptr);
}

// The objects that make would make again because of a changed input, with all inputs there.
std::vector<Candidate> candidates(const std::string &compiler) {
    std::vector<std::string> paths;
    find_files(".", paths);
    std::sort(paths.begin(), paths.end());
    Times times;
    std::vector<Candidate> list;
    for (auto &path : paths) {
        Candidate candidate{{}, 0, {}};
        if (!candidate.object.read(path, compiler))
            continue;
        const int64_t made = times.of(candidate.object.path);
        bool all = made != NONE;
        for (auto &input : candidate.object.inputs) {
            const int64_t time = times.of(input);
            all &= time != NONE;
            candidate.newest = std::max(candidate.newest, time);
            if (time > made)
                candidate.changed.push_back(input);
        }
        for (auto &symbol : candidate.object.symbols)
            all &= times.of(symbol) <= made;
        if (all && candidate.newest > made && has_passed(candidate.newest))
            list.push_back(std::move(candidate));
    }
    return list;
}

// What the processes of a sweep share.
struct Shared {
    std::atomic<size_t> next = 0;
    std::atomic<bool> compiles = true;
};

void say(const char *what, const std::string &path) {
    const std::string line = what + path + "\n";
    [[maybe_unused]] ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
}

// Whether the object's list, which stays as it is, has all symbols of the config that its changed inputs name.
bool lists_symbols(const Candidate &candidate, NamedSymbols &named) {
    const auto &listed = candidate.object.symbols;
    for (auto &input : candidate.changed)
        for (auto &name : named.of(input))
            if (std::find(listed.begin(), listed.end(), "include/config/" + name) == listed.end())
                return false;
    return true;
}

void look_at(const Settings &settings, const Candidate &candidate, int64_t began, Shared &shared, NamedSymbols &named) {
    auto &object = candidate.object;
    const std::string made_of = Beside(object.path).made_of();
    if (made_of.empty())
        return;
    const Swept swept = Compilation(settings, object.arguments).sweep(made_of, shared.compiles, began);
    if (swept == Swept::Failed)
        shared.compiles = false;
    if (swept == Swept::Ready)
        say("  READY   ", object.path);
    if (swept != Swept::Same || !lists_symbols(candidate, named))
        return;
    timespec time[2] = {{0, UTIME_OMIT}, {candidate.newest / SECOND, candidate.newest % SECOND}};
    if (!utimensat(AT_FDCWD, object.path.c_str(), time, AT_SYMLINK_NOFOLLOW))
        say("  SAME    ", object.path);
}

}

int sweep(const Settings &settings, const Words &arguments) {
    if (arguments.size() != 2 || chdir(arguments[0].c_str()) || setenv("PWD", arguments[0].c_str(), 1))
        return 2;
    // A file's tokens take many megabytes. They are given back, for what is kept of headers would lie between them and the next file's;
    // of the rest the next file takes as much again.
    mallopt(M_MMAP_THRESHOLD, LARGE);
    mallopt(M_TRIM_THRESHOLD, NEVER);
    const size_t processes = std::clamp<size_t>(std::strtoul(arguments[1].c_str(), nullptr, 10), 1, MOST_PROCESSES);
    const auto list = candidates(settings.compiler.substr(settings.compiler.rfind('/') + 1));
    // By now all changes are older than this (has_passed).
    timespec clock;
    clock_gettime(CLOCK_REALTIME_COARSE, &clock);
    const int64_t began = nanoseconds(clock);
    void *place = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        return 1;
    auto &shared = *new (place) Shared;
    keep_segments();
    for (size_t number = 0; number < processes; number++)
        if (!fork()) {
            NamedSymbols named;
            for (size_t at; (at = shared.next.fetch_add(1)) < list.size();)
                look_at(settings, list[at], began, shared, named);
            _exit(0);
        }
    int status, worst = 0;
    while (wait(&status) > 0)
        worst |= status;
    return worst != 0;
}

}
