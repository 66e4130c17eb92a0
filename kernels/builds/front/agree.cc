// SPDX-License-Identifier: GPL-2.0-or-later
#include "preprocessor.h"

namespace front {

bool agree(const Unit &one, const Unit &other) {
    if (one.tokens.size() != other.tokens.size() || one.folder != other.folder || one.files.empty() || other.files.empty() ||
        one.files[0].name != other.files[0].name)
        return false;
    for (size_t at = 0; at < one.tokens.size(); at++) {
        const Token &ours = one.tokens[at], &theirs = other.tokens[at];
        const Source &our_file = one.files[ours.file], &their_file = other.files[theirs.file];
        if (ours.kind() != theirs.kind() || ours.line != theirs.line || ours.view() != theirs.view() ||
            our_file.name != their_file.name || our_file.system != their_file.system)
            return false;
    }
    return true;
}

}
