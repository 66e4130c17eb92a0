// SPDX-License-Identifier: GPL-2.0-or-later
// The kernel's release ends with the build's own key, so that the files that name it would be compiled for each kernel. The store keeps
// them with other digits in its place, and an answer gets those of today.
#pragma once

#include <string>
#include <string_view>

namespace front {

// As kernels/builds/request.py ends a release, with a key that no build has.
inline constexpr std::string_view PLACEHOLDER = "-k000000000000zq";

// From now on: for this process.
void use_release_placeholder();

// Whether kbuild writes the release to a file of this path.
bool names_release(std::string_view path);

// The end of the release in the text of that file, or "" where it is to stay.
std::string find_release(std::string_view text);

// Puts the one in the place of the other, which is as long, wherever it stands.
void replace_all(std::string &text, std::string_view old, std::string_view by);

}
