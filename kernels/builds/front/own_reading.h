// SPDX-License-Identifier: GPL-2.0-or-later
// When a file is read by our own preprocessor, and whether that has agreed with gcc's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "digest.h"
#include "processes.h"
#include "store.h"
#include "tokens.h"

namespace front {

class OwnReading {
public:
    // begun: hashes for the names of this compiler's and these flags' files in the store.
    OwnReading(const Store &store, const Plan &plan, const Temporary &temporary, const std::string &compiler, Blake2b agreed,
               Blake2b differs, Blake2b builtins);

    // Whether both have agreed on this file, and never differed.
    bool trusted() const;

    // Has gcc list what it defines, unless the store knows.
    bool ask();

    // Returns why gcc must read it, or "".
    std::string read(Unit &unit);

    // Keeps whether what was read is what gcc made of the same files, their list included.
    void compare(bool same);

    // The dependencies that the compiler would have written; false where it would write a name in another way.
    bool dependencies_text(std::string &text) const;

    // Writes them.
    bool write_dependencies() const;

private:
    bool same_dependencies() const;

    const Store &store_;
    const Plan &plan_;
    const Temporary &temporary_;
    const std::string &compiler_;
    std::string agreed_, differs_, builtins_, listed_;
    std::vector<std::string_view> files_;
    bool agrees_ = false;  // just now; without a store nobody remembers
};

}
