// SPDX-License-Identifier: GPL-2.0-or-later
#include "release.h"

namespace front {

namespace {

constexpr std::string_view GENERATED = "include/generated/utsrelease.h", BEGIN = "-k", END = "zq\"", DIGITS = "0123456789abcdef";

bool &release_placeholder() {
    static bool release_placeholder = false;
    return release_placeholder;
}

}

void use_release_placeholder() { release_placeholder() = true; }

bool names_release(std::string_view path) {
    return path.size() >= GENERATED.size() && path.substr(path.size() - GENERATED.size()) == GENERATED;
}

std::string find_release(std::string_view text) {
    const size_t size = PLACEHOLDER.size(), digits = size - END.size() + 1, close = text.rfind(END);
    if (!release_placeholder() || close == text.npos || close < digits)
        return "";
    const std::string_view found = text.substr(close - digits, size);
    const bool is_key = found.substr(0, BEGIN.size()) == BEGIN && found.find_first_not_of(DIGITS, BEGIN.size()) == digits;
    return is_key && found != PLACEHOLDER ? std::string(found) : "";
}

void replace_all(std::string &text, std::string_view old, std::string_view by) {
    for (size_t at = 0; (at = text.find(old, at)) != text.npos; at += by.size())
        text.replace(at, old.size(), by);
}

}
