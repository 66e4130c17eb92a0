// SPDX-License-Identifier: GPL-2.0-or-later
#include "beside.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "digest.h"
#include "entry.h"
#include "store.h"

namespace front {

namespace {

constexpr size_t SUM = 32;

bool replace_file(const std::string &path, const std::string &data) {
    unlink(path.c_str());
    return write_file(path, data);
}

}

Beside::Beside(const std::string &object) {
    if (object.empty())
        return;
    const size_t slash = object.rfind('/') + 1;
    record_ = object.substr(0, slash) + "." + object.substr(slash) + ".front";
    ready_ = object.substr(0, slash) + "." + object.substr(slash) + ".ready";
}

std::string Beside::made_of() const {
    std::string sum;
    return !record_.empty() && read_file(record_, sum) ? sum : "";
}

void Beside::keep_made_of(const std::string &sum) const {
    if (!record_.empty() && !replace_file(record_, sum))
        unlink(record_.c_str());
}

bool Beside::ready(Ready &answer) const {
    std::string data, option;
    if (ready_.empty() || !read_file(ready_, data) || data.size() < SUM)
        return false;
    std::string_view rest = std::string_view(data).substr(SUM);
    if (Blake2b(SUM).add(rest).bytes() != data.substr(0, SUM))
        return false;
    for (auto text : {&answer.arguments, &answer.files, &answer.key, &answer.dependencies, &answer.assembly})
        if (!take_text(rest, *text))
            return false;
    answer.assembler.clear();
    while (!rest.empty() && take_text(rest, option))
        answer.assembler.push_back(option);
    return rest.empty();
}

bool Beside::keep_ready(const Ready &answer) const {
    std::string data;
    for (auto &text : {answer.arguments, answer.files, answer.key, answer.dependencies, answer.assembly})
        add_text(data, text);
    for (auto &option : answer.assembler)
        add_text(data, option);
    if (!ready_.empty() && replace_file(ready_, Blake2b(SUM).add(data).bytes() + data))
        return true;
    clear();
    return false;
}

void Beside::clear() const {
    unlink(record_.c_str());
    unlink(ready_.c_str());
}

std::string sum_of_files(const std::string &dependencies, int64_t *changed) {
    std::string_view rest = std::string_view(dependencies).substr(dependencies.find(':') + 1);
    Blake2b hash(32);
    for (;;) {
        rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(" \\\n")));
        if (rest.empty())
            return hash.bytes();
        const std::string name(rest.substr(0, rest.find_first_of(" \n")));
        rest.remove_prefix(name.size());
        struct stat about;
        if (stat(name.c_str(), &about))
            return "";
        if (changed)
            *changed = std::max(*changed, about.st_ctim.tv_sec * int64_t(1'000'000'000) + about.st_ctim.tv_nsec);
        hash.add_sized(name).add_number(about.st_dev).add_number(about.st_ino).add_number(about.st_size);
        hash.add_number(about.st_mtim.tv_sec).add_number(about.st_mtim.tv_nsec);
        hash.add_number(about.st_ctim.tv_sec).add_number(about.st_ctim.tv_nsec);
    }
}

}
