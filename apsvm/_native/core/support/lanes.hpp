// Eight places at a time: GCC and Clang make of it what the machine has.
#pragma once

#include <cstddef>
#include <cstring>

namespace apsvm {

constexpr std::size_t kLanes = 8;
typedef double Vec __attribute__((vector_size(kLanes * sizeof(double))));

inline double sum_of(const Vec &v) { return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7])); }

// Σ a · b, the same sums in the same order on every machine.
inline __attribute__((always_inline)) double dot(const double *a, const double *b, std::size_t n) {
    Vec sum = {};
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        Vec x, y;
        std::memcpy(&x, a + i, sizeof(Vec));
        std::memcpy(&y, b + i, sizeof(Vec));
        sum += x * y;
    }
    double rest = 0.0;
    for (; i < n; ++i) rest += a[i] * b[i];
    return sum_of(sum) + rest;
}

}  // namespace apsvm
