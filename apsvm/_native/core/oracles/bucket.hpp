// The bucket oracle: exact, O(N) expected, without a comparison sort of the negatives.
#pragma once

#include <cstdint>
#include <vector>

#include "oracles/binned_ranks.hpp"
#include "oracles/inference.hpp"

namespace apsvm {

// Memory kept from call to call; the ranks do not depend on what it holds, nor on the number of threads.
class Bucket {
public:
    // Ranks the negatives. `spare` (n_neg,) is overwritten; the ranks may be ranks_within(spare, n_neg). `violating`:
    // the negatives with r ≤ P in this query's last call, or −1; becomes that of this call. Returns how many ranks were
    // evaluated.
    std::int64_t rank(const Problem &problem, const Sink &sink, const double *scores, std::size_t n_neg, double *spare,
                      std::int64_t &violating, std::size_t threads);

private:
    bool few_violated() const;  // in the last call
    bool rank_survivors(const Problem &problem, const Sink &sink, const double *scores, double *spare);
    void rank_all(const Problem &problem, const Sink &sink, const double *scores, const std::int32_t *index,
                  std::size_t n, double *spare);
    void rank_binned(const Problem &problem, const Sink &sink, const double *scores, const std::int32_t *index,
                     std::size_t n, const Bins &bins, double *spare);
    void rank_whole(const Problem &problem, const Sink &sink, const double *scores, const std::int32_t *index,
                    std::size_t n);
    void sample(const double *scores, std::size_t n);

    std::size_t n_neg_ = 0;
    std::size_t threads_ = 1;
    std::int64_t evaluated_ = 0;
    std::int64_t violating_ = -1;  // in the last call
    std::vector<double> sample_;
    std::vector<std::uint16_t> names_;  // of each score's bin; and behind them the survivors
    std::vector<std::int64_t> counts_;  // part by part, of each bin
    Bounds bounds_;
    std::vector<Scored> items_;
    SortWorkspace sort_;
};

}  // namespace apsvm
