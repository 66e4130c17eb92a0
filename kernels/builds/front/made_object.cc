// SPDX-License-Identifier: GPL-2.0-or-later
#include "made_object.h"

#include <algorithm>
#include <string_view>

#include "store.h"

namespace front {

namespace {

constexpr std::string_view WILDCARD = "$(wildcard ";

// The words of the first command of a shell's line; false where it has more than words and quotes.
bool read_command(std::string_view line, Words &words) {
    std::string word;
    bool begun = false;
    for (size_t at = 0; at < line.size(); at++) {
        const char c = line[at];
        if (c == '\'' || c == '"') {
            const size_t end = line.find(c, at + 1);
            if (end == line.npos)
                return false;
            const std::string_view quoted = line.substr(at + 1, end - at - 1);
            if (c == '"' && quoted.find_first_of("$`\\") != quoted.npos)
                return false;
            word += quoted;
            begun = true;
            at = end;
        } else if (c == ' ' || c == '\t' || c == ';') {
            if (begun)
                words.push_back(word);
            word.clear();
            begun = false;
            if (c == ';')
                return true;
        } else if (std::string_view("$`\\|&<>()*?[]{}!#~").find(c) != std::string_view::npos) {
            return false;
        } else {
            word += c;
            begun = true;
        }
    }
    if (begun)
        words.push_back(word);
    return true;
}

// The value of a variable of make whose name begins so and ends with the object's path, up to the end of its line.
bool find_value(std::string_view text, const std::string &name, std::string_view &value) {
    const std::string assigned = name + " := ";
    size_t at = text.find(assigned);
    if (at == text.npos || (at && text[at - 1] != '\n' && text.substr(0, at) != "saved"))
        return false;
    at += assigned.size();
    value = text.substr(at, text.find('\n', at) - at);
    return true;
}

}

bool MadeObject::read(const std::string &path_of_command, const std::string &compiler) {
    const size_t slash = path_of_command.rfind('/') + 1;
    path = path_of_command.substr(0, slash) + path_of_command.substr(slash + 1, path_of_command.size() - slash - 5);
    std::string text;
    std::string_view command, source;
    Words words;
    if (!read_file(path_of_command, text) || !find_value(text, "cmd_" + path, command) || !read_command(command, words) || words.empty() ||
        words[0] != compiler || !find_value(text, "source_" + path, source))
        return false;
    arguments.assign(words.begin() + 1, words.end());
    inputs = {std::string(source)};
    const std::string list = "deps_" + path + " := \\\n";
    const size_t begin = text.find(list);
    if (begin == text.npos)
        return false;
    std::string_view rest = std::string_view(text).substr(begin + list.size());
    // "  FILE \" or "    $(wildcard FILE) \", up to an empty line.
    while (!rest.empty() && rest[0] != '\n') {
        std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
        const bool is_symbol = line.substr(0, WILDCARD.size()) == WILDCARD;
        if (is_symbol)
            line.remove_prefix(WILDCARD.size());
        const size_t end = line.find_first_of(is_symbol ? ")" : " ");
        if (!end || end == line.npos)
            return false;
        (is_symbol ? symbols : inputs).emplace_back(line.substr(0, end));
    }
    return true;
}

}
