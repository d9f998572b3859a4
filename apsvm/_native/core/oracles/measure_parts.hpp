// What the measures over rankings and those over labellings share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "oracles/measures.hpp"

namespace apsvm {

// All positives in order.
inline void sort_positives(const MeasureQuery &query, MeasureWorkspace &work) {
    sort_scores(query.positives, nullptr, query.n_pos, work.positives, work.sort);
    work.scores_pos.resize(query.n_pos);
    for (std::int32_t k = 0; k < query.n_pos; ++k) work.scores_pos[k] = work.positives[k].score;
}

// sums[i]: of the first i of n items, less `origin` each.
inline void sum_scores(const Scored *items, std::int32_t n, double origin, std::vector<double> &sums) {
    sums.resize(n + 1);
    sums[0] = 0.0;
    for (std::int32_t i = 0; i < n; ++i) sums[i + 1] = sums[i] + (items[i].score - origin);
}

inline double sum(const double *values, std::int64_t n) {
    double total = 0.0;
    for (std::int64_t i = 0; i < n; ++i) total += values[i];
    return total;
}

inline std::int64_t cutoff(const MeasureQuery &query, double k) {
    return static_cast<std::int64_t>(std::min(k, static_cast<double>(query.n_pos) + static_cast<double>(query.n_neg)));
}

}  // namespace apsvm
