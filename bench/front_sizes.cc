// SPDX-License-Identifier: GPL-2.0-or-later
// Reads a file as the compiler front does, once with larger structures where it needs but a part of them, and compares what the compiler
// reads of both with what it makes of both.
//
// Its words: a folder for a store, the compiler's path, then its words for a file. It prints "none" where the file needs a part of
// no structure, "refused", "other" where the compiler reads something else, "same" where it reads the same and makes the same code,
// and "DIFFERS" where only the code is not the same.

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "source_file.h"

namespace {

// Assembly without its line table.
std::string code(const std::string &assembly) {
    std::istringstream lines(assembly);
    std::string line, kept;
    while (std::getline(lines, line))
        if (line.compare(0, 6, "\t.loc ") && line.compare(0, 7, "\t.file\t"))
            kept += line + '\n';
    return kept;
}

}

int main(int count, char **arguments) {
    if (count < 4)
        return 2;
    const front::Plan plan = front::read_arguments({arguments + 3, arguments + count});
    front::Settings settings;
    settings.compiler = arguments[2];
    const front::Store store({arguments[1]}, arguments[1]);
    const front::Temporary temporary;
    const front::Compiler compiler(settings, plan, store, temporary);
    front::SourceFile source(plan, store, temporary, compiler, settings.compiler);
    front::Declarations &file = source.file;
    if (!plan.reason.empty() || !source.ask() || !source.read_own().empty() || !source.find_kept().empty())
        return !std::puts("refused");
    if (file.hollow.parts.empty())
        return !std::puts("none");
    front::Hollows hollow;
    const std::vector<bool> marked = file.to_compare(hollow);
    std::string trees[2], codes[2];
    for (int way = 0; way < 2; way++) {
        const std::string text = file.text(marked, hollow);
        trees[way] = compiler.tree(text);
        if (trees[way].empty() || !compiler.silent(compiler.compile(text)) || !front::read_file(temporary(".s"), codes[way]))
            return !std::puts("refused");
        auto sizes = file.sizes();
        size_t number = 0;
        for (auto &[piece, needed] : file.hollow.parts)
            sizes[number++] += needed.back() ? 0 : std::max<uint64_t>(64, file.layouts.at(piece).alignment);
        file.set_sizes(sizes);
    }
    std::puts(trees[0] != trees[1] ? "other" : code(codes[0]) == code(codes[1]) ? "same" : "DIFFERS");
}
