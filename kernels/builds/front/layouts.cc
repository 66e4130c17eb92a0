// SPDX-License-Identifier: GPL-2.0-or-later
#include "layouts.h"

#include <cstring>
#include <unordered_map>

namespace front {

namespace {

const std::string NONE = "none";

// What this process knows: a sweep's files have most of their structures in common.
std::unordered_map<std::string, std::string> &known() {
    static std::unordered_map<std::string, std::string> known;
    return known;
}

std::string packed(const Layout &layout) {
    std::string data;
    auto add = [&](uint64_t number) { data.append(reinterpret_cast<const char *>(&number), sizeof number); };
    add(layout.size);
    add(layout.alignment);
    for (size_t member = 0; member < layout.begins.size(); member++) {
        add(layout.begins[member]);
        add(layout.ends[member]);
    }
    return data;
}

bool unpack(std::string_view data, size_t members, Layout &layout) {
    if (data.size() != (2 + 2 * members) * sizeof(uint64_t))
        return false;
    auto take = [&] {
        uint64_t number;
        std::memcpy(&number, data.data(), sizeof number);
        data.remove_prefix(sizeof number);
        return number;
    };
    layout = {take(), take(), {}, {}};
    while (!data.empty()) {
        layout.begins.push_back(take());
        layout.ends.push_back(take());
    }
    return true;
}

}

void Layouts::find(Declarations &file) const {
    for (;;) {
        std::vector<uint32_t> unknown;
        bool again = false;
        for (auto &part : file.hollow.parts) {
            if (file.layouts.count(part.first) || find(file, part.first))
                continue;
            if (known().count(name_of(file, part.first)))
                again = file.entire[part.first] = true;
            else
                unknown.push_back(part.first);
        }
        if (!unknown.empty()) {
            ask(file, unknown);
            // What has no answer among others may have one alone.
            for (auto piece : unknown)
                if (!known().count(name_of(file, piece)))
                    ask(file, {piece});
            for (auto piece : unknown)
                if (known().try_emplace(name_of(file, piece), NONE).second)
                    store_.put(name_of(file, piece), NONE);
            continue;
        }
        if (!again)
            return;
        file.reach_again();
    }
}

// By the sum of all that its definition needs.
std::string Layouts::name_of(const Declarations &file, uint32_t piece) const {
    return hex(compiler_.begun("layout").add_sized(file.reading.sum(piece)).bytes()) + ".k";
}

bool Layouts::find(Declarations &file, uint32_t piece) const {
    const std::string name = name_of(file, piece);
    auto here = known().find(name);
    if (here == known().end()) {
        std::string data;
        if (!store_.get(name, data))
            return false;
        here = known().emplace(name, data).first;
    }
    Layout layout;
    if (!unpack(here->second, members_of(file.unit, file.pieces.all[piece]).size(), layout))
        return false;
    file.layouts[piece] = std::move(layout);
    return true;
}

void Layouts::ask(const Declarations &file, const std::vector<uint32_t> &pieces) const {
    std::string text = file.structures(pieces), assembly;
    for (auto piece : pieces)
        text += layout_question(file.unit, file.pieces.all[piece], members_of(file.unit, file.pieces.all[piece]), "kperflab_front_layout" + std::to_string(piece));
    const int status = compiler_.compile(text);
    store_.count("layouts");
    if (status || !read_file(temporary_(".s"), assembly))
        return;
    for (auto piece : pieces) {
        Layout layout;
        if (read_layout(assembly, "kperflab_front_layout" + std::to_string(piece), members_of(file.unit, file.pieces.all[piece]).size(), layout)) {
            const std::string name = name_of(file, piece);
            known()[name] = packed(layout);
            store_.put(name, known()[name]);
        }
    }
}

}
