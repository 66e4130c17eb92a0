// SPDX-License-Identifier: GPL-2.0-or-later
#include "settings.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "store.h"

namespace front {

bool read_settings(Settings &settings) {
    char self[4096];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self);
    if (size <= 0)
        return false;
    std::string path(self, size), text, line;
    const size_t slash = path.rfind('/') + 1;
    settings.program = path.substr(slash);
    if (!read_file(path.substr(0, slash) + "front.conf", text))
        return false;
    std::istringstream lines(text);
    while (std::getline(lines, line)) {
        size_t space = line.find(' ');
        if (space == line.npos)
            return false;
        std::string word = line.substr(0, space), value = line.substr(space + 1);
        if (word == "compiler")
            settings.compiler = value;
        else if (word == "identity")
            settings.identity = value;
        else if (word == "read")
            settings.read.push_back(value);
        else if (word == "write")
            settings.write = value;
        else if (word == "release")
            settings.release_placeholder = value == "placeholder";
        else if (word == "prove")
            settings.prove = std::strtoul(value.c_str(), nullptr, 10);
    }
    return !settings.compiler.empty() && !settings.identity.empty();
}

}
