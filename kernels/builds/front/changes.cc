// SPDX-License-Identifier: GPL-2.0-or-later
#include "changes.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "digest.h"

namespace front {

namespace {

constexpr size_t HASH = 16;

std::string name_hash(std::string_view name) { return Blake2b(8).add(name).bytes(); }

std::string run_name(const std::string &hash) { return hex(hash) + ".r"; }

// A run as stored: of each piece the hash, the number of names and their hashes.
std::string stored(const Unit &unit, const Pieces &pieces, const Run &run) {
    std::string data;
    for (uint32_t number = run.first; number < run.end; number++) {
        const Piece &piece = pieces.all[number];
        data += piece_hash(unit, piece);
        uint32_t count = piece.names_end - piece.names_at;
        data.append(reinterpret_cast<const char *>(&count), sizeof count);
        for (uint32_t at = piece.names_at; at < piece.names_end; at++)
            data += name_hash(unit.names.word(pieces.names[at]));
    }
    return data;
}

struct Before {
    std::vector<std::string> hashes;
    std::vector<std::vector<std::string>> names;

    bool add(const std::string &data) {
        for (size_t at = 0; at < data.size();) {
            uint32_t count;
            if (at + HASH + sizeof count > data.size())
                return false;
            hashes.push_back(data.substr(at, HASH));
            std::memcpy(&count, data.data() + at + HASH, sizeof count);
            at += HASH + sizeof count;
            if (count > (data.size() - at) / 8)
                return false;
            names.emplace_back();
            for (; count; count--, at += 8)
                names.back().push_back(data.substr(at, 8));
        }
        return true;
    }
};

// Which of two lists are the same, in the same order: of what stands once in each, the longest rising sequence.
void match(const std::vector<std::string> &old, const std::vector<std::string> &now, std::vector<bool> &old_same,
           std::vector<bool> &now_same) {
    std::unordered_map<std::string_view, std::pair<int, int>> seen;  // how often, where
    for (size_t at = 0; at < old.size(); at++) {
        auto &entry = seen[old[at]];
        entry = {entry.first + 1, at};
    }
    std::unordered_map<std::string_view, int> times;
    for (auto &hash : now)
        times[hash]++;
    std::vector<int> place(now.size(), -1), tails, back(now.size(), -1);
    for (size_t at = 0; at < now.size(); at++) {
        auto entry = seen.find(now[at]);
        if (entry == seen.end() || entry->second.first != 1 || times[now[at]] != 1)
            continue;
        place[at] = entry->second.second;
        auto tail = std::lower_bound(tails.begin(), tails.end(), place[at],
                                     [&](int number, int value) { return place[number] < value; });
        back[at] = tail == tails.begin() ? -1 : tail[-1];
        if (tail == tails.end())
            tails.push_back(at);
        else
            *tail = at;
    }
    old_same.assign(old.size(), false);
    now_same.assign(now.size(), false);
    for (int at = tails.empty() ? -1 : tails.back(); at >= 0; at = back[at])
        old_same[place[at]] = now_same[at] = true;
}

}

std::vector<Run> runs_of(const Unit &unit, const Pieces &pieces) {
    std::vector<Run> runs;
    for (uint32_t number = 0; number < pieces.all.size();) {
        uint32_t end = number;
        std::string content;
        while (end < pieces.all.size() && pieces.all[end].file == pieces.all[number].file)
            add_content(unit, pieces.all[end++], content);
        if (pieces.all[number].header)
            runs.push_back({number, end, Blake2b(HASH).add(content).bytes()});
        number = end;
    }
    return runs;
}

bool keep_runs(const Store &store, const Unit &unit, const Pieces &pieces, const std::vector<Run> &runs) {
    for (auto &run : runs)
        if (!store.has(run_name(run.hash)) && !store.put(run_name(run.hash), stored(unit, pieces, run)))
            return false;
    return true;
}

bool changed(const Store &store, const Unit &unit, const Pieces &pieces, const std::vector<Run> &runs,
             const std::vector<std::string> &before, std::vector<bool> &marked) {
    std::vector<std::string> now;
    for (auto &run : runs)
        now.push_back(run.hash);
    std::vector<bool> old_same, now_same;
    match(before, now, old_same, now_same);
    Before old;
    for (size_t at = 0; at < before.size(); at++) {
        std::string data;
        if (!old_same[at] && (!store.get(run_name(before[at]), data) || !old.add(data)))
            return false;
    }
    std::vector<uint32_t> numbers;
    std::vector<std::string> hashes;
    for (size_t at = 0; at < runs.size(); at++)
        for (uint32_t number = runs[at].first; !now_same[at] && number < runs[at].end; number++) {
            numbers.push_back(number);
            hashes.push_back(piece_hash(unit, pieces.all[number]));
        }
    match(old.hashes, hashes, old_same, now_same);
    std::unordered_set<std::string> gone;
    for (size_t at = 0; at < old.hashes.size(); at++)
        if (!old_same[at])
            gone.insert(old.names[at].begin(), old.names[at].end());
    std::vector<bool> names(unit.names.count());
    for (uint32_t name = 0; !gone.empty() && name < unit.names.count(); name++)
        names[name] = gone.count(name_hash(unit.names.word(name)));
    auto mark = [&](uint32_t number) {
        marked[number] = true;
        for (uint32_t at = pieces.all[number].names_at; at < pieces.all[number].names_end; at++)
            names[pieces.names[at]] = true;
    };
    for (size_t at = 0; at < numbers.size(); at++)
        if (!now_same[at])
            mark(numbers[at]);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t number = 0; number < pieces.all.size(); number++) {
            if (marked[number])
                continue;
            bool hit = false;
            mentions(unit, pieces.all[number], [&](uint32_t name) { hit |= names[name]; });
            if (hit) {
                mark(number);
                more = true;
            }
        }
    }
    return true;
}

}
