#include "solvers/newton.hpp"

#include <cstddef>

#include "support/lanes.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

APSVM_CLONES double product_of(const double *a, const double *b, std::size_t n) { return dot(a, b, n); }

// total += factor · a
APSVM_CLONES void add(double factor, const double *__restrict a, double *__restrict total, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) total[i] += factor * a[i];
}

}  // namespace

std::vector<double> newton_direction(std::span<const double> gradient, std::span<const double> diagonal,
                                     std::span<const GradientChange> history) {
    const std::size_t n = gradient.size(), m = history.size();
    std::vector<double> result(gradient.begin(), gradient.end()), shares(m);
    for (std::size_t t = m; t-- > 0;) {
        shares[t] = product_of(history[t].step, result.data(), n) / history[t].product;
        add(-shares[t], history[t].change, result.data(), n);
    }
    double scale = -1.0;
    if (m > 0) {
        const auto &[step, change, product] = history.back();
        std::vector<double> times_change(diagonal.begin(), diagonal.end());
        for (std::size_t i = 0; i < n; ++i) times_change[i] *= change[i];
        const double curved = product_of(change, times_change.data(), n);
        if (curved > 0.0) scale *= product / curved;  // or it underflows
    }
    for (std::size_t i = 0; i < n; ++i) result[i] *= diagonal[i] * scale;
    // What the loop adds to Hg it takes from −Hg.
    for (std::size_t t = 0; t < m; ++t)
        add(-(shares[t] + product_of(history[t].change, result.data(), n) / history[t].product), history[t].step,
            result.data(), n);
    return result;
}

}  // namespace apsvm
