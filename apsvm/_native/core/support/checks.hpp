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

// Whether none of values[0, n) is NaN or infinite.
bool all_finite(std::span<const double> values);

// Whether none is NaN or further from 0 than the limit.
bool all_within(std::span<const double> values, double limit);

// Whether none is another byte than 0 and 1, as a bool may be.
bool all_bits(const std::uint8_t *values, std::size_t n);

// Unsigned numbers below a limit, and how many of them are not above the one before.
struct Indices {
    bool below;
    std::size_t falls;
};
Indices look_at_indices(const std::uint32_t *values, std::size_t n, std::uint32_t limit);
Indices look_at_indices(const std::uint64_t *values, std::size_t n, std::uint64_t limit);

// Signed numbers as unsigned ones, negative ones being very large, and the limit that is left of 0 … limit − 1.
template <class Integer>
struct AsUnsigned {
    static_assert(std::is_signed_v<Integer>);
    using Word = std::conditional_t<sizeof(Integer) == 4, std::uint32_t, std::uint64_t>;

    AsUnsigned(std::span<const Integer> numbers, std::size_t limit)
        : values(reinterpret_cast<const Word *>(numbers.data())),
          limit(static_cast<Word>(std::min(limit, std::size_t{std::numeric_limits<Integer>::max()} + 1))) {}

    const Word *values;
    Word limit;
};

// Whether all are among 0 … limit − 1.
template <class Integer>
bool all_below(std::span<const Integer> values, std::size_t limit) {
    const AsUnsigned<Integer> words(values, limit);
    return all_below(words.values, values.size(), words.limit);
}

template <class Integer>
Indices look_at_indices(std::span<const Integer> values, std::size_t limit) {
    const AsUnsigned<Integer> words(values, limit);
    return look_at_indices(words.values, values.size(), words.limit);
}

}  // namespace apsvm
