// The oracles as their papers print them: every rank they are said to try is tried. The judges of the faster ones.
#pragma once

#include "oracles/inference.hpp"

namespace apsvm {

// How one negative's best rank is found: all ranks tried (Yue et al. 2007), or a bisection over the ranks up to j,
// where g_j must be non-decreasing, and those above one by one (AP-SVM-SEARCH, Algorithm 2).
enum class RankSearch { linear, binary };

// Yue et al. 2007, Algorithm 1, over items [begin, end) in any order; with the binary search, AP-SVM-SEARCH. Returns
// how many ranks were evaluated.
std::int64_t rank_in_order(const Problem &problem, const Sink &sink, Scored *begin, Scored *end, RankSearch search);

// AP-SVM-SELECT, Algorithm 3: by quickselect, the first negative in order that lies below every positive; then only
// those before it are sorted and solved.
std::int64_t rank_selected(const Problem &problem, const Sink &sink, Scored *begin, Scored *end, RankSearch search);

}  // namespace apsvm
