#include "sums/pair_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace apsvm {

namespace {

double sigmoid_slope(double t, double) {
    const double e = std::exp(-std::fabs(t));
    return t > 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}

double sigmoid_loss(double t, double) { return std::max(-t, 0.0) + std::log1p(std::exp(-std::fabs(t))); }

double erfc_slope(double t, double c) { return 0.5 * std::erfc(c * t); }

double erfc_loss(double t, double c) {
    const double z = c * t;
    return (std::exp(-z * z) * std::numbers::inv_sqrtpi - z * std::erfc(z)) / (2.0 * c);
}

}  // namespace

// Reach: the logistic's slope e^{−37} and erfc(6)/2 are below 1e-16.
const PairKernel kLogistic{sigmoid_slope, sigmoid_loss, 1.0, 1.0, 37.0};
constexpr double kTie = 0.38984840061683195;  // √3/(√2 π)
const PairKernel kErfc{erfc_slope, erfc_loss, kTie, 1.0, 6.0 / kTie};

}  // namespace apsvm
