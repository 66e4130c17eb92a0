// SPDX-License-Identifier: GPL-2.0-or-later
#include "store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>

#include "digest.h"

namespace front {

namespace {

constexpr size_t DIGEST = 32, SIZE = 8, LARGEST = 1 << 28;

std::string path_of(const std::string &place, const std::string &name) {
    return place + "/" + name.substr(0, 2) + "/" + name.substr(2);
}

bool unpack(const std::string &packed, std::string &data) {
    if (packed.size() < DIGEST + SIZE)
        return false;
    std::string_view rest(packed.data() + DIGEST, packed.size() - DIGEST);
    if (Blake2b(DIGEST).add(rest).bytes() != std::string_view(packed.data(), DIGEST))
        return false;
    uint64_t size;
    std::memcpy(&size, rest.data(), SIZE);
    if (size > LARGEST)
        return false;
    data.resize(size);
    uLongf got = size;
    auto *source = reinterpret_cast<const Bytef *>(rest.data() + SIZE);
    return uncompress(reinterpret_cast<Bytef *>(data.data()), &got, source, rest.size() - SIZE) == Z_OK && got == size;
}

std::string pack(const std::string &data) {
    uint64_t size = data.size();
    uLongf room = compressBound(size);
    std::string rest(SIZE + room, '\0');
    std::memcpy(rest.data(), &size, SIZE);
    auto *target = reinterpret_cast<Bytef *>(rest.data() + SIZE);
    if (compress2(target, &room, reinterpret_cast<const Bytef *>(data.data()), size, 1) != Z_OK)
        return "";
    rest.resize(SIZE + room);
    return Blake2b(DIGEST).add(rest).bytes() + rest;
}

}

bool read_file(const std::string &path, std::string &data) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return false;
    struct stat about;
    bool good = !fstat(file, &about) && S_ISREG(about.st_mode);
    data.resize(good ? about.st_size : 0);
    for (size_t at = 0; good && at < data.size();) {
        ssize_t part = read(file, data.data() + at, data.size() - at);
        good = part > 0;
        at += good ? part : 0;
    }
    close(file);
    return good;
}

bool write_file(const std::string &path, const std::string &data) {
    int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0)
        return false;
    bool good = true;
    for (size_t at = 0; good && at < data.size();) {
        ssize_t part = write(file, data.data() + at, data.size() - at);
        good = part > 0;
        at += good ? part : 0;
    }
    return !close(file) && good;
}

std::vector<std::string> Store::places() const {
    auto all = read_;
    if (!write_.empty())
        all.push_back(write_);
    return all;
}

bool Store::has(const std::string &name) const {
    for (auto &place : places())
        if (!access(path_of(place, name).c_str(), R_OK))
            return true;
    return false;
}

bool Store::get(const std::string &name, std::string &data) const {
    for (auto &place : places()) {
        std::string packed;
        if (!read_file(path_of(place, name), packed))
            continue;
        if (unpack(packed, data))
            return true;
        count("corrupt " + name);
    }
    return false;
}

bool Store::put(const std::string &name, const std::string &data) const {
    if (write_.empty())
        return false;
    std::string packed = pack(data), folder = write_ + "/" + name.substr(0, 2);
    mkdir(folder.c_str(), 0755);
    std::string part = folder + "/." + name.substr(2) + "." + std::to_string(getpid());
    if (!packed.empty() && write_file(part, packed) && !rename(part.c_str(), path_of(write_, name).c_str()))
        return true;
    unlink(part.c_str());
    return false;
}

void Store::count(const std::string &what) const {
    if (write_.empty())
        return;
    int file = open((write_ + "/counts").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0)
        return;
    std::string line = what + "\n";
    // A line that is lost is one less to count.
    [[maybe_unused]] ssize_t written = write(file, line.data(), line.size());
    close(file);
}

}
