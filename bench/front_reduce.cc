// SPDX-License-Identifier: GPL-2.0-or-later
// Prints a preprocessed file without the declarations that its own text does not reach, as the compiler front sees them.

#include <cstdio>

#include "reach.h"
#include "store.h"

int main(int count, char **arguments) {
    front::Unit unit;
    front::Pieces pieces;
    if (count != 2 || !front::read_file(arguments[1], unit.text))
        return 2;
    front::read_tokens(unit);
    std::string why = unit.reason.empty() ? front::split(unit, pieces) : unit.reason;
    if (!why.empty())
        return 3;
    std::vector<bool> kept(pieces.all.size());
    for (size_t number = 0; number < kept.size(); number++)
        kept[number] = pieces.all[number].always || pieces.all[number].locals;
    front::reach(unit, pieces, kept);
    std::printf("# 0 \"%s\"\n", std::string(unit.files[0].name).c_str());
    for (size_t number = 0; number < kept.size(); number++) {
        if (!kept[number])
            continue;
        const front::Token &first = unit.tokens[pieces.all[number].first], &last = unit.tokens[pieces.all[number].end - 1];
        std::printf("# %u \"%s\"\n", first.line, std::string(unit.files[first.file].name).c_str());
        std::printf("%.*s\n", static_cast<int>(last.text + last.size - first.text), first.text);
    }
}
