// Passes over the same matrix, done together: it is walked through once, a stretch of rows at a time, and what each pass
// wants of a stretch is computed while that is in the cache. A pass adds up in the order in which it would by itself, to
// the same bits.
#pragma once

#include <cstddef>
#include <span>

#include "rows/rows.hpp"

namespace apsvm {

// A pass for one vector: `scores_of_rows` of w (X.n_columns), `out` (rows), or `combine_rows` of c (rows), `out`
// (X.n_columns).
struct Pass {
    Selection rows;
    const double *vector;
    double *out;
    bool combines;
};

template <class Matrix>
void walk(const Matrix &X, std::span<const Pass> passes, std::size_t threads);

}  // namespace apsvm
