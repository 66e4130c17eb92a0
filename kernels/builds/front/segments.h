// SPDX-License-Identifier: GPL-2.0-or-later
// What headers have from one #include to the next, as a process has read it: it is read again only where a macro that it asks for has
// another value. The files of a kernel have most of their headers in common.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "macros.h"

namespace front {

// A condition that is open.
struct Group {
    bool taken, last;
    bool operator==(const Group &other) const { return taken == other.taken && last == other.last; }
};

// How far a file has been read.
struct Progress {
    Scanner scanner;
    std::vector<Group> groups;  // of this file
    uint32_t guard;             // of the #ifndef with which it begins
    uint8_t guarded;            // 0 at the beginning, 1 within, 2 behind, 3 no longer
};

// A token whose text ends in a number of __COUNTER__.
struct Counted {
    uint32_t token;
    uint32_t digits;  // of the number, as it stood there
    uint64_t number;  // from the segment's first
};

struct Segment {
    explicit Segment(const Progress &from) : begin(from), end(from) {}

    Progress begin, end;
    bool includes = false;  // ends behind the word of an #include, else with its file
    bool once = false;      // has #pragma once
    std::vector<MacroValue> asked;  // for which macros it asks, with their values at its beginning
    std::vector<MacroValue> left;   // those it changes, with their values at its end
    std::vector<Token> tokens;      // their files are not those of another reading
    std::vector<Counted> counted;
    uint64_t counts = 0;  // numbers that it takes
};

class Segments {
public:
    // One that would be the same, or null.
    const Segment *find(const Progress &begin, const Macros &macros) const;
    void keep(std::unique_ptr<Segment> segment);
    bool has_room() const { return size_ < MOST; }

private:
    static constexpr size_t MOST = size_t(512) << 20, MOST_ALIKE = 16;

    std::unordered_map<const char *, std::vector<std::unique_ptr<Segment>>> known_;  // by where they begin
    size_t size_ = 0;
};

}
