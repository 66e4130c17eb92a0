// SPDX-License-Identifier: GPL-2.0-or-later
#include "segments.h"

#include <algorithm>

namespace front {

const Segment *Segments::find(const Progress &begin, const Macros &macros) const {
    auto known = known_.find(begin.scanner.at());
    if (known == known_.end())
        return nullptr;
    auto would_be_same = [&](auto &segment) {
        return segment->begin.guarded == begin.guarded && segment->begin.groups == begin.groups &&
               std::all_of(segment->asked.begin(), segment->asked.end(), [&](auto &asked) { return macros.value(asked.name) == asked.macro; });
    };
    auto found = std::find_if(known->second.begin(), known->second.end(), would_be_same);
    return found == known->second.end() ? nullptr : found->get();
}

void Segments::keep(std::unique_ptr<Segment> segment) {
    auto &alike = known_[segment->begin.scanner.at()];
    if (alike.size() == MOST_ALIKE)
        return;
    size_ += sizeof *segment + segment->tokens.size() * sizeof(Token) + (segment->asked.size() + segment->left.size()) * sizeof(MacroValue);
    alike.push_back(std::move(segment));
}

}
