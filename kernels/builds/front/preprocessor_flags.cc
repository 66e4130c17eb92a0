// SPDX-License-Identifier: GPL-2.0-or-later
#include "preprocessor_flags.h"

#include <cstdlib>
#include <string_view>

#include "scanner.h"

namespace front {

namespace {

// Flags that change what a text means, or what gcc complains of, in ways that our preprocessor does not know.
constexpr const char *ODD[] = {
    "-ansi", "-pedantic", "-Wpedantic", "-Wtraditional", "-Wunused-macros", "-Wc90-", "-Wc99-", "-Wc11-", "-Wc++-", "-Wlong-long",
    "-Wvariadic-macros", "-Wnormalized", "-Wmissing-include-dirs", "-Wsystem-headers", "-fdollars", "-fno-dollars", "-finput-charset",
    "-fexec-charset", "-fwide-exec", "-fmax-include", "-fdebug-cpp", "-ftrack-macro", "-ffile-prefix-map", "-fopenmp", "-fcpp", "-fpch",
    "-Wp,", "-Weverything", "-Wbidi-chars",
};

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

std::string definition(const std::string &text) {
    const size_t equal = text.find('=');
    if (equal == text.npos)
        return text + " 1";
    return text.substr(0, equal) + " " + text.substr(equal + 1);
}

// Returns whether the compiler's own folders are closed.
bool read_own_flags(const std::vector<std::string> &list, PreprocessorFlags &flags) {
    bool closed = false;
    for (size_t at = 0; at < list.size(); at++) {
        const std::string &flag = list[at];
        auto value = [&](size_t size) { return flag.size() > size ? flag.substr(size) : list[++at]; };
        if (begins(flag, "-include"))
            flags.included.push_back(value(8));
        else if (begins(flag, "-iquote"))
            flags.folders.emplace_back(value(7), true);
        else if (begins(flag, "-isystem") || begins(flag, "-idirafter") || begins(flag, "-imacros"))
            throw Unfit{"own-flags"};
        else if (begins(flag, "-I"))
            flags.folders.emplace_back(value(2), false);
        else if (begins(flag, "-D"))
            flags.macros.push_back("#define " + definition(value(2)));
        else if (begins(flag, "-U"))
            flags.macros.push_back("#undef " + value(2));
        else if (begins(flag, "-fmacro-prefix-map="))
            flags.renamed.push_back(flag.substr(19));
        else if (flag == "-nostdinc")
            closed = true;
        else if (!begins(flag, "-Wp,-MMD,") && !begins(flag, "-Wp,-MD,"))
            throw Unfit{"own-flags"};
    }
    return closed;
}

}

PreprocessorFlags read_preprocessor_flags(const Plan &plan) {
    PreprocessorFlags flags;
    if (!read_own_flags(plan.before, flags))
        throw Unfit{"own-flags"};
    for (auto &flag : plan.compile) {
        // "-Werror=X" switches X on.
        const std::string plain = begins(flag, "-Werror=") ? "-W" + flag.substr(8) : flag;
        for (auto odd : ODD)
            if (begins(plain, odd))
                throw Unfit{"own-flags"};
        if (plain == "-Wtrigraphs" || plain == "-Wno-trigraphs")
            flags.warns_trigraphs = plain == "-Wtrigraphs";
        if (begins(flag, "-std=") && flag != "-std=gnu11" && flag != "-std=gnu99" && flag != "-std=gnu17")
            throw Unfit{"own-flags"};
        flags.warns_undefined |= flag == "-Wundef" || flag == "-Werror=undef";
    }
    for (auto name : {"CPATH", "C_INCLUDE_PATH", "GCC_EXEC_PREFIX"})
        if (std::getenv(name))
            throw Unfit{"own-flags"};
    return flags;
}

}
