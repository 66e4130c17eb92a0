// SPDX-License-Identifier: GPL-2.0-or-later
// Calls of the compiler and the assembler for one source file, and the sums that what they made is kept by.
#pragma once

#include <string>

#include "arguments.h"
#include "digest.h"
#include "processes.h"
#include "settings.h"
#include "store.h"

namespace front {

class Compiler {
public:
    Compiler(const Settings &settings, const Plan &plan, const Store &store, const Temporary &temporary)
        : settings_(settings), plan_(plan), store_(store), temporary_(temporary) {}

    // A hash of what every compilation with these flags has in common. The identity has the front's recipe in it (request.py).
    Blake2b begun(const char *what) const;

    // Whether the last call went well and said nothing. status: what it returned.
    bool silent(int status) const;
    // Whether all that it said last are warnings that it spares what macros expand to, or what the text leaves out uses.
    bool complains_of_expansions() const;

    // Preprocesses the source, with these flags more. Returns why it cannot without a word, or "".
    std::string preprocess(const Words &more, std::string &text) const;
    // Whether a preprocessed text has nothing to complain of.
    bool accepts(const std::string &text) const;
    // What the compiler reads in a preprocessed text, before it makes code of it; "" where it has anything to complain of.
    std::string tree(const std::string &text) const;
    // Compiles a preprocessed text to assembly, in the temporary ".s". Returns the status, -1 if there was no call.
    int compile(const std::string &text) const;
    // Compile to the temporary ".o": the source, or what it was last preprocessed to.
    int compile_source() const;
    int compile_preprocessed() const;

    // The words for the assembler, as the compiler would call it: asked once for these flags. False if it does not tell.
    bool assembler(Words &options) const;
    // Makes the object. Returns why it cannot without a word, or "".
    std::string assemble(const Words &options, const std::string &assembly) const;

private:
    int call(const Words &flags, const Words &more) const;
    bool write_text(const std::string &text) const;
    bool read_assembler(Words &options) const;

    const Settings &settings_;
    const Plan &plan_;
    const Store &store_;
    const Temporary &temporary_;
};

}
