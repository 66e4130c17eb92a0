// SPDX-License-Identifier: GPL-2.0-or-later
// What the lab wrote for the front into "front.conf", next to the program: lines "compiler PATH", "identity HEX", "read FOLDER"
// (several), "write FOLDER", "prove N": one answer in so many is compiled all the same, and must have the same code; and "release
// placeholder": the store keeps other digits for those of the kernel's release (release.h).
#pragma once

#include <string>
#include <vector>

namespace front {

struct Settings {
    std::string program;  // by which name it was called
    std::string compiler, identity, write;
    std::vector<std::string> read;
    bool release_placeholder = false;
    unsigned prove = 0;  // one answer in so many, none if 0
};

// False where the file is missing or names no compiler.
bool read_settings(Settings &settings);

}
