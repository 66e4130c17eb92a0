// SPDX-License-Identifier: GPL-2.0-or-later
#include "own_reading.h"

#include <unistd.h>

#include "builtins.h"
#include "dependencies.h"
#include "preprocessor.h"

namespace front {

namespace {

std::string name_of(Blake2b hash, const Plan &plan) {
    hash.add_number(plan.before.size());
    for (auto &flag : plan.before)
        hash.add_sized(flag);
    return hex(hash.add_sized(plan.input).bytes()) + ".k";
}

}

OwnReading::OwnReading(const Store &store, const Plan &plan, const Temporary &temporary, const std::string &compiler, Blake2b agreed,
                       Blake2b differs, Blake2b builtins)
    : store_(store), plan_(plan), temporary_(temporary), compiler_(compiler), agreed_(name_of(agreed, plan)),
      differs_(name_of(differs, plan)), builtins_(hex(builtins.bytes()) + ".k") {}

bool OwnReading::trusted() const { return (agrees_ || store_.has(agreed_)) && !store_.has(differs_); }

std::string OwnReading::read(Unit &unit) {
    if (listed_.empty() && !store_.get(builtins_, listed_))
        return "own-builtins";
    std::string why = preprocess(plan_, listed_, unit, files_);
    if (why.empty() && unit.tokens.empty())
        return "own-empty";
    std::string text;
    return why.empty() && !dependencies(plan_, files_, text) ? "own-dependencies" : why;
}

bool OwnReading::ask() {
    if (store_.get(builtins_, listed_))
        return true;
    Words command{compiler_};
    command.insert(command.end(), plan_.compile.begin(), plan_.compile.end());
    command.insert(command.end(), {"-nostdinc", "-dM", "-E", "-o", temporary_(".i"), temporary_(".c")});
    unlink(temporary_(".c").c_str());
    if (!write_file(temporary_(".c"), question()) || run(command, temporary_(".out"), temporary_(".err")) || !read_file(temporary_(".i"), listed_))
        return false;
    store_.put(builtins_, listed_);
    return true;
}

void OwnReading::compare(bool same) {
    agrees_ = same && same_dependencies();
    store_.put(agrees_ ? agreed_ : differs_, agrees_ ? "agreed" : "differs");
    if (!agrees_)
        store_.count("own-differs");
}

bool OwnReading::same_dependencies() const {
    const std::string path = dependency_file(plan_);
    std::string ours, theirs;
    return path.empty() || (dependencies(plan_, files_, ours) && read_file(path, theirs) && ours == theirs);
}

bool OwnReading::dependencies_text(std::string &text) const { return dependencies(plan_, files_, text); }

bool OwnReading::write_dependencies() const {
    const std::string path = dependency_file(plan_);
    std::string text;
    if (path.empty())
        return true;
    unlink(path.c_str());
    return dependencies(plan_, files_, text) && write_file(path, text);
}

}
