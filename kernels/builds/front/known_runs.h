// SPDX-License-Identifier: GPL-2.0-or-later
// Which runs of declarations the compiler has read without a complaint, by files of the store.
#pragma once

#include "declarations.h"
#include "digest.h"
#include "store.h"

namespace front {

class KnownRuns {
public:
    // begun: a hash for the names of this compiler's and these flags' files.
    KnownRuns(const Store &store, Blake2b begun) : store_(store), begun_(begun) {}

    // The runs that no compilation is known to have read, besides those of a list of sums that rises.
    std::vector<uint32_t> unknown(const Reading &reading, const std::vector<std::string> &known) const;
    // The unused pieces of these runs that no compilation is known to have read, in these headers as they were before or elsewhere.
    std::vector<uint32_t> unread(const Declarations &file, const std::vector<uint32_t> &runs, const std::vector<std::string> &before) const;

    // Keeps that these were read.
    void keep(const Reading &reading, const std::vector<uint32_t> &runs) const;
    void keep_pieces(const Reading &reading, const std::vector<uint32_t> &pieces) const;

private:
    std::string name_of(const std::string &sum) const { return hex(Blake2b(begun_).add_sized(sum).bytes()) + ".k"; }

    const Store &store_;
    Blake2b begun_;
};

}
