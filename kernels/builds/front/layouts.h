// SPDX-License-Identifier: GPL-2.0-or-later
// Asks the compiler for the layouts of structures of which a file needs a part; the store knows what it said before.
#pragma once

#include "compiler.h"
#include "declarations.h"

namespace front {

class Layouts {
public:
    Layouts(const Store &store, const Compiler &compiler, const Temporary &temporary) : store_(store), compiler_(compiler), temporary_(temporary) {}

    // Finds the layouts of all of a file's outlines, and whether gcc takes apart what points to each hollow structure. Structures without a layout are entire.
    void find(Declarations &file) const;

private:
    void find_outlines(Declarations &file) const;
    void find_taken_apart(Declarations &file) const;
    std::string name_of(const Declarations &file, const char *what, uint32_t piece) const;
    bool find(Declarations &file, uint32_t piece) const;
    void ask(const Declarations &file, const std::vector<uint32_t> &pieces) const;
    void try_example(const Declarations &file, const std::vector<uint32_t> &pieces) const;
    bool knows(const std::string &name) const;
    void learn(const std::string &name, const std::string &data) const;

    const Store &store_;
    const Compiler &compiler_;
    const Temporary &temporary_;
};

}
