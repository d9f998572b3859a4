// What is checked of whole arrays, at the memory's speed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace apsvm {

// Whether all of values[0, n) are below the limit.
bool all_below(const std::uint32_t *values, std::size_t n, std::uint32_t limit);
bool all_below(const std::uint64_t *values, std::size_t n, std::uint64_t limit);

// Whether all are among 0 … limit − 1: negative ones are very large unsigned ones.
template <class Integer>
bool all_below(std::span<const Integer> values, std::size_t limit) {
    static_assert(std::is_signed_v<Integer>);
    constexpr std::size_t most = std::size_t{std::numeric_limits<Integer>::max()} + 1;
    using Word = std::conditional_t<sizeof(Integer) == 4, std::uint32_t, std::uint64_t>;
    return all_below(reinterpret_cast<const Word *>(values.data()), values.size(),
                     static_cast<Word>(std::min(limit, most)));
}

}  // namespace apsvm
