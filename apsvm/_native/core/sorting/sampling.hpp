// Which of n scores a sample takes: one from each of its equal stretches, at a place that a hash of the stretch's number
// picks. The same sample every time, and no period of the scores that it could be in step with.
#pragma once

#include <cstddef>
#include <cstdint>

namespace apsvm {

// The i-th of `size` places, all of them below n, size ≤ n.
inline std::size_t sampled_place(std::size_t i, std::size_t size, std::size_t n) {
    const std::size_t stretch = n / size;
    std::uint64_t hash = (i + 1) * 0x9E3779B97F4A7C15u;  // the finaliser of splitmix64 (Steele, Lea and Flood 2014)
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9u;
    hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBu;
    return stretch * i + static_cast<std::size_t>((hash ^ (hash >> 31)) % stretch);
}

}  // namespace apsvm
