#include "support/checks.hpp"

#include <cmath>

#include "support/threads.hpp"

namespace apsvm {

namespace {

// Inlined into each clone, so that it is compiled for its instruction set.
template <class Word>
inline __attribute__((always_inline)) Indices look(const Word *values, std::size_t n, Word limit) {
    constexpr std::size_t block = 1u << 16;  // a count of one fits into a word
    if (n == 0) return {true, 0};
    Word above = static_cast<Word>(values[0] >= limit);
    std::size_t falls = 0;
    for (std::size_t begin = 1; begin < n; begin += block) {
        const std::size_t end = std::min(begin + block, n);
        Word in_block = 0;
        for (std::size_t i = begin; i < end; ++i) {
            above |= static_cast<Word>(values[i] >= limit);
            in_block += static_cast<Word>(values[i] <= values[i - 1]);
        }
        falls += static_cast<std::size_t>(in_block);
    }
    return {above == 0, falls};
}

}  // namespace

APSVM_CLONES bool all_below(const std::uint32_t *values, std::size_t n, std::uint32_t limit) {
    std::uint32_t above = 0;
    for (std::size_t i = 0; i < n; ++i) above |= static_cast<std::uint32_t>(values[i] >= limit);
    return above == 0;
}

APSVM_CLONES bool all_below(const std::uint64_t *values, std::size_t n, std::uint64_t limit) {
    std::uint64_t above = 0;
    for (std::size_t i = 0; i < n; ++i) above |= static_cast<std::uint64_t>(values[i] >= limit);
    return above == 0;
}

APSVM_CLONES static bool finite(const double *values, std::size_t n) {
    std::uint64_t others = 0;
    for (std::size_t i = 0; i < n; ++i) others |= static_cast<std::uint64_t>(!(values[i] - values[i] == 0.0));
    return others == 0;
}

bool all_finite(std::span<const double> values) { return finite(values.data(), values.size()); }

APSVM_CLONES static bool within(const double *values, std::size_t n, double limit) {
    std::uint64_t others = 0;
    for (std::size_t i = 0; i < n; ++i) others |= static_cast<std::uint64_t>(!(std::abs(values[i]) <= limit));
    return others == 0;
}

bool all_within(std::span<const double> values, double limit) { return within(values.data(), values.size(), limit); }

APSVM_CLONES bool all_bits(const std::uint8_t *values, std::size_t n) {
    std::uint8_t bits = 0;
    for (std::size_t i = 0; i < n; ++i) bits |= values[i];
    return bits <= 1;
}

APSVM_CLONES Indices look_at_indices(const std::uint32_t *values, std::size_t n, std::uint32_t limit) {
    return look(values, n, limit);
}

APSVM_CLONES Indices look_at_indices(const std::uint64_t *values, std::size_t n, std::uint64_t limit) {
    return look(values, n, limit);
}

}  // namespace apsvm
