// SPDX-License-Identifier: GPL-2.0-or-later
// Asks the compiler for the layouts of structures of which a file needs a part; the store knows what it said before.
#pragma once

#include "compiler.h"
#include "declarations.h"

namespace front {

class Layouts {
public:
    Layouts(const Store &store, const Compiler &compiler, const Temporary &temporary) : store_(store), compiler_(compiler), temporary_(temporary) {}

    // Finds the layouts of all of a file's outlines. Structures that have none are entire.
    void find(Declarations &file) const;

private:
    std::string name_of(const Declarations &file, uint32_t piece) const;
    bool find(Declarations &file, uint32_t piece) const;
    void ask(const Declarations &file, const std::vector<uint32_t> &pieces) const;

    const Store &store_;
    const Compiler &compiler_;
    const Temporary &temporary_;
};

}
