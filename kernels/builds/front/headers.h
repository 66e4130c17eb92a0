// SPDX-License-Identifier: GPL-2.0-or-later
// Where #include finds files, as gcc looks for them, and their texts.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "memory.h"
#include "scanner.h"

namespace front {

struct Header {
    std::string_view path;  // as gcc spells it
    std::string_view text;  // between a newline and a null
    std::string_view release;  // the end of the kernel's release, if the text has PLACEHOLDER for it
    uint32_t guard = NO_NAME;   // a macro: while it is defined the file has nothing
    bool trigraphs = false;   // may have some
    bool directions = false;  // has characters that change the direction of writing, of which gcc says so wherever they stand
    bool once = false;
    bool used = false;
    uint16_t number = 0;    // among a unit's files
    std::vector<std::pair<std::string_view, bool>> names;  // by which it was found, and whether beside the file that includes it
};

class Headers {
public:
    explicit Headers(Memory &memory) : memory_(&memory) {}

    // Adds a folder to search, unless it is missing or there already; quoted: for "name" alone.
    void add(const std::string &folder, bool quoted);

    // In place of the first header gcc takes a precompiled one, "NAME.gch" (pch_open_file).
    bool is_first = true;

    // The file, or null; within: the folder of the including file, with its '/'.
    Header *find(std::string_view name, bool angled, std::string_view within, bool &beside);
    // The file of this very path, or null.
    Header *open(std::string_view path);

private:
    struct Folder {
        std::string name;
        dev_t device;
        ino_t number;
    };

    Header *search(std::string_view name, const std::vector<Folder> &folders);

    Memory *memory_;
    std::vector<Folder> quoted_, angled_;
    std::unordered_map<std::string_view, Header *> known_;  // by path; null where there is none
    std::unordered_map<std::string_view, Header *> found_;  // by name in angles
    std::vector<std::unique_ptr<Header>> all_;
};

}
