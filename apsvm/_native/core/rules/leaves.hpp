// The leaves that rows fall into.
#pragma once

#include <algorithm>
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

template <class Value>
inline std::size_t leaf_of(const Trees &trees, std::size_t tree, const Value *row) {
    const std::size_t nodes = nodes_of(trees.depth);
    const std::int32_t *features = trees.features + tree * nodes;
    const double *thresholds = trees.thresholds + tree * nodes;
    std::size_t node = 0;
    for (std::size_t depth = 0; depth < trees.depth; ++depth) {
        const std::int32_t feature = features[node];
        const bool right = feature >= 0 && static_cast<double>(row[feature]) > thresholds[node];
        node = 2 * node + 1 + right;
    }
    return node - nodes;
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
    std::int64_t at = 0;
    for (std::size_t i = 0; i < n_rows; ++i) {
        indptr[i] = at;
        for (std::size_t j = 0; j < n_beside; ++j) {
            indices[at] = static_cast<std::int32_t>(j);
            values[at] = beside[i * n_beside + j];
            at += values[at] != Value{0};
        }
        std::fill(of_row.begin(), of_row.end(), 0.0);
        for (std::size_t t = 0; t < trees.n; ++t) {
            const std::int32_t column = trees.columns[(t << trees.depth) + leaf_of(trees, t, rows + i * d)];
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
