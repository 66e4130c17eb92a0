// SPDX-License-Identifier: GPL-2.0-or-later
// Programs that the front runs, and the files that they leave.
#pragma once

#include <unistd.h>

#include <string>
#include <vector>

namespace front {

using Words = std::vector<std::string>;

// Ends with a null, as programs are called.
std::vector<char *> pointers(const Words &words);

// Runs a program with its output and its errors in files; returns its status as waitpid does, or -1.
int run(const Words &command, const std::string &out, const std::string &err);

// Temporary files, removed when the program ends in any way but a signal.
struct Temporary {
    std::string base = "/tmp/kperflab-front-" + std::to_string(getpid());
    ~Temporary() { clear(); }
    std::string operator()(const char *suffix) const { return base + suffix; }
    void clear() const {
        for (auto suffix : {".c", ".i", ".k", ".out", ".err", ".s", ".o", ".bare", ".tree"})
            unlink((base + suffix).c_str());
    }
};

}
