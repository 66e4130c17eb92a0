// SPDX-License-Identifier: GPL-2.0-or-later
#include "known_runs.h"

#include <algorithm>
#include <unordered_set>

namespace front {

std::vector<uint32_t> KnownRuns::unknown(const Reading &reading, const std::vector<std::string> &known) const {
    std::vector<uint32_t> list;
    for (uint32_t number = 0; number < reading.runs.size(); number++) {
        auto &sum = reading.runs[number].sum;
        if (!std::binary_search(known.begin(), known.end(), sum) && !store_.has(name_of(sum)))
            list.push_back(number);
    }
    return list;
}

std::vector<uint32_t> KnownRuns::unread(const Declarations &file, const std::vector<uint32_t> &runs, const std::vector<std::string> &before) const {
    std::vector<uint32_t> list;
    for (auto run : runs) {
        auto &[first, end, sum] = file.reading.runs[run];
        std::unordered_set<std::string> known;
        auto old = std::lower_bound(before.begin(), before.end(), sum.substr(0, PATH));
        for (std::string read; old != before.end() && old->compare(0, PATH, sum, 0, PATH) == 0; ++old)
            if (store_.get(name_of(*old), read))
                for (size_t at = 0; at + SUM <= read.size(); at += SUM)
                    known.insert(read.substr(at, SUM));
        for (uint32_t number = first; number < end; number++) {
            if (!file.is_unused(number))
                continue;
            const std::string piece = file.reading.sum(number);
            if (!known.count(piece) && !store_.has(name_of(piece)))
                list.push_back(number);
        }
    }
    return list;
}

void KnownRuns::keep(const Reading &reading, const std::vector<uint32_t> &runs) const {
    for (auto run : runs) {
        auto &[first, end, sum] = reading.runs[run];
        store_.put(name_of(sum), reading.sums.substr(first * SUM, (end - first) * SUM));
    }
}

void KnownRuns::keep_pieces(const Reading &reading, const std::vector<uint32_t> &pieces) const {
    for (auto number : pieces)
        store_.put(name_of(reading.sum(number)), "good");
}

}
