// SPDX-License-Identifier: GPL-2.0-or-later
#include "release.h"

namespace front {

namespace {

constexpr std::string_view GENERATED = "include/generated/utsrelease.h", BEGIN = "-k", END = "zq\"", DIGITS = "0123456789abcdef";

bool &stands_in() {
    static bool stands_in = false;
    return stands_in;
}

}

void stand_in_for_releases() { stands_in() = true; }

bool names_release(std::string_view path) {
    return path.size() >= GENERATED.size() && path.substr(path.size() - GENERATED.size()) == GENERATED;
}

std::string find_release(std::string_view text) {
    const size_t size = STAND_IN.size(), digits = size - END.size() + 1, close = text.rfind(END);
    if (!stands_in() || close == text.npos || close < digits)
        return "";
    const std::string_view found = text.substr(close - digits, size);
    const bool is_key = found.substr(0, BEGIN.size()) == BEGIN && found.find_first_not_of(DIGITS, BEGIN.size()) == digits;
    return is_key && found != STAND_IN ? std::string(found) : "";
}

void replace_all(std::string &text, std::string_view old, std::string_view by) {
    for (size_t at = 0; (at = text.find(old, at)) != text.npos; at += by.size())
        text.replace(at, old.size(), by);
}

}
