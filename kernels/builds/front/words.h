// SPDX-License-Identifier: GPL-2.0-or-later
// The words that mean something to the splitter. Anything else is a name.
#pragma once

#include <cstdint>
#include <string_view>

namespace front {

enum class Role : uint8_t {
    Name,
    Typedef,
    Extern,
    Static,
    Inline,
    Qualifier,
    Type,      // a type by itself
    Tagged,    // struct, union, enum
    Typeof,    // a type, with what follows in parentheses
    Attribute, // in parentheses what follows, wherever it stands
    Asm,
    Other,     // a keyword with which no ordinary declaration begins
};

struct Word {
    std::string_view text;
    Role role;
};

inline constexpr Word WORDS[] = {
    {"typedef", Role::Typedef},
    {"extern", Role::Extern},
    {"static", Role::Static},
    {"inline", Role::Inline},
    {"__inline", Role::Inline},
    {"__inline__", Role::Inline},
    {"const", Role::Qualifier},
    {"__const", Role::Qualifier},
    {"__const__", Role::Qualifier},
    {"volatile", Role::Qualifier},
    {"__volatile", Role::Qualifier},
    {"__volatile__", Role::Qualifier},
    {"restrict", Role::Qualifier},
    {"__restrict", Role::Qualifier},
    {"__restrict__", Role::Qualifier},
    {"__extension__", Role::Qualifier},
    {"_Noreturn", Role::Qualifier},
    {"void", Role::Type},
    {"char", Role::Type},
    {"short", Role::Type},
    {"int", Role::Type},
    {"long", Role::Type},
    {"float", Role::Type},
    {"double", Role::Type},
    {"signed", Role::Type},
    {"__signed", Role::Type},
    {"__signed__", Role::Type},
    {"unsigned", Role::Type},
    {"_Bool", Role::Type},
    {"__int128", Role::Type},
    {"struct", Role::Tagged},
    {"union", Role::Tagged},
    {"enum", Role::Tagged},
    {"typeof", Role::Typeof},
    {"__typeof", Role::Typeof},
    {"__typeof__", Role::Typeof},
    {"__attribute__", Role::Attribute},
    {"__attribute", Role::Attribute},
    {"_Alignas", Role::Attribute},
    {"asm", Role::Asm},
    {"__asm", Role::Asm},
    {"__asm__", Role::Asm},
    {"auto", Role::Other},
    {"__auto_type", Role::Other},
    {"register", Role::Other},
    {"_Thread_local", Role::Other},
    {"__thread", Role::Other},
    {"_Static_assert", Role::Other},
    {"_Atomic", Role::Other},
    {"_Complex", Role::Other},
    {"__complex__", Role::Other},
    {"_Generic", Role::Other},
    {"sizeof", Role::Other},
    {"_Alignof", Role::Other},
    {"__alignof", Role::Other},
    {"__alignof__", Role::Other},
    {"__builtin_va_list", Role::Type},
    {"if", Role::Other},
    {"else", Role::Other},
    {"for", Role::Other},
    {"while", Role::Other},
    {"do", Role::Other},
    {"switch", Role::Other},
    {"case", Role::Other},
    {"default", Role::Other},
    {"break", Role::Other},
    {"continue", Role::Other},
    {"goto", Role::Other},
    {"return", Role::Other},
};

// An attribute that does something although nobody mentions the declaration.
inline constexpr std::string_view KEEPING[] = {
    "used", "__used__", "retain", "__retain__", "constructor", "__constructor__", "destructor", "__destructor__",
    "alias", "__alias__", "weak", "__weak__", "weakref", "__weakref__", "ifunc", "__ifunc__", "symver", "__symver__",
    "copy", "__copy__", "scalar_storage_order", "target_clones", "__target_clones__",
    // These change what the compiler makes of others, or emit a body that it would leave out.
    "optimize", "__optimize__", "target", "__target__", "noipa", "__noipa__", "naked", "__naked__",
};

// A function that mentions one has a variable of this name.
inline constexpr std::string_view FUNCTION_NAMES[] = {"__func__", "__FUNCTION__", "__PRETTY_FUNCTION__"};

// The compiler calls these of its own accord, some only where a declaration of them was seen.
inline constexpr std::string_view LIBRARY[] = {
    "abort", "exit", "_exit", "_Exit", "abs", "labs", "llabs", "imaxabs", "ffs", "ffsl", "ffsll", "alloca", "malloc",
    "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "bcmp", "bcopy", "bzero", "memcpy", "memmove",
    "memset", "memcmp", "memchr", "mempcpy", "memccpy", "index", "rindex", "stpcpy", "stpncpy", "strcpy", "strncpy",
    "strcat", "strncat", "strlen", "strnlen", "strcmp", "strncmp", "strcasecmp", "strncasecmp", "strchr", "strrchr",
    "strstr", "strspn", "strcspn", "strpbrk", "strdup", "strndup", "printf", "sprintf", "snprintf", "fprintf",
    "vprintf", "vsprintf", "vsnprintf", "vfprintf", "printf_unlocked", "fprintf_unlocked", "scanf", "sscanf", "fscanf",
    "vscanf", "vsscanf", "vfscanf", "puts", "putchar", "fputs", "fputc", "fwrite", "puts_unlocked", "putchar_unlocked",
    "fputs_unlocked", "fputc_unlocked", "fwrite_unlocked", "isalnum", "isalpha", "isascii", "isblank", "iscntrl",
    "isdigit", "isgraph", "islower", "isprint", "ispunct", "isspace", "isupper", "isxdigit", "toascii", "tolower",
    "toupper", "setjmp", "longjmp", "fork", "execl", "execlp", "execle", "execv", "execvp", "execve", "strftime",
    "strfmon", "gettext", "dgettext", "dcgettext",
};

// Beginnings of names of functions that gcc calls of its own accord: __atomic_fetch_add() of 16 bytes is __atomic_fetch_add_16().
inline constexpr std::string_view OWN_CALLS[] = {"__atomic_", "__sync_", "__asan_", "__tsan_", "__ubsan_", "__sanitizer_", "__stack_chk_", "__cyg_profile_"};

}
