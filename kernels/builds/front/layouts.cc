// SPDX-License-Identifier: GPL-2.0-or-later
#include "layouts.h"

#include <cstring>
#include <map>
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

std::string label(uint32_t piece) { return "kperflab_front_layout" + std::to_string(piece); }

}

void Layouts::find(Declarations &file) const {
    find_outlines(file);
    find_taken_apart(file);
}

void Layouts::find_outlines(Declarations &file) const {
    for (;;) {
        std::vector<uint32_t> unknown;
        bool again = false;
        for (auto &part : file.hollow.parts) {
            if (file.layouts.count(part.first) || find(file, part.first))
                continue;
            if (knows(name_of(file, "layout", part.first)))
                again = file.entire[part.first] = true;
            else
                unknown.push_back(part.first);
        }
        if (!unknown.empty()) {
            ask(file, unknown);
            // What has no answer among others may have one alone.
            for (auto piece : unknown)
                if (!knows(name_of(file, "layout", piece)))
                    ask(file, {piece});
            for (auto piece : unknown)
                if (const auto name = name_of(file, "layout", piece); !knows(name))
                    learn(name, NONE);
            continue;
        }
        if (!again)
            return;
        file.reach_again();
    }
}

void Layouts::find_taken_apart(Declarations &file) const {
    std::map<uint32_t, std::string> names;
    std::vector<uint32_t> unknown;
    for (uint32_t piece = 0; piece < file.hollow.is.size(); piece++)
        if (file.hollow.is[piece] && !knows(names.emplace(piece, name_of(file, "taken apart", piece)).first->second))
            unknown.push_back(piece);
    if (!unknown.empty())
        try_example(file, unknown);
    for (auto &[piece, name] : names)
        file.taken_apart[piece] = known().at(name) == NONE ? file.reading.sum(piece) : known().at(name);
}

// By the sum of all that its definition needs.
std::string Layouts::name_of(const Declarations &file, const char *what, uint32_t piece) const {
    return hex(compiler_.begun(what).add_sized(file.reading.sum(piece)).bytes()) + ".k";
}

bool Layouts::knows(const std::string &name) const {
    std::string data;
    if (known().count(name))
        return true;
    if (!store_.get(name, data))
        return false;
    known()[name] = data;
    return true;
}

void Layouts::learn(const std::string &name, const std::string &data) const {
    known()[name] = data;
    store_.put(name, data);
}

bool Layouts::find(Declarations &file, uint32_t piece) const {
    const std::string name = name_of(file, "layout", piece);
    Layout layout;
    if (!knows(name) || !unpack(known().at(name), members_of(file.unit, file.pieces.all[piece]).size(), layout))
        return false;
    file.layouts[piece] = std::move(layout);
    return true;
}

void Layouts::ask(const Declarations &file, const std::vector<uint32_t> &pieces) const {
    std::string text = file.structures(pieces), assembly;
    for (auto piece : pieces)
        text += layout_question(file.unit, file.pieces.all[piece], members_of(file.unit, file.pieces.all[piece]), label(piece));
    const int status = compiler_.compile(text);
    store_.count("layouts");
    if (status || !read_file(temporary_(".s"), assembly))
        return;
    for (auto piece : pieces) {
        Layout layout;
        if (read_layout(assembly, label(piece), members_of(file.unit, file.pieces.all[piece]).size(), layout))
            learn(name_of(file, "layout", piece), packed(layout));
    }
}

// What gives no answer among others may have one in a half of them, or alone.
void Layouts::try_example(const Declarations &file, const std::vector<uint32_t> &pieces) const {
    const int status = compiler_.compile(file.structures(pieces) + example(file.unit, file.pieces, pieces));
    std::string assembly;
    store_.count("examples");
    if (!status && read_file(temporary_(".s"), assembly)) {
        for (auto piece : pieces)
            learn(name_of(file, "taken apart", piece), takes_apart(assembly, piece) ? "yes" : "no");
    } else if (pieces.size() > 1) {
        const auto middle = pieces.begin() + pieces.size() / 2;
        try_example(file, {pieces.begin(), middle});
        try_example(file, {middle, pieces.end()});
    } else {
        learn(name_of(file, "taken apart", pieces[0]), NONE);
    }
}

}
