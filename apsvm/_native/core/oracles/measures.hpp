// Loss-augmented inference for the measures outside the two-array family, exact all the same.
#pragma once

#include <vector>

#include "oracles/bucket.hpp"
#include "oracles/inference.hpp"

namespace apsvm {

// The scores of one query, and where its row weights go.
struct MeasureQuery {
    const double *positives;
    std::int32_t n_pos;
    const double *negatives;
    std::int32_t n_neg;
    double *weights_pos, *weights_neg;
    std::size_t threads = 1;
};

// Memory kept from call to call; whatever the sizes of the queries.
struct MeasureWorkspace {
    std::vector<Scored> positives, negatives;  // descending, as far as they are in order
    SortWorkspace sort;
    std::vector<double> scores_pos;          // of the positives, descending
    std::vector<double> sums_pos, sums_neg;  // of the first i scores, at [i]
    std::vector<double> sums_beating;        // of the scores above the positive, at [i - 1]
    std::vector<double> weights, best, zeros;
    std::vector<std::int32_t> ranks, other_ranks;
    std::vector<std::int64_t> counts;
    std::vector<std::int32_t> not_below;  // positives that score at least the negative's, at [j - 1]
    std::vector<std::int32_t> beaten_by;  // negatives that score more than the positive, at [i - 1]
    std::vector<std::uint16_t> names;     // of the negatives' bins
    std::vector<std::int32_t> rows;       // of the negatives in the bins looked into
    std::vector<double> open;             // their scores
    Bucket bucket;
    std::size_t n_ranked = 0;     // negatives that `bucket` ranked in the last call …
    std::int64_t violating = -1;  // … and how many of them beat a positive
};

// NDCG with D(1) = D(2): discount[p - 1] = D(p) for p up to n_pos + n_neg, convex except for the first drop. O(n log n),
// n = n_pos + n_neg.
Answer ndcg_first_two(const MeasureQuery &query, const double *discount, MeasureWorkspace &work);

// NDCG@k: `discount` as above, convex, for p up to min(k, n_pos + n_neg). O(n log n + k²).
Answer ndcg_at(const MeasureQuery &query, double k, const double *discount, MeasureWorkspace &work);

// P@k over rankings. O(n log n).
Answer precision_at(const MeasureQuery &query, double k, MeasureWorkspace &work);

// F_β over labellings. O(n log n).
Answer f_measure(const MeasureQuery &query, double beta, MeasureWorkspace &work);

// Over the labellings with k positive labels: what the true positives among them fall short of min(k, P), by `unit`:
// k for precision, P for recall. O(n + k log k).
Answer labelled_at(const MeasureQuery &query, double k, double unit, MeasureWorkspace &work);

}  // namespace apsvm
