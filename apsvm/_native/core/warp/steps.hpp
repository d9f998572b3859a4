// Steps of many parameters at once: what their rule computes, square roots and quotients, fills a whole register.
#pragma once

#include <cstddef>

#include "rows/matrices.hpp"
#include "warp/parameters.hpp"

namespace apsvm::warp {

// Parameters::descend for each of the parameters i, with the gradient weight · differences[i]; 0 is no step. The same
// bits, one by one or all at once.
void descend(Rule rule, const Parameters<double> &all, const double *differences, double weight, double rate);

// out[i] = row b of X − row a of X, in column i.
void difference(const Dense<float> &X, std::size_t a, std::size_t b, double *out);
void difference(const Dense<double> &X, std::size_t a, std::size_t b, double *out);

}  // namespace apsvm::warp
