// The quicksort-flavoured oracle (Mohapatra, Rolínek et al. 2018), and a walk for losses whose gains rise with the
// rank.
#pragma once

#include "oracles/inference.hpp"

namespace apsvm {

// Algorithm 1: OptRanks on [begin, end), whose first item has position j and whose ranks are known to lie in
// [low, high]. `sorted`: the items are in order already. Returns how many ranks were evaluated.
std::int64_t rank_by_quicksort(const Problem &problem, const Sink &sink, std::int64_t j, Scored *begin, Scored *end,
                               std::int32_t low, std::int32_t high, bool sorted = false);

// Ranks of sorted items[0, n) where each g_j is non-decreasing on 1..min(P, j): ranks grow with j, so from j = P on one
// walk down the positives finds them all.
std::int64_t rank_by_walking(const Problem &problem, const Sink &sink, Scored *items, std::size_t n);

}  // namespace apsvm
