/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one way in which a file is refused: a line that says what is wrong with it. */
#ifndef KPERFLAB_REPLAY_REFUSED_H
#define KPERFLAB_REPLAY_REFUSED_H

#include <stdexcept>
#include <string>

struct Refused : std::runtime_error {
	explicit Refused(const std::string &text) : std::runtime_error(text) {}
};

#endif
