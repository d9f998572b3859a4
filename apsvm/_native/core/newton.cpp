#include "newton.hpp"

#include <cstddef>

#include "threads.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kLanes = 8;

// Σ a · b, the same bits on every machine.
APSVM_CLONES double dot(const double *a, const double *b, std::size_t n) {
    double sums[kLanes] = {};
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
    for (; i < n; ++i) sums[0] += a[i] * b[i];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

// total += factor · a
APSVM_CLONES void add(double factor, const double *__restrict a, double *__restrict total, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) total[i] += factor * a[i];
}

// change · H₀ change, for H₀ = diagonal.
APSVM_CLONES double square_within(const double *diagonal, const double *change, std::size_t n) {
    double sums[kLanes] = {};
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (std::size_t lane = 0; lane < kLanes; ++lane)
            sums[lane] += change[i + lane] * (diagonal[i + lane] * change[i + lane]);
    for (; i < n; ++i) sums[0] += change[i] * (diagonal[i] * change[i]);
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

}  // namespace

std::vector<double> newton_direction(std::span<const double> gradient, std::span<const double> diagonal,
                                     std::span<const GradientChange> history) {
    const std::size_t n = gradient.size(), m = history.size();
    std::vector<double> result(gradient.begin(), gradient.end()), shares(m);
    for (std::size_t t = m; t-- > 0;) {
        shares[t] = dot(history[t].step, result.data(), n) / history[t].product;
        add(-shares[t], history[t].change, result.data(), n);
    }
    double scale = -1.0;
    if (m > 0) {
        const auto &[step, change, product] = history.back();
        const double curved = square_within(diagonal.data(), change, n);
        if (curved > 0.0) scale *= product / curved;  // or it underflows
    }
    for (std::size_t i = 0; i < n; ++i) result[i] *= diagonal[i] * scale;
    // What the loop adds to Hg it takes from −Hg.
    for (std::size_t t = 0; t < m; ++t)
        add(-(shares[t] + dot(history[t].change, result.data(), n) / history[t].product), history[t].step,
            result.data(), n);
    return result;
}

}  // namespace apsvm
