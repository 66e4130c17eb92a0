// SPDX-License-Identifier: GPL-2.0-or-later
#include "proof.h"

#include <sys/random.h>

#include "store.h"

namespace front {

bool is_drawn(unsigned among) {
    unsigned drawn = 0;
    return among && getrandom(&drawn, sizeof drawn, 0) == sizeof drawn && drawn % among == 0;
}

bool same_code(const std::string &one, const std::string &other, const Temporary &temporary) {
    std::string code[2];
    for (int which = 0; which < 2; which++) {
        const std::string bare = temporary(".bare");
        unlink(bare.c_str());
        if (run({"/usr/bin/objcopy", "--strip-debug", which ? other : one, bare}, temporary(".out"), temporary(".err")) ||
            !read_file(bare, code[which]))
            return false;
    }
    return code[0] == code[1];
}

}
