// SPDX-License-Identifier: GPL-2.0-or-later
// What a compiler defines of its own accord with some flags: asked once, by the text of question().
#pragma once

#include <string>
#include <string_view>

#include "expansion.h"

namespace front {

// A C file; gcc -dM -E lists the answers among its macros.
std::string question();

// Defines what the compiler listed.
void define_builtins(std::string_view listed, Names &names, Memory &texts, Macros &macros, Expansion &expansion);

// Whether a macro that no list of gcc's names is one that the question asks for.
bool is_asked(std::string_view special);

}
