// Scores in order: descending, equal ones by index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace apsvm {

struct Scored {
    double score;
    std::int32_t index;
    bool operator<(const Scored &other) const {  // "stands before"
        return score > other.score || (score == other.score && index < other.index);
    }
};

// Room to sort in, kept from call to call.
struct SortWorkspace {
    std::vector<std::uint32_t> places, ends;
    std::vector<double> sample;
    std::vector<std::uint16_t> names;  // of bins
    std::vector<double> binned;        // scores, bin after bin …
    std::vector<std::int32_t> rows;    // … and their index
};

// Puts scores[0, n) in order into items[0, n); index[i] (i where there is no index) ascends with i. Sorts by places on
// scales over their range, and a comparison sort only where these cannot tell the scores apart.
void sort_scores(const double *scores, const std::int32_t *index, std::size_t n, std::vector<Scored> &items,
                 SortWorkspace &workspace);

// Puts the m highest of n scores in order into items[0, m), m ≤ n; where these are not few, all of them, and returns
// whether it has. O(n + m log m).
bool sort_top(const double *scores, std::size_t n, std::size_t m, std::vector<Scored> &items,
              SortWorkspace &workspace);

// The lowest and the highest of n ≥ 1 scores.
struct Extent {
    double low, high;
};
Extent extent_of(const double *scores, std::size_t n);

// Positions of the scores in descending order, equal ones by position.
std::vector<std::int64_t> descending_order(std::span<const double> scores);

}  // namespace apsvm
