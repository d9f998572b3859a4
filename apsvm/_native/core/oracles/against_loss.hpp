// The ranking that maximises F(R) − Δ(R*, R): the negative update of direct loss minimisation.
#pragma once

#include <vector>

#include "oracles/inference.hpp"

namespace apsvm {

// Memory of the search, kept from call to call.
struct AgainstLossWorkspace {
    std::vector<std::size_t> ends;    // of each positive: the most negatives above it
    std::vector<std::size_t> starts;  // of each positive, in is_best
    std::vector<double> sums;         // of the first n scores, at [n]
    std::vector<double> best;         // max_{m ≤ n} M_k(m) at [n]
    std::vector<bool> is_best;        // whether M_k(n) is that maximum
};

// Ranks items[0, n_neg), which are in order; `discount`: D(p) at [p - 1]. Of equal maxima, the one with the most
// negatives on top. Returns how many sums were compared.
std::int64_t rank_against_loss(const Problem &problem, const double *discount, const Sink &sink, const Scored *items,
                               std::size_t n_neg, AgainstLossWorkspace &work);

}  // namespace apsvm
