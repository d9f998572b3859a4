#include "sums/decaying_sums.hpp"

#include <algorithm>

#include "support/threads.hpp"

namespace apsvm {

void decaying_sums(const double *decay, const double *values, double *sums, std::size_t channels, std::size_t lists,
                   std::size_t n, bool reverse, std::size_t threads) {
    constexpr std::size_t rows_per_thread = 1u << 15;  // below, a thread costs more than it saves
    if (n == 0) return;
    const std::size_t runs = channels * lists;
    const std::size_t workers = std::clamp<std::size_t>(runs * n / rows_per_thread, 1, threads);
    in_runs(runs, workers, [&](std::size_t run, std::size_t) {
        const double *const d = decay + run % lists * (n - 1);
        const double *const v = values + run * n;
        double *const h = sums + run * n;
        double sum = 0.0;
        if (reverse)
            for (std::size_t i = n; i-- > 0;) h[i] = sum = v[i] + (i + 1 < n ? d[i] * sum : 0.0);
        else
            for (std::size_t i = 0; i < n; ++i) h[i] = sum = v[i] + (i > 0 ? d[i - 1] * sum : 0.0);
    });
}

}  // namespace apsvm
