// SPDX-License-Identifier: GPL-2.0-or-later
// Reads a file by the compiler front's own preprocessor, and compares the tokens with those of a text that gcc preprocessed.
//
// Its words: a store's folder, the compiler, the text or "-" for none, then the compiler's own words. It prints "equal",
// "read" (nothing to compare), "refused REASON" or "DIFFERS WHERE", and before it the CPU seconds of both readings.

#include <ctime>

#include <cstdio>

#include "own_reading.h"
#include "preprocessor.h"

namespace {

double spent() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

std::string at(const front::Unit &unit, size_t number) {
    if (number >= unit.tokens.size())
        return "the end";
    const front::Token &token = unit.tokens[number];
    return std::string(token.view()) + " at " + std::string(unit.files[token.file].name) + ":" + std::to_string(token.line);
}

// Where two readings differ first.
std::string difference(const front::Unit &ours, const front::Unit &theirs) {
    size_t number = 0;
    while (number < ours.tokens.size() && at(ours, number) == at(theirs, number))
        number++;
    return "DIFFERS token " + std::to_string(number) + ": " + at(ours, number) + ", by gcc " + at(theirs, number);
}

}

int main(int count, char **arguments) {
    if (count < 5)
        return 2;
    const front::Plan plan = front::read_arguments({arguments + 4, arguments + count});
    const front::Store store({arguments[1]}, arguments[1]);
    const front::Temporary temporary;
    const std::string compiler = arguments[2], text = arguments[3];
    front::Blake2b builtins(32);
    for (auto &flag : plan.compile)
        builtins.add_sized(flag);
    front::OwnReading own(store, plan, temporary, compiler, front::Blake2b(32), front::Blake2b(32), builtins);
    front::Unit ours, theirs;
    std::string why = plan.reason.empty() && !own.ask() ? "builtins" : plan.reason;
    const double begun = spent();
    if (why.empty())
        why = own.read(ours);
    const double read = spent();
    if (text != "-" && front::read_file(text, theirs.text))
        front::read_tokens(theirs);
    const double end = spent();
    if (why.empty())
        why = text == "-" ? "read" : theirs.reason.empty() && front::agree(ours, theirs) ? "equal" : difference(ours, theirs);
    else
        why = "refused " + why;
    std::printf("%.4f %.4f %s\n", read - begun, end - read, why.c_str());
}
