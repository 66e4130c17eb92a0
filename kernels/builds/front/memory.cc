// SPDX-License-Identifier: GPL-2.0-or-later
#include "memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

// What is large goes into large pages, where the kernel gives them: else a fifth of this short program's time goes into taking
// small ones, each of which it touches once.
void *operator new(size_t size) {
    constexpr size_t PAGE = front::LARGE_PAGE;
    if (size < PAGE) {
        if (void *place = std::malloc(size ? size : 1))
            return place;
        throw std::bad_alloc();
    }
    size = (size + PAGE - 1) & ~(PAGE - 1);
    void *place = std::aligned_alloc(PAGE, size);
    if (!place)
        throw std::bad_alloc();
    madvise(place, size, MADV_HUGEPAGE);
    return place;
}

void operator delete(void *place) noexcept { std::free(place); }
void operator delete(void *place, size_t) noexcept { std::free(place); }
