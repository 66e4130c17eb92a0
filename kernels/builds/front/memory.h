// SPDX-License-Identifier: GPL-2.0-or-later
// Memory that is given out piece by piece, and freed or used again all at once.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <vector>

namespace front {

inline constexpr size_t LARGE_PAGE = 2 << 20;

class Memory {
public:
    // Room for a list of these; nothing is constructed.
    template <typename T> T *list(size_t count) {
        static_assert(std::is_trivially_destructible_v<T>);
        return static_cast<T *>(take(count * sizeof(T)));
    }

    std::string_view copy(std::string_view text) {
        char *place = list<char>(text.size());
        std::memcpy(place, text.data(), text.size());
        return {place, text.size()};
    }

    // What was given out so far may be given out again.
    void reuse() {
        block_ = 0;
        used_ = 0;
    }

private:
    static constexpr size_t BLOCK = LARGE_PAGE, ALIGN = 8;

    void *take(size_t size) {
        size = (size + ALIGN - 1) & ~(ALIGN - 1);
        while (block_ < blocks_.size() && used_ + size > blocks_[block_].size) {
            block_++;
            used_ = 0;
        }
        if (block_ == blocks_.size()) {
            size_t room = size > BLOCK ? size : BLOCK;
            blocks_.push_back({std::unique_ptr<char[]>(new char[room]), room});
        }
        char *place = blocks_[block_].bytes.get() + used_;
        used_ += size;
        return place;
    }

    struct Block {
        std::unique_ptr<char[]> bytes;
        size_t size;
    };
    std::vector<Block> blocks_;
    size_t block_ = 0, used_ = 0;
};

}
