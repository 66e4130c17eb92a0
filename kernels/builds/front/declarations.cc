// SPDX-License-Identifier: GPL-2.0-or-later
#include "declarations.h"

#include <algorithm>

#include "entry.h"
#include "reach.h"

namespace front {

void Declarations::take(Unit next) {
    unit = std::move(next);
    unit.reason.clear();
    pieces = {};
    is_split_ = false;
    forget();
}

// What is kept is another.
void Declarations::forget() {
    content_.clear();
    elsewhere_.reset();
}

std::string Declarations::find_kept() {
    pieces = {};
    std::string why = split(unit, pieces);
    if (!why.empty())
        return why;
    reading = read_runs(unit, pieces);
    layouts.clear();
    taken_apart.clear();
    entire.assign(pieces.all.size(), false);
    reach_again();
    is_split_ = true;
    return "";
}

void Declarations::reach_again() {
    kept.assign(pieces.all.size(), false);
    for (size_t number = 0; number < kept.size(); number++)
        kept[number] = pieces.all[number].always;
    reach_as_used(unit, pieces, reading, entire, kept, hollow);
    forget();
}

void Declarations::keep_mentioned() {
    reach(unit, pieces, kept);
    hollow = {std::vector<bool>(pieces.all.size()), {}};
    forget();
}

bool Declarations::has_hollow() const { return std::find(hollow.is.begin(), hollow.is.end(), true) != hollow.is.end(); }

void Declarations::add_kept(Blake2b &hash, Numbers numbers) const {
    hash.add_sized(content());
    for (size_t number = 0; number < kept.size(); number++)
        if (hollow.is[number])
            hash.add_sized(outlined(number, hollow, numbers)).add_sized(attributes(pieces.all[number])).add_sized(taken_apart.at(number));
}

// A sum over all that add_kept() adds but outlines, which alone have numbers; of these their places are here.
const std::string &Declarations::content() const {
    if (!content_.empty())
        return content_;
    Blake2b hash(32);
    std::string content;
    for (size_t number = 0; number < kept.size(); number++) {
        const Piece &piece = pieces.all[number];
        if (hollow.is[number])
            hash.add_sized("outline");
        // One that is not kept still has a say in the numbers of the variables after it.
        if (!kept[number] && !piece.locals)
            continue;
        if (piece.code)
            add_text(content, unit.files[piece.file].name);
        // Of a system header the compiler says less, also of what it has stored with a word or two.
        if (unit.files[piece.file].system)
            add_text(content, "system");
        add_content(unit, piece, content);
        hash.add_sized(content);
        content.clear();
    }
    for (auto name : used_elsewhere())
        hash.add_sized(unit.names.word(name));
    return content_ = hash.bytes();
}

std::string Declarations::expanded() const {
    std::string list;
    for (size_t number = 0; number < kept.size(); number++) {
        const Piece &piece = pieces.all[number];
        for (uint32_t at = piece.first; (kept[number] || piece.locals) && at < piece.end; at++)
            list.push_back(unit.tokens[at].expanded() ? '1' : '0');
    }
    for (auto &[number, needed] : hollow.parts) {
        const auto members = members_of(unit, pieces.all[number]);
        for (size_t member = 0; member < members.size(); member++)
            for (uint32_t at = members[member].first; needed[member] && at < members[member].end; at++)
                list.push_back(unit.tokens[at].expanded() ? '1' : '0');
    }
    return list;
}

std::string Declarations::whole() const {
    std::string list;
    for (auto &token : unit.tokens)
        list.append(token.view()).append(token.expanded() ? "\n1" : "\n0").push_back(unit.files[token.file].system ? '1' : '0');
    return Blake2b(WHOLE).add(list).bytes();
}

std::vector<Place> Declarations::places() const {
    std::vector<Place> list;
    for (size_t number = 0; number < kept.size(); number++) {
        const Piece &piece = pieces.all[number];
        if (kept[number] && piece.code && !piece.mixed)
            list.push_back({unit.files[piece.file].name, piece.line, piece.last_line});
        else if (kept[number] && piece.code)
            add_places(piece, list);
    }
    return list;
}

// One for each file of a piece, as they come: the piece's key names their lines.
void Declarations::add_places(const Piece &piece, std::vector<Place> &list) const {
    const size_t first = list.size();
    for (uint32_t at = piece.first; at < piece.end; at++) {
        const Token &token = unit.tokens[at];
        auto name = unit.files[token.file].name;
        auto place = std::find_if(list.begin() + first, list.end(), [&](auto &one) { return one.file == name; });
        if (place == list.end())
            place = list.insert(place, {name, token.line, token.line});
        place->line = std::min(place->line, token.line);
        place->last_line = std::max(place->last_line, token.line);
    }
}

// What must be used, and is not surely.
std::vector<uint32_t> Declarations::doubted() const {
    std::vector<uint32_t> names = idle(kept);
    names.insert(names.end(), used_elsewhere().begin(), used_elsewhere().end());
    names.erase(std::remove_if(names.begin(), names.end(), [&](auto name) { return reading.uses[name]; }), names.end());
    return names;
}

bool Declarations::all_used(const std::vector<std::string> &shown) const {
    const auto names = doubted();
    return std::all_of(names.begin(), names.end(), [&](auto name) { return std::find(shown.begin(), shown.end(), unit.names.word(name)) != shown.end(); });
}

std::vector<std::string> Declarations::shown_used(const std::vector<bool> &compiled) const {
    std::vector<bool> mentioned(unit.names.count());
    for (size_t number = 0; number < kept.size(); number++) {
        const Piece &piece = pieces.all[number];
        auto note = [&](uint32_t at, uint32_t end) {
            for (; at < end; at++)
                if (is_name(unit.tokens[at]) && !is_tag_or_member(unit.tokens, piece, at))
                    mentioned[unit.tokens[at].name] = true;
            return false;
        };
        if (compiled[number] && !kept[number])
            any_expression(unit.tokens, piece, note);
    }
    std::vector<std::string> shown;
    for (auto name : doubted())
        if (!mentioned[name])
            shown.emplace_back(unit.names.word(name));
    return shown;
}

std::vector<bool> Declarations::to_compile(const std::vector<uint32_t> &numbers) const {
    std::vector<bool> marked = kept;
    for (size_t number = 0; number < marked.size(); number++)
        marked[number] = marked[number] || pieces.all[number].locals;
    mark(numbers, marked);
    return marked;
}

std::vector<bool> Declarations::to_compare(Hollows &hollow_there) const {
    std::vector<bool> marked = kept, unknown(kept.size(), true);
    for (size_t number = 0; number < marked.size(); number++)
        marked[number] = marked[number] || pieces.all[number].locals;
    hollow_there = {std::vector<bool>(marked.size()), {}};
    for (auto &known : layouts)
        unknown[known.first] = false;
    reach_as_used(unit, pieces, reading, unknown, marked, hollow_there);
    return marked;
}

// What headers define for this file alone, which the compiler wants to be used by something, be it by what is not.
std::vector<uint32_t> Declarations::idle(const std::vector<bool> &marked) const {
    std::vector<uint32_t> names;
    for (size_t number = 0; number < marked.size(); number++) {
        const Piece &piece = pieces.all[number];
        for (uint32_t at = piece.names_at; marked[number] && piece.idle && piece.header && at < piece.names_end; at++)
            if (pieces.how[at] == Declares::Ordinary)
                names.push_back(pieces.names[at]);
    }
    return names;
}

// What the file's own text defines for itself alone and a declaration that is left out mentions: without it the compiler may complain.
const std::vector<uint32_t> &Declarations::used_elsewhere() const {
    if (elsewhere_)
        return *elsewhere_;
    std::vector<bool> mentioned(unit.names.count());
    for (size_t number = 0; number < kept.size(); number++)
        for (uint32_t at = pieces.all[number].first; !kept[number] && at < pieces.all[number].end; at++)
            if (unit.tokens[at].kind() == Kind::Word)
                mentioned[unit.tokens[at].name] = true;
    std::vector<uint32_t> names;
    for (auto &piece : pieces.all) {
        bool is_static = false;
        for (uint32_t at = piece.first; !piece.header && at < piece.body && !is_static; at++)
            is_static = role_of(unit.tokens[at]) == Role::Static;
        for (uint32_t at = piece.names_at; is_static && at < piece.names_end; at++)
            if (mentioned[pieces.names[at]] && pieces.how[at] == Declares::Ordinary)
                names.push_back(pieces.names[at]);
    }
    return elsewhere_.emplace(std::move(names));
}

void Declarations::mark_these(const std::vector<uint32_t> &numbers, std::vector<bool> &marked) const {
    for (auto number : numbers)
        marked[number] = true;
    for (size_t number = 0; number < marked.size(); number++)
        marked[number] = marked[number] || pieces.all[number].pragma;
}

void Declarations::mark(const std::vector<uint32_t> &numbers, std::vector<bool> &marked) const {
    mark_these(numbers, marked);
    for (size_t number = 0; number < marked.size(); number++) {
        const Piece &piece = pieces.all[number];
        marked[number] = marked[number] || (piece.always && piece.header && piece.body == piece.end);
    }
    reach(unit, pieces, marked);
}

std::string Declarations::structures(const std::vector<uint32_t> &numbers) const {
    std::vector<bool> marked(pieces.all.size());
    Hollows there;
    mark_these(numbers, marked);
    reach_as_used(unit, pieces, reading, std::vector<bool>(marked.size(), true), marked, there);
    return text(marked, there);
}

// Declarations of all tags that a hollow piece declares.
std::string Declarations::tags(const Piece &piece) const {
    std::string list;
    for (uint32_t at = piece.names_at; at < piece.names_end; at++) {
        const bool is_union = pieces.how[at] == Declares::Tag ? unit.tokens[piece.first].view() == "union" : pieces.how[at] == Declares::Union;
        list += (is_union ? "union " : "struct ") + std::string(unit.names.word(pieces.names[at])) + ";";
    }
    return list;
}

// What stands before and behind a structure's members. Its own alignment decides how gcc writes a member's place as a sum
// (start_record_layout).
std::string Declarations::attributes(const Piece &piece) const {
    std::string text;
    auto add = [&](uint32_t at) { text.append(unit.tokens[at].view()).push_back(' '); };
    for (uint32_t at = piece.first; at < piece.end && !unit.tokens[at].is('{'); at++)
        add(at);
    for (uint32_t at = piece.end; at > piece.first && !unit.tokens[at - 1].is('}'); at--)
        add(at - 1);
    return text;
}

// A hollow piece with the members that are needed.
std::string Declarations::outlined(uint32_t number, const Hollows &hollow_there, Numbers numbers) const {
    const Piece &piece = pieces.all[number];
    auto part = hollow_there.parts.find(number);
    if (part == hollow_there.parts.end())
        return tags(piece);
    const auto members = members_of(unit, piece);
    const std::vector<uint64_t> zeros(members.size());
    const Layout layout = numbers == Numbers::None ? Layout{0, 0, zeros, zeros} : layouts.at(number);
    return tags(piece) + outline(unit, piece, members, part->second, layout, numbers != Numbers::NoSizes);
}

std::vector<uint64_t> Declarations::sizes() const {
    std::vector<uint64_t> list;
    for (auto &part : hollow.parts)
        list.push_back(layouts.at(part.first).size);
    return list;
}

void Declarations::set_sizes(const std::vector<uint64_t> &sizes) {
    auto size = sizes.begin();
    for (auto &part : hollow.parts)
        layouts.at(part.first).size = *size++;
}

bool Declarations::declares_one(const std::string &tree) const {
    for (auto &part : hollow.parts) {
        const std::string tag = tag_of(unit, pieces.all[part.first]) + " ";
        for (size_t at = tree.find(tag); at != tree.npos; at = tree.find(tag, at + 1))
            if (tree[at + tag.size()] != '*')
                return true;
    }
    return false;
}

// Says where the token stands that the next line begins with.
void Declarations::add_marker(const Token &token, std::string &written) const {
    // Not that it is a system header's: of a macro in one, gcc complains as of the file that defined it.
    written += "# " + std::to_string(token.line) + " \"" + std::string(unit.files[token.file].name) + "\"\n";
}

// A piece as gcc preprocessed it, without the macros that it told of; macro: the first of those that may come here.
void Declarations::add_gcc_text(const Piece &piece, size_t &macro, std::string &written) const {
    const char *at = unit.place(piece.first), *end = unit.place(piece.end - 1) + unit.tokens[piece.end - 1].size;
    while (macro < unit.macros.size() && unit.macros[macro].line.data() < at)
        macro++;
    for (; macro < unit.macros.size() && unit.macros[macro].line.data() < end; macro++) {
        const std::string_view line = unit.macros[macro].line;
        written.append(at, line.data() - at);
        at = line.data() + line.size();
    }
    written.append(at, end - at);
}

// A piece that we read ourselves, each token on its line.
void Declarations::add_tokens(const Piece &piece, std::string &written) const {
    const Token *before = nullptr;
    for (uint32_t at = piece.first; at < piece.end; at++) {
        const Token &token = unit.tokens[at];
        const bool is_on_line = before && token.file == before->file && token.line == before->line && token.kind() != Kind::Pragma &&
                                before->kind() != Kind::Pragma;
        if (is_on_line) {
            if (before->text + before->size != token.text)
                written += ' ';
        } else {
            if (before)
                written += '\n';
            if (before && (token.file != before->file || token.line != before->line + 1))
                add_marker(token, written);
        }
        written += token.view();
        before = &token;
    }
}

std::string Declarations::text(const std::vector<bool> &marked, const Hollows &hollow_there) const {
    std::string written;
    written.reserve(unit.text.size());
    written += "# 0 \"" + std::string(unit.files[0].name) + "\"\n";
    if (!unit.folder.empty())
        written += "# 0 \"" + std::string(unit.folder) + "\"\n";
    size_t macro = 0;
    for (size_t number = 0; number < marked.size(); number++) {
        const bool is_hollow = !hollow_there.is.empty() && hollow_there.is[number];
        if (!marked[number] && !is_hollow)
            continue;
        const Piece &piece = pieces.all[number];
        add_marker(unit.tokens[piece.first], written);
        if (is_hollow)
            written += outlined(number, hollow_there);
        else if (unit.text.empty())
            add_tokens(piece, written);
        else
            add_gcc_text(piece, macro, written);
        written += '\n';
    }
    // Who used them may not be here. Of a value that is not computed nothing comes: one of an array would take its address, which the
    // compiler remembers of a static one.
    std::string uses;
    for (auto name : idle(marked))
        if (reading.uses[name])
            uses += "(void)sizeof(__typeof__(" + std::string(unit.names.word(name)) + ")*);";
    if (!uses.empty())
        written += "static inline __attribute__((unused)) void kperflab_front_uses(void){" + uses + "}\n";
    return written;
}

}
