// The fast sums on their own: sources of any weight, targets anywhere.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sums/fast_sums.hpp"

namespace apsvm {

// factor · Σ_i q_i g(y − z_i) with the g of a pair kernel's part.
struct KernelSum {
    const PairKernel &kernel;
    Part part;
    double factor;
};
// g = erfc, ierfc, sigmoid: 1/(1 + e^t), or softplus: log(1 + e^{−t}); throws std::invalid_argument for another name.
KernelSum kernel_sum_named(std::string_view name);

// out[j] for each target y_j: term by term if `directly`, by the Fourier series if there is a setting, or by Chebyshev
// polynomials.
void evaluate_kernel_sum(const KernelSum &sum, bool directly, const std::optional<FourierSetting> &fourier,
                         std::span<const double> sources, std::span<const double> weights,
                         std::span<const double> targets, double *out, std::size_t threads);

}  // namespace apsvm
