// SPDX-License-Identifier: GPL-2.0-or-later
// Files by content: read from several folders, written to one.
#pragma once

#include <string>
#include <vector>

namespace front {

class Store {
public:
    // Any may be missing or full: then there is nothing to read, or nothing is kept.
    Store(std::vector<std::string> read, std::string write) : read_(std::move(read)), write_(std::move(write)) {}

    bool has(const std::string &name) const;
    // False also for a file whose bytes are not those that were written; it is counted as corrupt.
    bool get(const std::string &name, std::string &data) const;
    // The file appears whole or not at all.
    bool put(const std::string &name, const std::string &data) const;
    // Adds a line to the list of what happened, which the lab counts.
    void count(const std::string &what) const;

private:
    std::vector<std::string> places() const;

    std::vector<std::string> read_;
    std::string write_;
};

// Whole files; false when they cannot be read or written.
bool read_file(const std::string &path, std::string &data);
bool write_file(const std::string &path, const std::string &data);

}
