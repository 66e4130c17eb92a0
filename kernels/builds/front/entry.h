// SPDX-License-Identifier: GPL-2.0-or-later
// What the store keeps of one compilation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace front {

struct Entry {
    std::vector<std::string> assembler;                   // options
    std::vector<std::pair<uint32_t, uint32_t>> together;  // places that must begin on one line
    std::vector<std::string> runs;                        // sums, rising
    std::vector<std::string> used;                        // names: see Declarations::shown_used()
    std::string loose;

    std::string packed() const;
    bool unpack(std::string_view data);
};

// A text behind its size, so that no two lists of texts look alike.
void add_text(std::string &data, std::string_view text);
// Takes the first text off; false where there is none.
bool take_text(std::string_view &data, std::string &text);

}
