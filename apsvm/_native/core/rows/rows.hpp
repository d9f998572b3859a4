// Row kernels: scores X·w and combinations Xᵀc over a selection of rows of a CSR or dense X (float32 or float64
// storage, float64 accumulation).
//
// Determinism: each score is summed in an order that depends on its row alone; a combination is cut into blocks of
// pieces (selected_rows.hpp) that depend on the data alone, each block has its own accumulator, and the accumulators are
// added in order. So one thread and many give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rows/matrices.hpp"
#include "rows/selected_rows.hpp"

namespace apsvm {

// What becomes of a look at the arrays of a CSR matrix.
struct CsrLook {
    std::optional<std::string> fault;  // why they are none, in words
    bool ascending = true;             // the columns of each row, none of them twice
};

// Of n_rows and n_columns. One pass over the indices, several times as fast as any kernel that uses them.
template <class Index>
CsrLook look_at_csr(std::span<const Index> indptr, std::span<const Index> indices, std::size_t n_rows,
                    std::size_t n_columns);

// The rows to go through; `runs` are those of `list`.
struct Selection {
    SelectedRows list;
    std::vector<std::size_t> runs;
    std::size_t n_rows;  // of the matrix
};

// out (rows, k): out[i, h] = row rows[i] of X · row h of W (k, X.n_columns). One pass over X.
template <class Matrix>
void scores_of_rows(const Matrix &X, const Selection &rows, const double *W, std::size_t k, double *out,
                    std::size_t threads);

// out (k, X.n_columns): its row h = Σ_i C[i, h] · row rows[i] of X, for C (rows, k). One pass over X. Rows whose
// entries in C are all 0 are not touched where these are many; the others are added 0 times, to the same bits.
template <class Matrix>
void combine_rows(const Matrix &X, const Selection &rows, const double *C, std::size_t k, double *out,
                  std::size_t threads);

}  // namespace apsvm
