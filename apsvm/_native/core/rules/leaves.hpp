// The leaves that rows fall into.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rules/boosting.hpp"

namespace apsvm::rules {

// Trees of one depth: node i of tree t splits by features[t · nodes + i] (kNotSplit: all rows go left), a row going left
// where its value is at most thresholds[…]; columns[t · leaves + i] is the column of leaf i, negative for none.
struct Trees {
    std::size_t n, depth;
    const std::int32_t *features;
    const double *thresholds;
    const std::int32_t *columns;
};

constexpr std::size_t kRowsAtOnce = 32;  // so that a tree is read once for several rows

// The columns of the leaves of tree `tree` that `n` rows of d values fall into.
template <class Value>
inline void columns_of(const Trees &trees, std::size_t tree, const Value *rows, std::size_t n, std::size_t d,
                       std::int32_t *columns) {
    const std::size_t nodes = nodes_of(trees.depth);
    const std::int32_t *features = trees.features + tree * nodes, *leaves = trees.columns + (tree << trees.depth);
    const double *thresholds = trees.thresholds + tree * nodes;
    std::array<std::uint32_t, kRowsAtOnce> node{};
    for (std::size_t depth = 0; depth < trees.depth; ++depth)
        for (std::size_t i = 0; i < n; ++i) {  // level by level: the rows do not wait for each other
            const std::int32_t feature = features[node[i]];
            const bool right = feature >= 0 && static_cast<double>(rows[i * d + static_cast<std::size_t>(feature)]) >
                                                   thresholds[node[i]];
            node[i] = 2 * node[i] + 1 + right;
        }
    for (std::size_t i = 0; i < n; ++i) columns[i * trees.n + tree] = leaves[node[i] - nodes];
}

// The mapped rows as CSR: behind the values of `beside` (n_rows, n_beside) that are not 0, a 1 in the columns of the
// leaves, which ascend, and behind these the sums: sums[c · n_sums + s] is what leaf column c adds to sum s; the first
// of the columns of the leaves is n_beside. indptr has room for n_rows + 1 numbers, the others for
// n_rows · (n_beside + trees.n + n_sums).
template <class Value>
void write_rows(const Trees &trees, const Value *rows, std::size_t n_rows, std::size_t d, const Value *beside,
                std::size_t n_beside, const double *sums, std::size_t n_columns, std::size_t n_sums,
                std::int64_t *indptr, std::int32_t *indices, Value *values) {
    std::vector<double> of_row(n_sums);
    std::vector<std::int32_t> columns(trees.n * kRowsAtOnce);  // row by row
    std::int64_t at = 0;
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::size_t in_block = i % kRowsAtOnce;
        if (in_block == 0)
            for (std::size_t t = 0; t < trees.n; ++t)
                columns_of(trees, t, rows + i * d, std::min(kRowsAtOnce, n_rows - i), d, columns.data());
        indptr[i] = at;
        for (std::size_t j = 0; j < n_beside; ++j) {
            indices[at] = static_cast<std::int32_t>(j);
            values[at] = beside[i * n_beside + j];
            at += values[at] != Value{0};
        }
        std::fill(of_row.begin(), of_row.end(), 0.0);
        for (std::size_t t = 0; t < trees.n; ++t) {
            const std::int32_t column = columns[in_block * trees.n + t];
            if (column < 0) continue;
            indices[at] = column;
            values[at++] = Value{1};
            const double *adds = sums + (static_cast<std::size_t>(column) - n_beside) * n_sums;
            for (std::size_t s = 0; s < n_sums; ++s) of_row[s] += adds[s];
        }
        for (std::size_t s = 0; s < n_sums; ++s) {
            indices[at] = static_cast<std::int32_t>(n_beside + n_columns + s);
            values[at++] = static_cast<Value>(of_row[s]);
        }
    }
    indptr[n_rows] = at;
}

}  // namespace apsvm::rules
