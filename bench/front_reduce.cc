// SPDX-License-Identifier: GPL-2.0-or-later
// Prints a preprocessed file without the declarations that its own text does not reach, as the compiler front sees them:
// as they are used, or with a second argument all that are mentioned.

#include <cstdio>

#include "declarations.h"
#include "store.h"

int main(int count, char **arguments) {
    front::Unit unit;
    front::Declarations file;
    if (count < 2 || !front::read_file(arguments[1], unit.text))
        return 2;
    front::read_tokens(unit);
    if (!unit.reason.empty())
        return 3;
    file.take(std::move(unit));
    if (!file.find_kept().empty())
        return 3;
    if (count > 2)
        file.keep_mentioned();
    std::vector<bool> hollow;
    const std::vector<bool> marked = file.to_compile({}, hollow);
    std::fputs(file.text(marked, hollow).c_str(), stdout);
}
