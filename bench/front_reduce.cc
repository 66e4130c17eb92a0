// SPDX-License-Identifier: GPL-2.0-or-later
// Prints a preprocessed file without the declarations that its own text does not reach, as the compiler front sees them.
//
// Its words: the file, "used" for what is reached as it is used or "mentioned" for all that is mentioned, then a compiler's path and words.

#include <cstdio>

#include "declarations.h"
#include "layouts.h"
#include "store.h"

int main(int count, char **arguments) {
    front::Unit unit;
    front::Declarations file;
    if (count < 5 || !front::read_file(arguments[1], unit.text))
        return 2;
    front::read_tokens(unit);
    if (!unit.reason.empty())
        return 3;
    file.take(std::move(unit));
    if (!file.find_kept().empty())
        return 3;
    front::Settings settings;
    settings.compiler = arguments[3];
    const front::Plan plan = front::read_arguments({arguments + 4, arguments + count});
    const front::Store store({}, "");
    const front::Temporary temporary;
    const front::Compiler compiler(settings, plan, store, temporary);
    if (arguments[2] == std::string("mentioned"))
        file.keep_mentioned();
    else
        front::Layouts(store, compiler, temporary).find(file);
    std::fputs(file.text(file.to_compile({})).c_str(), stdout);
}
