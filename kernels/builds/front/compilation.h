// SPDX-License-Identifier: GPL-2.0-or-later
// One call of the compiler: answered from the store, or compiled.
// docs/design/front.md says why an answer is the object that the compiler would have made.
#pragma once

#include "arguments.h"
#include "beside.h"
#include "compiler.h"
#include "entry.h"
#include "known_runs.h"
#include "processes.h"
#include "settings.h"
#include "source_file.h"
#include "store.h"

namespace front {

// What a sweep found of an object whose inputs have changed.
enum class Swept {
    Same,   // a compilation of today would make it again
    Ready,  // its answer lies beside it
    Drawn,  // it is answered, and by chance to be compiled all the same
    Failed, // it does not compile, so others need not be compiled ahead of make either
    Left,   // make's turn
};

class Compilation {
public:
    Compilation(const Settings &settings, Words arguments);

    // Makes the object. Does not return where the compiler takes over; else returns the status of the program.
    int make();

    // Looks at an object that made_of made; compiles what no store knows only if it may.
    // began: when the process did, in nanoseconds of the clock by which files are stamped.
    Swept sweep(const std::string &made_of, bool compiles, int64_t began);

private:
    // What is known of a compilation before its entry is kept.
    struct Fresh {
        bool compiled = false;
        std::vector<uint32_t> runs;  // that nobody has compiled yet
        bool spared = false;         // gcc had complaints that it does not have of the source
        bool failed = false;
    };

    std::string take_ready();
    std::string attempt();
    std::string attempt_alone();
    std::string find_alone(Entry &entry);
    std::string attempt_read();
    std::string find_or_compile(Entry &entry, Fresh &fresh, bool compiles);
    bool is_read_again() const;
    std::string find_read(Entry &entry);
    bool find_resized(std::string &data);
    void keep_resized();
    std::string check(const Entry &entry);
    bool is_spared(const Entry &entry) const;
    bool is_whole(const Entry &entry) const;
    std::string check_source(Entry &entry);
    std::string compile();
    std::string compile_to(Entry &entry, Fresh &fresh);
    bool accepts_outlines();
    bool has_release_as_text(std::string text, std::string assembly) const;
    std::vector<bool> keep_mentioned(const std::vector<uint32_t> &asked);
    void keep(Entry &entry, Fresh &fresh);
    std::string prove();

    std::string of_today(const Entry &entry, std::string &assembly) const;
    std::string lines_of_today(const Entry &entry, std::string &assembly) const;
    std::string assemble(const Words &options, const std::string &assembly);
    std::string answer(const Entry &entry);
    void answered(bool alone);

    std::string arguments_sum() const;
    std::string assembly_sum(const Words &options, const std::string &assembly) const;
    std::string made_of(const std::string &assembly_sum, const std::string &dependencies) const;

    const Settings &settings_;
    Store store_;
    Words arguments_;
    Plan plan_;
    Temporary temporary_;
    Compiler compiler_;
    SourceFile source_;
    Declarations &file_;  // the source's
    KnownRuns known_;
    Beside beside_;
    bool is_answered_ = false;
    bool is_source_compiled_ = false;
    std::string key_;
    std::string assembled_;  // the sum of what was made into the object
};

}
