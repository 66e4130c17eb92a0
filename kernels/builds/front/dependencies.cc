// SPDX-License-Identifier: GPL-2.0-or-later
#include "dependencies.h"

namespace front {

namespace {

constexpr size_t WIDEST = 72;  // columns

bool is_plain(std::string_view name) {
    for (unsigned char c : name)
        if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') && std::string_view("_./+,=-").find(c) == std::string_view::npos)
            return false;
    return true;
}

}

std::string dependency_file(const Plan &plan) {
    std::string path;
    for (std::string_view flag : plan.before)
        if (flag.substr(0, 5) == "-Wp,-")
            path = flag.substr(flag.find(',', 5) + 1);
    return path;
}

bool dependencies(const Plan &plan, const std::vector<std::string_view> &files, std::string &text) {
    const size_t slash = plan.input.rfind('/') + 1, dot = plan.input.rfind('.');
    text = plan.input.substr(slash, dot - slash) + ".o:";
    size_t column = text.size();
    for (auto file : files) {
        while (file.substr(0, 2) == "./")
            file.remove_prefix(file.find_first_not_of('/', 2) == file.npos ? file.size() : file.find_first_not_of('/', 2));
        if (!is_plain(file))
            return false;
        if (column + file.size() > WIDEST) {
            text += " \\\n";
            column = 0;
        }
        text.append(" ").append(file);
        column += file.size() + 1;
    }
    text += '\n';
    return is_plain(plan.input);
}

}
