// Several rows of a dense matrix at once, which hides what one row alone waits for. A sum depends neither on the rows it
// is computed beside nor on the machine: its order is fixed, and fused multiply-adds are off.
#pragma once

#include <cstddef>

#include "rows/matrices.hpp"

namespace apsvm {

// out[i · stride] = row rows[i] of X · w, for w (X.n_columns), the i below n. `from_memory`: of a pass over more rows than
// the caches hold, these are touched for the first time.
void dots(const Dense<float> &X, const std::size_t *rows, std::size_t n, const double *w, double *out,
          std::size_t stride, bool from_memory);
void dots(const Dense<double> &X, const std::size_t *rows, std::size_t n, const double *w, double *out,
          std::size_t stride, bool from_memory);

// total += factors[i] · row rows[i] of X, for one i below n after another.
void add_rows(const Dense<float> &X, const std::size_t *rows, const double *factors, std::size_t n, double *total,
              bool from_memory);
void add_rows(const Dense<double> &X, const std::size_t *rows, const double *factors, std::size_t n, double *total,
              bool from_memory);

// The same of sparse rows, one after another.
template <class Value, class Index>
void dots(const Csr<Value, Index> &X, const std::size_t *rows, std::size_t n, const double *w, double *out,
          std::size_t stride, bool) {
    for (std::size_t i = 0; i < n; ++i) out[i * stride] = X.dot(rows[i], w);
}

template <class Value, class Index>
void add_rows(const Csr<Value, Index> &X, const std::size_t *rows, const double *factors, std::size_t n,
              double *total, bool) {
    for (std::size_t i = 0; i < n; ++i) X.add(rows[i], factors[i], total);
}

}  // namespace apsvm
