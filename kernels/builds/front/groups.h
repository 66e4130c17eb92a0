// SPDX-License-Identifier: GPL-2.0-or-later
// Groups of lines that are read on a condition: #if to #endif.
#pragma once

#include <string_view>
#include <vector>

#include "expansion.h"

namespace front {

// Directives of the preprocessor that we read, and those that matter to a group that is skipped.
enum class Directive : uint8_t { Define, Undef, Include, If, Ifdef, Ifndef, Elif, Else, Endif, Pragma, Other };

Directive directive_of(std::string_view word);

// A group that is open.
struct Group {
    bool taken, last;
    bool operator==(const Group &other) const { return taken == other.taken && last == other.last; }
};

// How much of a file lies in one #ifndef.
enum class Guarded : uint8_t { Begins, Within, Behind, No };

// How far a file has been read.
struct Progress {
    Scanner scanner;  // while another file is read
    std::vector<Group> groups;
    Guarded guarded = Guarded::Begins;
    uint32_t guard = NO_NAME;  // what the #ifndef asks for
};

class Groups {
public:
    // warns: gcc would complain of a name in #if that is no macro.
    Groups(Expansion &expansion, Macros &macros, bool warns)
        : expansion_(expansion), macros_(macros), scanner_(expansion.scanner), defined_(macros.defined_name()), warns_(warns) {}

    // Reads the rest of a directive from #if to #endif, and what is skipped behind it. within: a macro's arguments.
    void read(Directive what, Progress &file, bool within);

private:
    bool asks(Directive what);
    void open(Directive what);
    void end(Directive what);
    Group &next_part(Directive what);
    void close();
    void unguard();
    void skip();
    bool goes_on(Directive what);

    Expansion &expansion_;
    Macros &macros_;
    Scanner &scanner_;
    const uint32_t defined_;
    const bool warns_;
    Progress *file_ = nullptr;
    bool within_ = false;
};

}
