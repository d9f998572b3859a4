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

// Scores to be computed piece by piece.
template <class Matrix>
class Scores {
public:
    // W (k, X.n_columns), out (rows, k); a piece of about `work_of_piece` multiply-adds. `follows`: another pass has just
    // brought the rows into the cache.
    Scores(const Matrix &X, const Selection &rows, const double *W, std::size_t k, double *out,
           std::size_t work_of_piece, bool follows = false);

    std::size_t pieces() const { return pieces_.count(); }

    // Threads that are worth starting; 0 for none.
    std::size_t threads_worthwhile() const;

    Pieces::Cursor before(std::size_t piece) const { return pieces_.before(piece); }

    // Of the pieces up to `last`.
    void compute(Pieces::Cursor &cursor, std::size_t last) const;

private:
    const Matrix &X_;
    const SelectedRows &list_;
    const double *W_;
    std::size_t k_;
    double *out_;
    double work_of_row_;
    bool from_memory_;  // and not from the caches
    Pieces pieces_;
};

// A combination to be computed block by block, the pieces of a block in order: the bits are the same.
template <class Matrix>
class Combination {
public:
    // C (rows, k); `threads` count its entries that are not 0. `follows`: see Scores.
    Combination(const Matrix &X, const Selection &rows, const double *C, std::size_t k, std::size_t threads,
                bool follows = false);

    std::size_t pieces() const { return pieces_.count(); }
    std::size_t blocks() const { return blocks_; }

    // Of a block; of the one after the last: the number of pieces.
    std::size_t first_piece(std::size_t block) const;

    Pieces::Cursor before(std::size_t piece) const { return pieces_.before(piece); }

    // The pieces of a block up to `last`.
    void add(std::size_t block, Pieces::Cursor &cursor, std::size_t last);

    // The sum of all blocks, out (k, X.n_columns).
    void write(double *out) const;

private:
    void add_places(std::size_t begin, std::size_t end, double *total) const;

    const Matrix &X_;
    const SelectedRows &list_;
    const double *C_;
    std::size_t k_;
    double work_of_row_;
    bool from_memory_;  // and not from the caches
    Pieces pieces_;
    bool by_ranges_;  // in the matrix's order where that pays; of a pass that follows, too, for the same bits
    std::vector<std::size_t> entries_;  // of C up to each piece, those that are not 0: the work to do
    std::size_t blocks_;
    std::vector<double> totals_;  // (blocks, k, X.n_columns)
};

// out (k, X.n_columns): its row h = Σ_i C[i, h] · row rows[i] of X, for C (rows, k). One pass over X. Rows whose
// entries in C are all 0 are not touched where these are many; the others are added 0 times, to the same bits.
template <class Matrix>
void combine_rows(const Matrix &X, const Selection &rows, const double *C, std::size_t k, double *out,
                  std::size_t threads);

}  // namespace apsvm
