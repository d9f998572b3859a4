// Ranks without a sort: scores are counted into bins, and what is known of a bin bounds the ranks in it.
//
// With the counts added up from the top, a bin holds the negatives of known positions c+1..c+m and of scores between
// known edges. Ranks are monotone, in the position and in the score, so
//
//     argmax f at (c+1, upper edge)  ≤  every rank in the bin  ≤  argmax f at (c+m, lower edge)
//
// and where the two agree the bin is solved without looking inside. Bins are solved by divide and conquer, from bounds
// that the solved neighbours give; at most P bins can hold a change of rank, plus the few that the bounds leave open:
// those are gathered and handed to the quicksort-flavoured oracle.
//
// The negatives may stand in several parts, on several threads; what each step needs and gives:
//
//     step           where            needs                                          gives
//     count_scores   each part        the bins; its own scores                       its names and counts
//     bound_ranks    one place        the bins; the sums of all parts' counts;       Bounds, of which the parts
//                                     the positives and the loss, but no score       need rank_of_bin only
//                                     of a negative
//     gather_open    each part        Bounds::rank_of_bin; its scores, names, counts its scores in open bins
//     rank_open      one place        Bounds; the positives and the loss;            the ranks of these, in their place
//                                     the scores in open bins of all parts
//     assign_ranks   each part        Bounds::rank_of_bin; its names and counts,     all its ranks
//                                     and its ranks in open bins
//
// All of them read and write memory in order, in as many streams as there are bins at most.
//
// Neither the ranks nor the counts depend on how the negatives are cut into parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sorting/bins.hpp"
#include "oracles/inference.hpp"

namespace apsvm {

// A bin that holds something.
struct FilledBin {
    std::int64_t first;  // position of its first negative
    std::int64_t count;
    std::uint32_t name;
    std::int32_t low, high;  // bounds on its ranks; equal: solved

    bool is_open() const { return low != high; }
};

struct Bounds {
    std::vector<FilledBin> filled;      // in descending order of score
    std::vector<FilledBin> open;        // those of them that are not solved
    std::vector<std::int32_t> rank_of_bin;  // at [name]: the rank of its negatives where it is solved, or kOpen
    std::int64_t evaluated = 0;             // ranks

    static constexpr std::int32_t kOpen = 0;  // ranks count from 1
};

// Bounds the ranks of every bin, and counts those of the solved ones into rank_counts (at [r]). The sums over all parts
// of the bins' counts: counts[part · count_of(bins) + name].
void bound_ranks(const Problem &problem, const Bins &bins, const std::int64_t *counts, std::size_t parts,
                 std::int64_t *rank_counts, std::size_t threads, Bounds &bounds);

// Where each part finds its rows of each open bin in the arrays of all open rows: bin after bin, highest scores first,
// and part after part in a bin. Replaces the counts, laid out as for bound_ranks. Returns how many rows are open.
std::size_t place_open(const Bounds &bounds, std::int64_t *counts, std::size_t parts);

// A part's rows: the i-th is the negative index[i], or i where there is no index, and in the bin names[i]. `places`:
// where its rows of each open bin begin, at [name].
struct Part {
    const std::uint16_t *names;
    const std::int32_t *index;
    std::size_t n;
    const std::int64_t *places;

    std::size_t row(std::size_t i) const { return index ? static_cast<std::size_t>(index[i]) : i; }
};

// Copies the scores of the part's open rows to where they stand in `open`.
void gather_open(const Bounds &bounds, const Part &part, const double *scores, double *open);

struct OpenRanks {
    const std::int32_t *ranks;  // in the order of the open rows
    std::int64_t evaluated;
};

// Ranks the open rows of all parts, in at most `tasks` runs of about equally many, and counts the ranks into
// rank_counts. The ranks take the place of the scores, in the first half of their memory.
OpenRanks rank_open(const Problem &problem, const Bounds &bounds, double *open, std::int64_t *rank_counts,
                    std::size_t tasks, std::size_t threads);

// Writes the part's ranks to ranks[index].
void assign_ranks(const Bounds &bounds, const Part &part, const std::int32_t *open_ranks, std::int32_t *ranks);

}  // namespace apsvm
