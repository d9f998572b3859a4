// The oracles for a batch of a network: lists of n rows one after another, the classes mixed, of single or double
// precision. Each list is a query of its own; its answer and the row weights of its rows are written where it stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "oracles/ranking_oracle.hpp"

namespace apsvm {

// What the lists' rows are. List l has the rows [l · n, (l + 1) · n).
struct ListRows {
    std::size_t n_lists, n;
    const std::uint8_t *positive;  // 1 or 0
    const std::uint8_t *valid;     // 1 for the rows that count; null: all
};

struct ClassSizes {
    std::int64_t positives, negatives;
};

// How many rows of a list count, of each class.
ClassSizes count_classes(const ListRows &rows, std::size_t list);

// The loss of list l: u_k at [weights_begin[l] + k − 1], D(p) at [discount_begin[l] + p − 1].
struct ListLosses {
    std::span<const std::int64_t> weights_begin;
    const double *weights;
    std::span<const std::int64_t> discount_begin;
    const double *discount;
};

// Where the answers go: of list l, h or its kin, and whether it has both classes; of row i its weight.
template <class Score>
struct ListAnswers {
    double *values;
    bool *counts;
    Score *row_weights;
};

// What is computed of the scores. Δ is that of the ranking found, A of the ranking by score, F(R) = w·Ψ(R) − w·Ψ(R*):
//     hinge  max_R {F + Δ}                 ramp  max_R {F + Δ} − F(A)
enum class ListForm { hinge, ramp };

// Lists without both classes have the value 0 and weigh nothing; those with a score that is not finite have NaN for
// their value and the weights of the rows that count. Rows of one class and of equal score weigh the same,
// which is a mean of subgradients. The answers do not depend on the number of threads. Memory is kept from call to call.
template <class Score>
void solve_lists(Algorithm algorithm, bool unimodal, ListForm form, const Score *scores, const ListRows &rows,
                 const ListLosses &losses, const ListAnswers<Score> &answers, std::size_t threads);

}  // namespace apsvm
