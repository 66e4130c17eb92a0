// SPDX-License-Identifier: GPL-2.0-or-later
// Sums of declarations that the compiler has read without a complaint in this sweep, shared by its processes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace front {

// A changed header is read in as many ways as there are headers before it, and each differs in few declarations: the store knows
// them by the run, this by themselves. It forgets at the end of the sweep; a sum may be missing, and is never there wrongly.
class Learnt {
public:
    // In memory that the processes forked from now on share; without any, nothing is learnt.
    Learnt();
    Learnt(const Learnt &) = delete;

    bool has(uint64_t one, uint64_t other) const;
    void add(uint64_t one, uint64_t other);

private:
    struct Place;

    static size_t first(uint64_t one);

    Place *places_ = nullptr;
};

}
