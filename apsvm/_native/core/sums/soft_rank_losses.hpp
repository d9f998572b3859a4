// Losses of soft ranks by the Laplace kernel, and their slopes, over the lists of a batch (apsvm/torch/soft_rank.py has
// the formulas): O(n log n) a list.
#pragma once

#include <cstddef>
#include <span>

#include "oracles/lists.hpp"

namespace apsvm {

// tau: the width of the kernel, in units of the scores, or if it is `relative` in standard deviations of a list's, of which
// the slopes take account. Without places the loss is 1 − average precision; with K places
// 1 − recall among the first K, the mean over them, each place told from the next with the width tau_rank.
struct SoftRankLoss {
    double tau;
    bool relative;
    std::span<const double> places;
    double tau_rank;
};

// The row weights are the slopes. Of lists without both classes, and of scores that are not finite, as solve_lists.
template <class Score>
void soft_rank_losses(const SoftRankLoss &loss, const Score *scores, const ListRows &rows,
                      const ListAnswers<Score> &answers, std::size_t threads);

}  // namespace apsvm
