// SPDX-License-Identifier: GPL-2.0-or-later
#include "arguments.h"

#include <cstdlib>
#include <string_view>

namespace front {

namespace {

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

bool is_any(std::string_view text, std::initializer_list<std::string_view> of) {
    for (auto one : of)
        if (text == one)
            return true;
    return false;
}

bool begins_any(std::string_view text, std::initializer_list<std::string_view> with) {
    for (auto one : with)
        if (begins(text, one))
            return true;
    return false;
}

// Options of -f and -m that read or write other files, put lines into data, or keep what nobody mentions.
bool is_unfit(std::string_view flag) {
    return begins_any(flag, {"-fplugin", "-fprofile", "-fauto-profile", "-fbranch-prob", "-fdump", "-fstack-usage",
                             "-fcallgraph", "-fopt-info", "-fsave-opt", "-fsanitize", "-flto", "-fkeep", "-fpch",
                             "-fno-toplevel-reorder", "-fno-unit-at-a-time", "-fdirectives-only", "-fpreprocessed",
                             "-fsyntax-only", "-fdiagnostics", "-fself-test", "-fmodules", "-fcompare-debug",
                             "-ftest-coverage", "-finstrument", "-Wunused-const-variable", "-Werror=unused-const-variable", "-fopenmp", "-fopenacc", "-fanalyzer", "-fpic", "-fPIC",
                             "-fpie", "-fPIE", "-fwhole-program", "-frecord-gcc", "-fuse-ld", "-frandom-seed",
                             "-fdebug-types", "-fdata-sections-", "-fvar-tracking", "-fcallgraph-info", "-fverbose-asm",
                             "-fworking-directory", "-fno-working-directory", "-ftime-report", "-fmem-report", "-fgnu-tm",
                             "-march=native", "-mtune=native", "-mcpu=native", "-fno-keep", "-fextended-identifiers", "-finput-charset",
                             "-ftabstop", "-Wcast-align"});
}

class Reader {
public:
    Reader(const std::vector<std::string> &arguments, Plan &plan) : arguments_(arguments), plan_(plan) {}

    void read() {
        for (at_ = 0; at_ < arguments_.size() && plan_.reason.empty(); at_++)
            one(arguments_[at_]);
        if (!plan_.reason.empty())
            return;
        if (!compiles_)
            refuse("not-c");
        else if (inputs_ != 1 || plan_.output.empty())
            refuse("inputs");
        else if (plan_.input.size() < 3 || plan_.input.substr(plan_.input.size() - 2) != ".c")
            refuse("language");
        else if (!optimises_)
            refuse("unoptimised");
        else
            dependencies();
    }

private:
    void refuse(const char *reason) { plan_.reason = reason; }

    void keep(const std::string &argument) { plan_.compile.push_back(argument); }

    std::string following() {
        if (at_ + 1 < arguments_.size())
            return arguments_[++at_];
        refuse("flag");
        return "";
    }

    void one(const std::string &argument) {
        if (argument.empty() || argument[0] == '@')
            return refuse("flag");
        if (argument[0] != '-' || argument.size() == 1) {
            plan_.input = argument;
            inputs_++;
        } else if (argument == "-c") {
            compiles_ = true;
        } else if (argument == "-o") {
            plan_.output = following();
        } else if (!preprocessor(argument)) {
            code(argument);
        }
    }

    bool preprocessor(const std::string &argument) {
        auto &before = plan_.before;
        if (is_any(argument, {"-isystem", "-iquote", "-idirafter", "-include", "-imacros", "-MF", "-MT", "-MQ", "-I", "-D", "-U"})) {
            before.push_back(argument);
            before.push_back(following());
        } else if (begins_any(argument, {"-I", "-D", "-U"}) || argument == "-nostdinc" || argument == "-MP" ||
                   begins_any(argument, {"-Wp,-MD,", "-Wp,-MMD,", "-fmacro-prefix-map="})) {
            before.push_back(argument);
        } else if (argument == "-MD" || argument == "-MMD") {
            before.push_back(argument);
            writes_ = true;
        } else {
            return false;
        }
        file_ |= argument == "-MF";
        target_ |= argument == "-MT" || argument == "-MQ";
        return true;
    }

    void code(const std::string &argument) {
        if (argument == "-g1")
            plan_.lines = true;
        else if (argument == "-g0")
            plan_.lines = false;
        else if (begins(argument, "-g") && argument != "-gno-column-info")
            return refuse("debug");
        else if (begins(argument, "-O"))
            optimises_ = argument != "-O0" && argument != "-Og" && argument != "-Ofast";
        else if (argument == "--param") {
            keep(argument);
            return keep(following());
        } else if (is_unfit(argument))
            return refuse("unfit-flag");
        else if (!is_any(argument, {"-pipe", "-w", "-p", "-pg", "-ansi", "-pedantic", "-pedantic-errors"}) &&
                 !begins_any(argument, {"-f", "-m", "-std=", "--param="}) &&
                 !(begins(argument, "-W") && !begins_any(argument, {"-Wl,", "-Wp,", "-Wa,-a", "-Wa,-M"})))
            return refuse("flag");
        if (argument == "-fno-strict-aliasing" || argument == "-fstrict-aliasing")
            plan_.aliases = argument == "-fno-strict-aliasing";
        if (begins(argument, "-Wa,") && argument.find('=') != std::string::npos)
            return refuse("flag");
        keep(argument);
    }

    // What the compiler would have derived from -c -o OUTPUT.
    void dependencies() {
        if (!writes_)
            return;
        auto &before = plan_.before;
        if (!file_) {
            size_t slash = plan_.output.rfind('/'), dot = plan_.output.rfind('.');
            bool suffix = dot != std::string::npos && (slash == std::string::npos || dot > slash);
            before.insert(before.end(), {"-MF", plan_.output.substr(0, suffix ? dot : plan_.output.size()) + ".d"});
        }
        if (!target_)
            before.insert(before.end(), {"-MQ", plan_.output});
    }

    const std::vector<std::string> &arguments_;
    Plan &plan_;
    size_t at_ = 0;
    int inputs_ = 0;
    bool compiles_ = false, optimises_ = false, writes_ = false, file_ = false, target_ = false;
};

// Variables that change what the compiler does without a word on the command line.
constexpr const char *VARIABLES[] = {
    "GCC_EXEC_PREFIX", "COMPILER_PATH", "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "GCC_COMPARE_DEBUG",
    "COLLECT_GCC_OPTIONS", "GCC_EXTRA_DIAGNOSTIC_OUTPUT", "LD_PRELOAD", "LD_LIBRARY_PATH",
};

}

Plan read_arguments(const std::vector<std::string> &arguments) {
    Plan plan;
    for (auto name : VARIABLES)
        if (std::getenv(name))
            plan.reason = "environment";
    Reader(arguments, plan).read();
    return plan;
}

}
