// SPDX-License-Identifier: GPL-2.0-or-later
#include "entry.h"

#include <cstring>

namespace front {

namespace {

std::string joined(const std::vector<std::string> &list) {
    std::string data;
    for (auto &text : list)
        add_text(data, text);
    return data;
}

bool take_list(std::string_view &data, std::vector<std::string> &list) {
    std::string joined, text;
    list.clear();
    if (!take_text(data, joined))
        return false;
    for (std::string_view rest = joined; !rest.empty(); list.push_back(text))
        if (!take_text(rest, text))
            return false;
    return true;
}

}

void add_text(std::string &data, std::string_view text) {
    uint64_t size = text.size();
    data.append(reinterpret_cast<const char *>(&size), sizeof size).append(text);
}

bool take_text(std::string_view &data, std::string &text) {
    uint64_t size;
    if (data.size() < sizeof size)
        return false;
    std::memcpy(&size, data.data(), sizeof size);
    data.remove_prefix(sizeof size);
    if (size > data.size())
        return false;
    text = data.substr(0, size);
    data.remove_prefix(size);
    return true;
}

std::string Entry::packed() const {
    std::string data, pairs;
    add_text(data, joined(assembler));
    for (auto &pair : together)
        pairs.append(reinterpret_cast<const char *>(&pair), sizeof pair);
    add_text(data, pairs);
    add_text(data, joined(runs));
    add_text(data, joined(used));
    add_text(data, loose);
    return data;
}

bool Entry::unpack(std::string_view data) {
    std::string pairs;
    if (!take_list(data, assembler) || !take_text(data, pairs) || pairs.size() % sizeof together[0])
        return false;
    together.resize(pairs.size() / sizeof together[0]);
    if (!pairs.empty())
        std::memcpy(static_cast<void *>(together.data()), pairs.data(), pairs.size());
    return take_list(data, runs) && take_list(data, used) && take_text(data, loose);
}

}
