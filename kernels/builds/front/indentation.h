// SPDX-License-Identifier: GPL-2.0-or-later
// gcc's -Wmisleading-indentation and -Wmultistatement-macros look at columns of the source and at macros, which the text that the front
// compiles does not keep.
#pragma once

#include "pieces.h"

namespace front {

// Whether gcc may say of the source that its indentation misleads, by the rule of gcc 12.2 (c-family/c-indentation.cc), or that a macro
// has more statements than its place. Such a file is for gcc to compile.
bool may_mislead(const Unit &unit, const Pieces &pieces);

}
