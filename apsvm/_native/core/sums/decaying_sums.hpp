// Linear recurrences with factors of at most 1: what the Laplace kernel's sums over ordered scores come to.
#pragma once

#include <cstddef>

namespace apsvm {

// Of `channels` times `lists` lists of n values, h_i = v_i + d_i h_{i−1}; reversed, h_i = v_i + d_{i+1} h_{i+1}. The
// channels of a list share its n − 1 decays, d_i standing at [i − 1].
void decaying_sums(const double *decay, const double *values, double *sums, std::size_t channels, std::size_t lists,
                   std::size_t n, bool reverse, std::size_t threads);

}  // namespace apsvm
