#include "sorting/tiny_scores.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kBlock = 4096;
constexpr std::uint64_t kSign = std::uint64_t{1} << 63, kLeastExponent = std::uint64_t{1} << 52;

// The bits of all scores but their signs.
APSVM_CLONES std::uint64_t largest_bits(const double *scores, std::size_t n) {
    std::uint64_t largest = 0;
    for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::bit_cast<std::uint64_t>(scores[i]) & ~kSign);
    return largest;
}

bool all_below(const double *scores, std::size_t n, std::uint64_t bound) {
    for (std::size_t at = 0; at < n; at += kBlock)
        if (largest_bits(scores + at, std::min(kBlock, n - at)) >= bound) return false;
    return true;
}

// A score without a leading bit is given one, which is taken off again: no operand is denormal.
APSVM_CLONES void lift(const double *scores, std::size_t n, double *out) {
    constexpr double leading = 0x1p-1022 * kLift;
    for (std::size_t i = 0; i < n; ++i) {
        const auto bits = std::bit_cast<std::uint64_t>(scores[i]);
        const std::uint64_t magnitude = bits & ~kSign;
        const bool denormal = magnitude < kLeastExponent;
        const auto normal = std::bit_cast<double>(denormal ? magnitude | kLeastExponent : magnitude);
        const double result = normal * kLift - (denormal ? leading : 0.0);
        out[i] = std::bit_cast<double>(std::bit_cast<std::uint64_t>(result) | (bits & kSign));
    }
}

}  // namespace

bool all_tiny(const double *scores, std::size_t n) {
    return all_below(scores, n, std::bit_cast<std::uint64_t>(kTiny));
}

bool all_zero(const double *scores, std::size_t n) { return all_below(scores, n, 1); }

const double *lifted(const double *scores, std::size_t n, std::vector<double> &room) {
    if (room.size() < n) room.resize(n);
    lift(scores, n, room.data());
    return room.data();
}

}  // namespace apsvm
