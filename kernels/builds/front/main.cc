// SPDX-License-Identifier: GPL-2.0-or-later
// Stands before the compiler: answers from a store what has been compiled before, in all that matters to the code. Called "sweep",
// it goes through the objects of a finished build first.

#include <cstdio>

#include "compilation.h"
#include "release.h"
#include "sweep.h"

int main(int argc, char **argv) {
    front::Settings settings;
    if (!front::read_settings(settings)) {
        std::fputs("kperflab-front: front.conf is missing or names no compiler\n", stderr);
        return 127;
    }
    if (settings.release_placeholder)
        front::use_release_placeholder();
    if (settings.program == "sweep")
        return front::sweep(settings, {argv + 1, argv + argc});
    return front::Compilation(settings, {argv + 1, argv + argc}).make();
}
