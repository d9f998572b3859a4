// A recurrence over the positives, from the top:
//
//   M_k(n) = max_{m ≤ n} M_{k−1}(m) + a_k(n),   a_k(n) = −u_k [D(k) − D(k+n)] + scale Σ_{j ≤ n} (s⁻_j − s⁺_k)
//
// over n_1 ≤ … ≤ n_P, the negatives above each positive: unlike those of F + Δ, the best ranks of the negatives on
// their own need not ascend. By Topkis's theorem (the terms of −Δ fall with n, those of F are the same) there is a
// maximiser with n_k at most the number of negatives that score as much as the k-th positive: only these are tried,
// as many as there are swapped pairs, PN at worst.
#include "oracles/against_loss.hpp"

namespace apsvm {

std::int64_t rank_against_loss(const Problem &problem, const double *discount, const Sink &sink, const Scored *items,
                               std::size_t n_neg, AgainstLossWorkspace &work) {
    auto &[ends, starts, sums, best, is_best] = work;
    const auto n_pos = static_cast<std::size_t>(problem.n_pos);
    const bool no_loss =
        std::all_of(problem.weights, problem.weights + n_pos, [](double weight) { return weight == 0.0; });
    ends.resize(n_pos);
    starts.resize(n_pos);
    std::size_t end = 0, cells = 0;
    for (std::size_t k = 0; k < n_pos; ++k) {
        while (end < n_neg && items[end].score >= problem.positives[k]) ++end;
        ends[k] = end;
        starts[k] = cells;
        cells += end + 1;
    }
    if (!no_loss) {
        // Measured from the top positive, so that a common offset does not eat the digits.
        const double top = problem.positives[0];
        sums.resize(end + 1);
        sums[0] = 0.0;
        for (std::size_t j = 0; j < end; ++j) sums[j + 1] = sums[j] + (items[j].score - top);
        best.assign(end + 1, 0.0);
        is_best.assign(cells, false);
        std::size_t known = 0;
        for (std::size_t k = 0; k < n_pos; ++k) {
            std::fill(best.begin() + known + 1, best.begin() + ends[k] + 1, best[known]);
            known = ends[k];
            const double weight = problem.weights[k], at_top = discount[k], score = problem.positives[k] - top;
            const double *const below = discount + k;
            double highest = best[0];
            is_best[starts[k]] = true;
            for (std::size_t n = 1; n <= known; ++n) {
                const double value =
                    best[n] - weight * (at_top - below[n]) + problem.scale * (sums[n] - static_cast<double>(n) * score);
                if (value >= highest) {
                    highest = value;
                    is_best[starts[k] + n] = true;
                }
                best[n] = highest;
            }
        }
        // From the last positive up: the most negatives, no more than above the one after it, that reach the maximum.
        std::size_t n = end;
        for (std::size_t k = n_pos; k-- > 0;) {
            n = std::min(n, ends[k]);
            while (!is_best[starts[k] + n]) --n;
            ends[k] = n;
        }
    }
    const Scored *item = items;
    for (std::size_t k = 0; k < n_pos; ++k) {
        sink.take(item, items + ends[k], static_cast<std::int32_t>(k + 1));
        item = items + ends[k];
    }
    sink.take(item, items + n_neg, problem.n_pos + 1);
    return static_cast<std::int64_t>(no_loss ? 0 : cells);
}

}  // namespace apsvm
