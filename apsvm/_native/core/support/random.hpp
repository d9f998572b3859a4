// The generator of the draws.
#pragma once

#include <array>
#include <cstdint>

namespace apsvm {

// xoshiro256++ (Blackman, Vigna 2019), seeded by splitmix64.
class Random {
public:
    Random() = default;  // to be assigned to

    explicit Random(std::uint64_t seed) {
        for (std::uint64_t &word : state_) {
            std::uint64_t z = seed += 0x9e3779b97f4a7c15u;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
            word = z ^ (z >> 31);
        }
    }

    // Uniform on 0..n−1, to within n/2⁶⁴.
    std::int64_t below(std::int64_t n) {
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::int64_t>((static_cast<Wide>(next()) * static_cast<Wide>(n)) >> 64);
    }

    // The sum of four uniform draws of 16 bits, of mean 0 and variance 1: near the normal distribution within ±2.5.
    double about_normal() {
        const std::uint64_t bits = next();
        const std::uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
        return (static_cast<double>(sum) - 131070.0) * 2.6430e-5;  // the deviation of the sum is 65536 / √3
    }

private:
    static std::uint64_t rotated(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

    std::uint64_t next() {
        auto &s = state_;
        const std::uint64_t result = rotated(s[0] + s[3], 23) + s[0], t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = rotated(s[3], 45);
        return result;
    }

    std::array<std::uint64_t, 4> state_{};
};

}  // namespace apsvm
