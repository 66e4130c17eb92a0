// SPDX-License-Identifier: GPL-2.0-or-later
// What headers have from one #include to the next, as a process has read it: it is read again only where a macro that it asks for has
// another value. The files of a kernel have most of their headers in common.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "groups.h"

namespace front {

// A token whose text ends in a number of __COUNTER__.
struct Counted {
    uint32_t token;
    uint32_t digits;  // of the number, as it stood there
    uint64_t number;  // from the segment's first
};

struct Segment {
    explicit Segment(const Progress &file) : begin(file), end(file) {}

    Progress begin, end;
    bool includes = false;          // ends behind the word of an #include, else with its file
    bool once = false;              // has #pragma once
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

// Notes the segment that is being read, and takes others over.
class SegmentNotes {
public:
    SegmentNotes(Unit &unit, Names &names, Memory &texts, Macros &macros, Expansion &expansion)
        : unit_(unit), names_(names), texts_(texts), macros_(macros), expansion_(expansion) {}

    void begin(Segments &segments, const Progress &file);
    // The next token of the unit is this.
    void token(const Lexeme &token);
    void once() {
        if (segment_)
            segment_->once = true;
    }
    void end(const Progress &file, bool includes);

    // Does what the segment did, in a file of this number.
    void take(const Segment &segment, uint16_t file);

private:
    void count(Token &token, uint32_t digits, uint64_t number);

    Unit &unit_;
    Names &names_;
    Memory &texts_;
    Macros &macros_;
    Expansion &expansion_;
    Segments *segments_ = nullptr;
    std::unique_ptr<Segment> segment_;  // that is noted; null while none is
    size_t first_token_ = 0;
    uint64_t first_number_ = 0;
};

}
