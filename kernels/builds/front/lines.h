// SPDX-License-Identifier: GPL-2.0-or-later
// Whether line numbers are right in a text that was preprocessed the cheap way.
#pragma once

#include <vector>

#include "pieces.h"

namespace front {

// Without -ftrack-macro-expansion=2 the preprocessor takes two thirds of the time, but __LINE__ in an argument of a macro
// becomes the line where the outermost macro stands, not its own. Returns whether no kept piece has such a number, as
// far as the files themselves show; the text must have been preprocessed with -dU.
bool lines_hold(const Unit &unit, const Pieces &pieces, const std::vector<bool> &kept);

}
