// SPDX-License-Identifier: GPL-2.0-or-later
// One source file as it reads today, by our own preprocessor or by gcc's, and the keys of what it compiles to.
#pragma once

#include <string>

#include "compiler.h"
#include "declarations.h"
#include "layouts.h"
#include "own_reading.h"

namespace front {

class SourceFile {
public:
    SourceFile(const Plan &plan, const Store &store, const Temporary &temporary, const Compiler &compiler, const std::string &program);
    ~SourceFile();
    SourceFile(const SourceFile &) = delete;
    SourceFile &operator=(const SourceFile &) = delete;

    Declarations file;

    // Each returns why it cannot, or "".
    // Reads the file with our own preprocessor.
    std::string read_own();
    // Has gcc preprocess it, in the cheap way if that is good enough, and finds what its own text reaches.
    std::string read_by_compiler();
    // What the file's own text reaches: as it is used, unless that was found to be too little.
    std::string find_kept();
    // Why it is for the compiler alone, whoever reads it, or "".
    const std::string &refusal() const { return refusal_; }

    // Has gcc list what it defines, unless the store knows.
    bool ask() { return own_.ask(); }
    // Whether both readings have agreed on this file, and never differed.
    bool trusted() const { return own_.trusted(); }
    // Notes whether both agree, if gcc's is there too; returns trusted().
    bool compare();
    // Whether gcc has read it in this process.
    bool is_gccs() const { return is_gccs_; }
    // Whether the tokens are those of our own reading, and gcc's where it read them.
    bool is_followed() const { return is_gccs_ ? is_followed_ : is_ours_; }

    // Notes that the file needs more than it seems to use, here and for all who read it again, be it with other numbers in the outlines.
    void keep_mentioned();

    // Notes that the compiler has accepted the outlines. Their numbers are the compiler's own, of the whole structures.
    void note_accepted() { store_.put(accepted_name(), "accepted"); }
    bool is_accepted() const { return store_.has(accepted_name()); }

    // Notes that gcc complains of this file's text and not of its source. A hint: such a text is compiled for nothing in a sweep.
    void note_spared() { store_.put(spared_name(), "spared"); }
    bool is_spared() const { return store_.has(spared_name()); }

    // Notes that its code depends on the release by more than having it as a text.
    void note_bound() { store_.put(bound_name(), "bound"); }
    bool is_bound() const { return !file.unit.release.empty() && store_.has(bound_name()); }

    // The name in the store of what the kept declarations compile to.
    std::string key() const;
    // The name of the sizes with which it was compiled last, of the structures of which the file needs a part: the same for all sizes.
    std::string resized_name() const;
    // The same of what gcc is silent about only where macros brought these tokens and no others.
    std::string expansions_key(const std::string &key) const;

    // The dependencies that the compiler would have written; false where it would write a name in another way.
    bool dependencies_text(std::string &text) const { return own_.dependencies_text(text); }
    bool write_dependencies() const { return own_.write_dependencies(); }

private:
    std::string read(const Words &more);
    std::string digest(Numbers numbers = Numbers::All) const;
    std::string mentioned_name() const;
    std::string accepted_name() const;
    std::string spared_name() const;
    std::string bound_name() const;

    const Plan &plan_;
    const Store &store_;
    const Compiler &compiler_;
    Layouts layouts_;
    OwnReading own_;
    std::string refusal_;
    Unit ours_;                 // our own reading, where the file's is gcc's
    bool is_read_ = false;      // by our own preprocessor
    bool is_ours_ = false;      // what the file is
    bool is_gccs_ = false;
    bool is_followed_ = false;
    bool is_compared_ = false;
};

}
