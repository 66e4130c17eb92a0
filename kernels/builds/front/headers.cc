// SPDX-License-Identifier: GPL-2.0-or-later
#include "headers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "release.h"

namespace front {

namespace {

// The text with a newline before it, one at its end and a null behind; false where there is no file.
bool read_text(const char *path, Memory &memory, std::string_view &text) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            throw Unfit{"own-file"};
        return false;
    }
    struct stat about;
    bool good = !fstat(file, &about) && S_ISREG(about.st_mode) && about.st_size < 1 << 28;
    const size_t size = good ? about.st_size : 0;
    char *place = good ? memory.list<char>(size + 4) : nullptr;
    for (size_t at = 0; good && at < size;) {
        ssize_t part = read(file, place + 1 + at, size - at);
        good = part > 0;
        at += good ? part : 0;
    }
    close(file);
    if (!good)
        throw Unfit{"own-file"};
    // gcc takes these for ends of lines, or complains of them.
    if (std::memchr(place + 1, '\r', size) || std::memchr(place + 1, '\0', size))
        throw Unfit{"own-character"};
    size_t end = size + 1;
    place[0] = '\n';
    if (place[end - 1] != '\n' || end == 1)
        place[end++] = '\n';
    place[end] = place[end + 1] = '\0';
    text = {place + 1, end - 1};
    return true;
}

struct Text {
    std::string_view text;  // null where there is no file
    std::string_view release;  // as of a Header
    bool trigraphs = false, directions = false;
};

bool has_trigraph(std::string_view text) {
    for (size_t at = text.find("??"); at != text.npos; at = text.find("??", at + 1))
        if (at + 2 < text.size() && std::string_view("=/'()!<>-").find(text[at + 2]) != std::string_view::npos)
            return true;
    return false;
}

// U+200E and F, U+202A to E, U+2066 to 9, in UTF-8.
bool has_direction(std::string_view text) {
    for (size_t at = text.find('\xE2'); at != text.npos && at + 2 < text.size(); at = text.find('\xE2', at + 1)) {
        const unsigned char second = text[at + 1], third = text[at + 2];
        if ((second == 0x80 && (third == 0x8E || third == 0x8F || (third >= 0xAA && third <= 0xAE))) || (second == 0x81 && third >= 0xA6 && third <= 0xA9))
            return true;
    }
    return false;
}

// The files that this process has read: none changes while it runs.
class Texts {
public:
    // Null where there is no file.
    const Text *find(std::string_view path) {
        auto known = known_.find(path);
        if (known == known_.end()) {
            const std::string_view kept = memory_.copy(std::string(path) + '\0');
            Text text;
            if (!read_text(kept.data(), memory_, text.text))
                text.text = {};
            else if (names_release(path))
                put_placeholder(text);
            text.trigraphs = has_trigraph(text.text);
            text.directions = has_direction(text.text);
            known = known_.emplace(kept.substr(0, path.size()), text).first;
        }
        return known->second.text.data() ? &known->second : nullptr;
    }

private:
    void put_placeholder(Text &text) {
        const std::string release = find_release(text.text);
        if (release.empty())
            return;
        text.release = memory_.copy(release);
        // With what stands around it, see read_text().
        std::string whole(text.text.data() - 1, text.text.size() + 3);
        replace_all(whole, release, PLACEHOLDER);
        text.text = memory_.copy(whole).substr(1, text.text.size());
    }

    Memory memory_;
    std::unordered_map<std::string_view, Text> known_;
};

Texts &texts() {
    static Texts texts;
    return texts;
}

}

void Headers::add(const std::string &folder, bool quoted) {
    struct stat about;
    if (folder.empty() || folder[0] == '=' || folder[0] == '$' || folder == "-")
        throw Unfit{"own-flags"};
    if (stat(folder.c_str(), &about))
        return;
    if (!S_ISDIR(about.st_mode))
        throw Unfit{"own-flags"};
    auto &folders = quoted ? quoted_ : angled_;
    for (auto &known : folders)
        if (known.device == about.st_dev && known.number == about.st_ino)
            return;
    std::string name = folder;
    if (name.back() != '/')
        name += '/';
    folders.push_back({name, about.st_dev, about.st_ino});
}

Header *Headers::open(std::string_view path) {
    auto known = known_.find(path);
    if (known != known_.end())
        return known->second;
    char *kept = memory_->list<char>(path.size() + 1);
    std::memcpy(kept, path.data(), path.size());
    kept[path.size()] = '\0';
    path = {kept, path.size()};
    if (is_first && !access(std::string(path).append(".gch").c_str(), F_OK))
        throw Unfit{"own-precompiled"};
    Header *header = nullptr;
    if (auto *text = texts().find(path)) {
        all_.push_back(std::make_unique<Header>());
        header = all_.back().get();
        header->path = path;
        header->text = text->text;
        header->release = text->release;
        header->trigraphs = text->trigraphs;
        header->directions = text->directions;
    }
    known_.emplace(path, header);
    return header;
}

Header *Headers::search(std::string_view name, const std::vector<Folder> &folders) {
    std::string path;
    for (auto &folder : folders)
        if (auto *header = open((path = folder.name).append(name)))
            return header;
    return nullptr;
}

Header *Headers::find(std::string_view name, bool angled, std::string_view within, bool &beside) {
    beside = false;
    if (name.empty())
        throw Unfit{"own-include"};
    if (name[0] == '/')
        return open(name);
    if (!angled) {
        auto *header = open(std::string(within).append(name));
        beside = header;
        if (header)
            return header;
        if (header = search(name, quoted_); header)
            return header;
    }
    auto [known, fresh] = found_.try_emplace(memory_->copy(name));
    if (fresh)
        known->second = search(name, angled_);
    return known->second;
}

}
