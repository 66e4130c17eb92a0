// SPDX-License-Identifier: GPL-2.0-or-later
// What the front leaves beside an object, for the build that comes next: ".NAME.o.front" says what it was made of, and
// ".NAME.o.ready" is an answer that make has not asked for yet.
#pragma once

#include <string>
#include <vector>

namespace front {

struct Ready {
    std::string arguments;     // a sum of them
    std::string files;         // a sum of what the answer was read from, see sum_of_files
    std::string key;
    std::string dependencies;  // for make
    std::vector<std::string> assembler;
    std::string assembly;
};

class Beside {
public:
    // object: its path; "" has nothing beside it.
    explicit Beside(const std::string &object);

    // What the object was made of, "" if nobody knows.
    std::string made_of() const;
    void keep_made_of(const std::string &sum) const;
    // Has the object compiled even if the store answers.
    void ask_for_proof() const { keep_made_of("prove"); }
    static bool is_proof(const std::string &made_of) { return made_of == "prove"; }

    bool ready(Ready &answer) const;
    bool keep_ready(const Ready &answer) const;

    // Before the object is made anew.
    void clear() const;

private:
    std::string record_, ready_;
};

// A sum over numbers, sizes and times of the files in a list for make; "" if one is missing. changed: raised to when one last was, in ns.
std::string sum_of_files(const std::string &dependencies, int64_t *changed = nullptr);

}
