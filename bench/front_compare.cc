// SPDX-License-Identifier: GPL-2.0-or-later
// Reads a file by the compiler front's own preprocessor, and compares the tokens with those of a text that gcc preprocessed.
//
// Its words: a store's folder, the compiler, the text or "-" for none, sources to read before with commas between them or "-", then the
// compiler's own words. It prints "equal", "read" (nothing to compare), "refused REASON" or "DIFFERS WHERE", and before it the CPU seconds
// of both readings. Our own is made again of what was kept of the headers, and must be the same.

#include <ctime>

#include <cstdio>
#include <sstream>

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

// Whether both readings have the same tokens at the same places.
bool agree(const front::Unit &one, const front::Unit &other) {
    if (one.tokens.size() != other.tokens.size() || one.folder != other.folder || one.files.empty() || other.files.empty() ||
        one.files[0].name != other.files[0].name)
        return false;
    for (size_t number = 0; number < one.tokens.size(); number++) {
        const front::Token &ours = one.tokens[number], &theirs = other.tokens[number];
        const front::Source &our_file = one.files[ours.file], &their_file = other.files[theirs.file];
        if (ours.kind() != theirs.kind() || ours.line != theirs.line || ours.view() != theirs.view() ||
            our_file.name != their_file.name || our_file.system != their_file.system)
            return false;
    }
    return true;
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
    if (count < 6)
        return 2;
    front::Plan plan = front::read_arguments({arguments + 5, arguments + count});
    const front::Store store({arguments[1]}, arguments[1]);
    const front::Temporary temporary;
    const std::string compiler = arguments[2], text = arguments[3], input = plan.input;
    front::Blake2b builtins(32);
    for (auto &flag : plan.compile)
        builtins.add_sized(flag);
    front::OwnReading own(store, plan, temporary, compiler, front::Blake2b(32), front::Blake2b(32), builtins);
    front::Unit ours, again, theirs;
    std::string why = plan.reason.empty() && !own.ask() ? "builtins" : plan.reason;
    front::keep_segments();
    std::istringstream before(arguments[4]);
    while (why.empty() && std::getline(before, plan.input, ',') && plan.input != "-")
        own.read(again);
    plan.input = input;
    const double begun = spent();
    if (why.empty())
        why = own.read(ours);
    const double read = spent();
    if (plan.reason.empty() && (own.read(again = {}) != why || (why.empty() && !agree(ours, again))))
        why = "DIFFERS when it is read again";
    if (text != "-" && front::read_file(text, theirs.text))
        front::read_tokens(theirs);
    const double end = spent();
    if (why.empty() && text != "-") {
        // Both ways to compare must say the same.
        const bool same = theirs.reason.empty() && agree(ours, theirs);
        ours.text = theirs.text;
        why = front::follow_tokens(ours) != same ? "DIFFERS as it is followed" : same ? "equal" : difference(ours, theirs);
    } else if (why.empty())
        why = "read";
    else
        why = "refused " + why;
    std::printf("%.4f %.4f %s\n", read - begun, end - read, why.c_str());
}
