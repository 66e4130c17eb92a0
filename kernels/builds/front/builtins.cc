// SPDX-License-Identifier: GPL-2.0-or-later
#include "builtins.h"

namespace front {

namespace {

constexpr std::string_view PREFIX = "#define kperflab_asks_";

struct Known {
    std::string_view name;
    Special special;
};

constexpr Known SPECIAL[] = {
    {"__LINE__", Special::Line},
    {"__FILE__", Special::File},
    {"__BASE_FILE__", Special::BaseFile},
    {"__INCLUDE_LEVEL__", Special::Level},
    {"__COUNTER__", Special::Counter},
    {"__has_attribute", Special::HasAttribute},
    {"__has_builtin", Special::HasBuiltin},
    {"__DATE__", Special::Other},
    {"__TIME__", Special::Other},
    {"__TIMESTAMP__", Special::Other},
    {"__FILE_NAME__", Special::Other},
    {"_Pragma", Special::Other},
    {"__has_include", Special::Other},
    {"__has_include_next", Special::Other},
    {"__has_embed", Special::Other},
    {"__has_feature", Special::Other},
    {"__has_extension", Special::Other},
    {"__has_cpp_attribute", Special::Other},
    {"__has_c_attribute", Special::Other},
};

constexpr std::string_view ATTRIBUTES[] = {
    "access", "alias", "aligned", "alloc_align", "alloc_size", "always_inline", "assume_aligned", "btf_decl_tag",
    "btf_type_tag", "cleanup", "cold", "const", "constructor", "copy", "counted_by", "deprecated", "designated_init", "diagnose_as_builtin", "diagnose_if",
    "disable_sanitizer_instrumentation", "error", "externally_visible", "fallthrough", "flatten", "format", "format_arg", "gnu_inline", "hot", "ifunc",
    "indirect_branch", "leaf", "malloc", "mode", "naked", "no_caller_saved_registers", "no_instrument_function",
    "no_profile_instrument_function", "no_randomize_layout", "no_reorder", "no_sanitize", "no_sanitize_address", "no_sanitize_coverage",
    "no_sanitize_thread", "no_sanitize_undefined", "no_stack_protector", "noclone", "noinline", "noipa", "nonnull", "nonstring", "noreturn",
    "optimize", "overloadable", "packed", "pass_dynamic_object_size", "pass_object_size", "patchable_function_entry", "preserve_most",
    "pure", "randomize_layout", "retain", "returns_nonnull", "returns_twice", "section", "symver", "transparent_union", "uninitialized", "unused",
    "used", "vector_size", "visibility", "warn_unused_result", "warning", "weak", "zero_call_used_regs",
};

constexpr std::string_view FUNCTIONS[] = {
    "__builtin_add_overflow", "__builtin_sub_overflow", "__builtin_mul_overflow", "__builtin_object_size",
    "__builtin_dynamic_object_size", "__builtin_counted_by_ref", "__builtin_constant_p", "__builtin_bswap16",
    "__builtin_bswap32", "__builtin_bswap64", "__builtin_types_compatible_p", "__builtin_choose_expr",
    "__builtin_unreachable", "__builtin_alloca_uninitialized", "__builtin_isdigit", "__builtin_expect", "__builtin_offsetof", "__builtin_has_attribute",
};

std::string asked(std::string_view condition, char kind, std::string_view name) {
    std::string text("#if ");
    text.append(condition).append("\n");
    for (char answer : {'1', '0'}) {
        text.append(PREFIX).push_back(kind);
        text.append(name).append(" ").push_back(answer);
        text += answer == '1' ? "\n#else\n" : "\n#endif\n";
    }
    return text;
}

void answer(std::vector<int8_t> &answers, uint32_t name, bool yes) {
    if (name >= answers.size())
        answers.resize(name + 1, -1);
    answers[name] = yes;
}

}

bool is_asked(std::string_view special) {
    for (auto &known : SPECIAL)
        if (known.name == special)
            return true;
    return false;
}

std::string question() {
    std::string text;
    for (auto &known : SPECIAL)
        text += asked("defined(" + std::string(known.name) + ")", 's', known.name);
    for (auto name : ATTRIBUTES)
        text += asked("__has_attribute(" + std::string(name) + ")", 'a', name);
    for (auto name : FUNCTIONS)
        text += asked("__has_builtin(" + std::string(name) + ")", 'f', name);
    return text;
}

void define_builtins(std::string_view listed, Names &names, Memory &texts, Macros &macros, Expansion &expansion) {
    std::string text = "\n";
    size_t answers = 0;
    while (!listed.empty()) {
        const size_t end = listed.find('\n');
        if (end == listed.npos)
            throw Unfit{"own-builtins"};
        const std::string_view line = listed.substr(0, end);
        listed.remove_prefix(end + 1);
        if (line.substr(0, PREFIX.size()) != PREFIX) {
            text.append(line).push_back('\n');
            continue;
        }
        answers++;
        const char kind = line[PREFIX.size()];
        const std::string_view name = texts.copy(line.substr(PREFIX.size() + 1, line.size() - PREFIX.size() - 3));
        const bool yes = line.back() == '1';
        if (kind == 'f') {
            answer(expansion.builtins, names.number(name), yes);
        } else if (kind == 'a') {
            answer(expansion.attributes, names.number(name), yes);
            answer(expansion.attributes, names.number(texts.copy("__" + std::string(name) + "__")), yes);
        } else if (yes) {
            for (auto &known : SPECIAL)
                if (known.name == name)
                    macros.make_special(known.name, known.special);
        }
    }
    if (answers != std::size(SPECIAL) + std::size(ATTRIBUTES) + std::size(FUNCTIONS))
        throw Unfit{"own-builtins"};
    text.append("\0", 1);
    const std::string_view kept = texts.copy(text);
    macros.define_all(kept.substr(1, kept.size() - 2));
}

}
