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

void SegmentNotes::begin(Segments &segments, const Progress &file) {
    if (!segments.has_room())
        return;
    segments_ = &segments;
    segment_ = std::make_unique<Segment>(file);
    first_token_ = unit_.tokens.size();
    first_number_ = expansion_.count(0);
    expansion_.is_local = false;
    macros_.list_asked(&segment_->asked);
}

void SegmentNotes::token(const Lexeme &token) {
    if (segment_ && token.flags & COUNTED)
        segment_->counted.push_back({static_cast<uint32_t>(unit_.tokens.size() - first_token_),
                                     static_cast<uint32_t>(std::to_string(token.line).size()), token.line - first_number_});
}

void SegmentNotes::end(const Progress &file, bool includes) {
    if (!segment_)
        return;
    macros_.list_asked(nullptr);
    auto segment = std::move(segment_);
    if (expansion_.is_local)
        return;
    segment->end = file;
    segment->includes = includes;
    segment->counts = expansion_.count(0) - first_number_;
    segment->tokens.assign(unit_.tokens.begin() + first_token_, unit_.tokens.end());
    for (auto &asked : segment->asked)
        if (Macro *macro = macros_.value(asked.name); macro != asked.macro)
            segment->left.push_back({asked.name, macro});
    segments_->keep(std::move(segment));
}

void SegmentNotes::take(const Segment &segment, uint16_t file) {
    const size_t first = unit_.tokens.size();
    unit_.tokens.insert(unit_.tokens.end(), segment.tokens.begin(), segment.tokens.end());
    for (size_t at = first; at < unit_.tokens.size(); at++)
        unit_.tokens[at].file = file;
    const uint64_t number = expansion_.count(segment.counts);
    for (auto &counted : segment.counted)
        count(unit_.tokens[first + counted.token], counted.digits, number + counted.number);
    for (auto &value : segment.left)
        macros_.set(value);
}

// Puts today's number of __COUNTER__ in the place of another.
void SegmentNotes::count(Token &token, uint32_t digits, uint64_t number) {
    const std::string_view text = texts_.copy(std::string(token.view().substr(0, token.size - digits)) + std::to_string(number));
    token.text = text.data();
    token.size = text.size();
    if (token.kind() != Kind::Word)
        return;
    token.name = names_.number(text);
    if (macros_.value(token.name))
        throw Unfit{"own-counter"};
}

}
