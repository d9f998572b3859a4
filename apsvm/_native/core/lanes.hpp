// Eight places at a time: GCC and Clang make of it what the machine has.
#pragma once

#include <cstddef>

namespace apsvm {

constexpr std::size_t kLanes = 8;
typedef double Vec __attribute__((vector_size(kLanes * sizeof(double))));

inline double sum_of(const Vec &v) { return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7])); }

}  // namespace apsvm
