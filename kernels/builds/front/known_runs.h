// SPDX-License-Identifier: GPL-2.0-or-later
// Which runs of declarations the compiler has read without a complaint, by files of the store.
#pragma once

#include "declarations.h"
#include "digest.h"
#include "learnt.h"
#include "store.h"

namespace front {

class KnownRuns {
public:
    // begun: a hash for the names of this compiler's and these flags' files. learnt: what a sweep has read, null in other builds.
    KnownRuns(const Store &store, Blake2b begun, Learnt *learnt);

    // The runs that no compilation is known to have read, besides those of a list of sums that rises.
    std::vector<uint32_t> unknown(const Reading &reading, const std::vector<std::string> &known) const;
    // The unused pieces of these runs that no compilation is known to have read, in these headers as they were before or elsewhere.
    // before: sums of runs, rising.
    std::vector<uint32_t> unread(const Declarations &file, const std::vector<uint32_t> &runs, const std::vector<std::string> &before) const;

    // The unused pieces of these runs, without those that this sweep has read: no file of the store is looked for.
    std::vector<uint32_t> unlearnt(const Declarations &file, const std::vector<uint32_t> &runs) const;

    // Keeps that these were read.
    void keep(const Reading &reading, const std::vector<uint32_t> &runs) const;
    void keep_pieces(const Reading &reading, const std::vector<uint32_t> &pieces) const;

private:
    bool is_learnt(const std::string &piece) const;
    void learn(const std::string &piece) const;
    std::string name_of(const std::string &sum) const { return hex(Blake2b(begun_).add_sized(sum).bytes()) + ".k"; }

    const Store &store_;
    Blake2b begun_;
    Learnt *learnt_;
    uint64_t flags_;  // a sum of theirs
};

}
